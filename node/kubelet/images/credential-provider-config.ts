/**
 * Which programs know credentials of registries: a CredentialProviderConfig.
 *
 * API:    https://kubernetes.io/docs/reference/config-api/kubelet-config.v1/#kubelet-config-k8s-io-v1-CredentialProviderConfig
 * Source: kubernetes v1.36 pkg/credentialprovider/plugin/config.go
 */
import { formatDurationNs, parseDurationMs, parseDurationNs } from "../../../core/api/meta/duration.ts";
import { goQuote } from "../../../core/api/meta/go-quote.ts";
import { urlProblem } from "../../../core/api/meta/go-url.ts";
import { qualifiedName } from "../../../core/api/meta/names.ts";
import { isMap } from "../../../core/api/patch/json-value.ts";

export interface CredentialProvider {
  /** Of the program: a file of the directory they are in. */
  readonly name: string;
  readonly matchImages: readonly string[];
  readonly defaultCacheMs: number;
  readonly apiVersion: string;
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
  /** It is told who pulls. */
  readonly token?: TokenAttributes | undefined;
}

interface TokenAttributes {
  readonly audience: string;
  readonly requiresServiceAccount: boolean;
  readonly requiredAnnotations: readonly string[];
  readonly optionalAnnotations: readonly string[];
  /** What it answers is good for the service account, or only for that token. */
  readonly cacheType: CacheType;
}

type CacheType = "ServiceAccount" | "Token";

type Written<T> = { readonly [Key in keyof T]?: T[Key] | null };
type WrittenToken = Written<{ serviceAccountTokenAudience: string; requireServiceAccount: boolean; requiredServiceAccountAnnotationKeys: readonly string[]; optionalServiceAccountAnnotationKeys: readonly string[]; cacheType: string }>;
/** As it is written. */
export type Provider = Written<{ name: string; matchImages: readonly string[]; defaultCacheDuration: string; apiVersion: string; args: readonly string[]; env: readonly Written<{ name: string; value: string }>[]; tokenAttributes: WrittenToken }>;

const CONFIG_VERSIONS = ["kubelet.config.k8s.io/v1", "kubelet.config.k8s.io/v1beta1", "kubelet.config.k8s.io/v1alpha1"];
const API_V1 = "credentialprovider.kubelet.k8s.io/v1";
const API_VERSIONS = [API_V1, "credentialprovider.kubelet.k8s.io/v1alpha1", "credentialprovider.kubelet.k8s.io/v1beta1"];
const CACHE_TYPES: readonly string[] = ["ServiceAccount", "Token"] satisfies CacheType[];

/** What may stand in one, by its version: what is written otherwise would not be obeyed. */
type Shape = "string" | "bool" | "list" | { readonly each: Fields };
interface Fields { readonly [name: string]: Shape | Fields }
const BEFORE_TOKENS: Fields = { name: "string", matchImages: "list", defaultCacheDuration: "string", apiVersion: "string", args: "list", env: { each: { name: "string", value: "string" } } };
const OF_V1: Fields = { ...BEFORE_TOKENS, tokenAttributes: { serviceAccountTokenAudience: "string", cacheType: "string", requireServiceAccount: "bool", requiredServiceAccountAnnotationKeys: "list", optionalServiceAccountAnnotationKeys: "list" } };

/** Throws an Error for the user. A CredentialProviderConfig, parsed. */
export function readProviders(value: unknown): readonly Provider[] {
  const { apiVersion = "", kind = "", ...rest } = (isMap(value) ? value : {}) as { readonly apiVersion?: string; readonly kind?: string; readonly providers?: readonly Provider[] | null };
  if (kind !== "CredentialProviderConfig" || !CONFIG_VERSIONS.includes(apiVersion)) throw new Error(`no kind "${kind}" is registered for version "${apiVersion}"`);
  const unknown = [...unknownFields(rest, { providers: { each: apiVersion === CONFIG_VERSIONS[0] ? OF_V1 : BEFORE_TOKENS } }, "")];
  if (unknown.length > 0) throw new Error(`strict decoding error: ${unknown.map((path) => `unknown field "${path}"`).join(", ")}`);
  return rest.providers ?? [];
}

function* unknownFields(value: unknown, fields: Fields, at: string): Iterable<string> {
  if (!isMap(value)) throw new Error(`json: ${at}: expected a map`);
  for (const [name, content] of Object.entries(value)) {
    const path = at === "" ? name : `${at}.${name}`;
    const shape = Object.hasOwn(fields, name) ? fields[name]! : undefined;
    if (shape === undefined) yield path;
    else if (content != null) yield* unknownWithin(content, shape, path);
  }
}

function* unknownWithin(content: unknown, shape: Shape | Fields, path: string): Iterable<string> {
  if (shape === "string" ? typeof content !== "string" : shape === "bool" && typeof content !== "boolean") throw new Error(`json: ${path}: expected a ${shape}`);
  if (shape === "string" || shape === "bool") return;
  const isList = shape === "list" || isEach(shape);
  if (isList && !Array.isArray(content)) throw new Error(`json: ${path}: expected a list`);
  if (shape === "list") for (const [i, one] of (content as readonly unknown[]).entries()) yield* unknownWithin(one, "string", `${path}[${i}]`);
  else if (isEach(shape)) for (const [i, one] of (content as readonly unknown[]).entries()) yield* unknownFields(one, shape.each, `${path}[${i}]`);
  else yield* unknownFields(content, shape, path);
}

