/**
 * Which programs know credentials of registries: a CredentialProviderConfig.
 *
 * API:    https://kubernetes.io/docs/reference/config-api/kubelet-config.v1/#kubelet-config-k8s-io-v1-CredentialProviderConfig
 * Source: kubernetes v1.36 pkg/credentialprovider/plugin/config.go
 */
import { parseGoDuration } from "../configuration/go-duration.ts";

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

/** As it is written. */
interface Provider {
  readonly name?: string; readonly matchImages?: readonly string[]; readonly defaultCacheDuration?: string; readonly apiVersion?: string; readonly args?: readonly string[]; readonly env?: readonly { readonly name: string; readonly value: string }[];
  readonly tokenAttributes?: { readonly serviceAccountTokenAudience?: string; readonly requireServiceAccount?: boolean; readonly requiredServiceAccountAnnotationKeys?: readonly string[]; readonly optionalServiceAccountAnnotationKeys?: readonly string[]; readonly cacheType?: string };
}

const CONFIG_VERSIONS = ["kubelet.config.k8s.io/v1", "kubelet.config.k8s.io/v1beta1", "kubelet.config.k8s.io/v1alpha1"];
const API_V1 = "credentialprovider.kubelet.k8s.io/v1";
const API_VERSIONS = [API_V1, "credentialprovider.kubelet.k8s.io/v1alpha1", "credentialprovider.kubelet.k8s.io/v1beta1"];
const CACHE_TYPES: readonly string[] = ["ServiceAccount", "Token"] satisfies CacheType[];

/** Throws an Error for the user. `values`: CredentialProviderConfigs, parsed. */
export function decodeProviders(...values: readonly unknown[]): CredentialProvider[] {
  const providers = values.flatMap((value) => {
    const { apiVersion = "", kind = "", providers: some = [] } = (value ?? {}) as { readonly apiVersion?: string; readonly kind?: string; readonly providers?: readonly Provider[] };
    if (kind !== "CredentialProviderConfig" || !CONFIG_VERSIONS.includes(apiVersion)) throw new Error(`no kind "${kind}" is registered for version "${apiVersion}"`);
    return some;
  });
  if (providers.length === 0) throw new Error("providers: Required value: at least 1 item in plugins is required");
  const twice = providers.find(({ name }, at) => providers.findIndex((other) => other.name === name) < at);
  if (twice) throw new Error(`duplicate provider name "${twice.name ?? ""}" found in configuration file(s)`);
  return providers.map(decodeProvider);
}

function decodeProvider({ name = "", matchImages = [], defaultCacheDuration = "", apiVersion = "", args = [], env = [], tokenAttributes }: Provider): CredentialProvider {
  const refuse = (field: string, problem: string): never => {
    throw new Error(`providers.${field}: ${problem}`);
  };
  if (name === "") refuse("name", "Required value: name is required"); // it would be the directory itself
  if (/[/\\]/.test(name)) refuse("name", `Invalid value: "${name}": provider name cannot contain '/'`);
  if (name.includes(" ")) refuse("name", `Invalid value: "${name}": provider name cannot contain spaces`);
  if (name === "." || name === "..") refuse("name", `Invalid value: "${name}": provider name cannot be '${name}'`);
  if (apiVersion === "") refuse("apiVersion", "Required value");
  if (!API_VERSIONS.includes(apiVersion)) refuse("apiVersion", unsupported(apiVersion, API_VERSIONS));
  if (matchImages.length === 0) refuse("matchImages", "Required value: at least 1 item in matchImages is required");
  if (defaultCacheDuration === "") refuse("defaultCacheDuration", "Required value");
  const defaultCacheMs = parseGoDuration(defaultCacheDuration);
  if (defaultCacheMs < 0) refuse("defaultCacheDuration", `Invalid value: "${defaultCacheDuration}": must be greater than or equal to 0`);
  return { name, matchImages, defaultCacheMs, apiVersion, args, env, ...(tokenAttributes ? { token: decodeToken(tokenAttributes, apiVersion, (field, problem) => refuse(`tokenAttributes${field}`, problem)) } : {}) };
}

function decodeToken({ serviceAccountTokenAudience: audience = "", requireServiceAccount, requiredServiceAccountAnnotationKeys: required = [], optionalServiceAccountAnnotationKeys: optional = [], cacheType = "" }: NonNullable<Provider["tokenAttributes"]>, apiVersion: string, refuse: (field: string, problem: string) => never): TokenAttributes {
  if (audience === "") refuse(".serviceAccountTokenAudience", "Required value");
  if (requireServiceAccount === undefined) refuse(".requireServiceAccount", "Required value");
  if (apiVersion !== API_V1) refuse("", `Forbidden: tokenAttributes is only supported for ${API_V1} API version`);
  if (requireServiceAccount === false && required.length > 0) refuse(".requiredServiceAccountAnnotationKeys", "Forbidden: requireServiceAccount cannot be false when requiredServiceAccountAnnotationKeys is set");
  const both = required.filter((key) => optional.includes(key));
  if (both.length > 0) refuse("", `Invalid value: ${JSON.stringify(both)}: annotation keys cannot be both required and optional`);
  if (cacheType === "") refuse(".cacheType", `Required value: cacheType is required to be set when tokenAttributes is specified. Supported values are: ${CACHE_TYPES.join(", ")}`);
  if (!CACHE_TYPES.includes(cacheType)) refuse(".cacheType", unsupported(cacheType, CACHE_TYPES));
  return { audience, requiresServiceAccount: requireServiceAccount ?? false, requiredAnnotations: required, optionalAnnotations: optional, cacheType: cacheType as CacheType };
}

function unsupported(value: string, supported: readonly string[]): string {
  return `Unsupported value: "${value}": supported values: ${supported.map((one) => JSON.stringify(one)).join(", ")}`;
}