function isEach(shape: Shape | Fields): shape is { readonly each: Fields } { return typeof shape === "object" && typeof shape["each"] === "object"; }
/** Throws an Error for the user, with all that is wrong. */
export function checkedProviders(providers: readonly Provider[]): CredentialProvider[] {
  const twice = providers.find(({ name }, at) => providers.findIndex((other) => other.name === name) < at);
  if (twice) throw new Error(`duplicate provider name ${goQuote(twice.name ?? "")} found in configuration file(s)`);
  const problems = new Set(providers.length === 0 ? ["providers: Required value: at least 1 item in plugins is required"] : providers.flatMap((one) => [...problemsOf(one)]));
  if (problems.size > 0) throw new Error(`failed to validate credential provider config: ${problems.size === 1 ? [...problems][0] : `[${[...problems].join(", ")}]`}`);
  return providers.map(({ name, matchImages, defaultCacheDuration, apiVersion, args, env, tokenAttributes }) => ({
    name: name!, matchImages: matchImages!, defaultCacheMs: parseDurationMs(defaultCacheDuration!), apiVersion: apiVersion!, args: args ?? [], env: (env ?? []).map((one) => ({ name: one.name ?? "", value: one.value ?? "" })),
    ...(tokenAttributes ? { token: tokenOf(tokenAttributes) } : {}),
  }));
}

function tokenOf(given: WrittenToken): TokenAttributes {
  return {
    audience: given.serviceAccountTokenAudience!, requiresServiceAccount: given.requireServiceAccount!, requiredAnnotations: given.requiredServiceAccountAnnotationKeys ?? [], optionalAnnotations: given.optionalServiceAccountAnnotationKeys ?? [],
    cacheType: given.cacheType as CacheType,
  };
}

function* problemsOf({ name, matchImages, defaultCacheDuration, apiVersion, tokenAttributes }: Provider): Iterable<string> {
  yield* nameProblems(name ?? "");
  if (!apiVersion) yield "providers.apiVersion: Required value";
  else if (!API_VERSIONS.includes(apiVersion)) yield unsupported("providers.apiVersion", apiVersion, API_VERSIONS);
  if (!matchImages?.length) yield "providers.matchImages: Required value: at least 1 item in matchImages is required";
  for (const pattern of matchImages ?? []) {
    const problem = urlProblem(`https://${pattern}`);
    if (problem !== undefined) yield `providers.matchImages: Invalid value: ${goQuote(pattern)}: match image is invalid: ${problem}`;
  }
  if (!defaultCacheDuration) yield "providers.defaultCacheDuration: Required value";
  else if (parseDurationNs(defaultCacheDuration) < 0n) yield `providers.defaultCacheDuration: Invalid value: "${formatDurationNs(parseDurationNs(defaultCacheDuration))}": must be greater than or equal to 0`;
  if (tokenAttributes) yield* tokenProblems(tokenAttributes, apiVersion);
}

function* nameProblems(name: string): Iterable<string> {
  const invalid = (why: string): string => `providers.name: Invalid value: ${goQuote(name)}: provider name cannot ${why}`;
  if (name === "") yield "providers.name: Required value: name is required"; // it would be the directory itself
  if (/[/\\]/.test(name)) yield invalid("contain '/'");
  if (name.includes(" ")) yield invalid("contain spaces");
  if (name === "." || name === "..") yield invalid(`be '${name}'`);
}

function* tokenProblems({ serviceAccountTokenAudience: audience, requireServiceAccount: requires, requiredServiceAccountAnnotationKeys, optionalServiceAccountAnnotationKeys, cacheType }: WrittenToken, apiVersion: string | null | undefined): Iterable<string> {
  const at = "providers.tokenAttributes";
  const [required, optional] = [requiredServiceAccountAnnotationKeys ?? [], optionalServiceAccountAnnotationKeys ?? []];
  if (!audience) yield `${at}.serviceAccountTokenAudience: Required value`;
  if (requires == null) yield `${at}.requireServiceAccount: Required value`;
  if (apiVersion !== API_V1) yield `${at}: Forbidden: tokenAttributes is only supported for ${API_V1} API version`;
  if (requires === false && required.length > 0) yield `${at}.requiredServiceAccountAnnotationKeys: Forbidden: requireServiceAccount cannot be false when requiredServiceAccountAnnotationKeys is set`;
  yield* keyProblems(`${at}.requiredServiceAccountAnnotationKeys`, required);
  yield* keyProblems(`${at}.optionalServiceAccountAnnotationKeys`, optional);
  const both = [...new Set(required)].filter((key) => optional.includes(key)).toSorted();
  if (both.length > 0) yield `${at}: Invalid value: ${JSON.stringify(both)}: annotation keys cannot be both required and optional`;
  if (!cacheType) yield `${at}.cacheType: Required value: cacheType is required to be set when tokenAttributes is specified. Supported values are: ${CACHE_TYPES.join(", ")}`;
  else if (!CACHE_TYPES.includes(cacheType)) yield unsupported(`${at}.cacheType`, cacheType, CACHE_TYPES);
}

/** Of annotations, whose names may have capitals. */
function* keyProblems(at: string, keys: readonly string[]): Iterable<string> {
  for (const [i, key] of keys.entries()) {
    for (const why of qualifiedName(key.toLowerCase())) yield `${at}: Invalid value: ${goQuote(key)}: ${why}`;
    if (keys.indexOf(key) < i) yield `${at}: Duplicate value: ${goQuote(key)}`;
  }
}

function unsupported(at: string, value: string, supported: readonly string[]): string {
  return `${at}: Unsupported value: ${goQuote(value)}: supported values: ${supported.map((one) => JSON.stringify(one)).join(", ")}`;
}
