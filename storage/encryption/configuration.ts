/**
 * An EncryptionConfiguration, read and checked with upstream's words.
 *
 *   apiVersion: apiserver.config.k8s.io/v1
 *   kind: EncryptionConfiguration
 *   resources:
 *   - resources: [secrets, configmaps, "*.apps"]
 *     providers:
 *     - aescbc: {keys: [{name: key1, secret: <base64>}]}        # seals
 *     - identity: {}                                            # what was there before can still be read
 *
 * Source: kubernetes v1.36 apiserver/pkg/apis/apiserver/{v1,validation/validation_encryption.go}
 */
import { aesCbc, aesGcm, type NamedKey, secretbox } from "./ciphers.ts";
import type { EncryptionRule } from "./encryption.ts";
import { type KmsOptions, kmsProvider } from "./kms.ts";
import { identity, type Provider } from "./provider.ts";

export interface KmsSettings { readonly name: string; readonly endpoint: string; readonly timeoutMs: number }
type ProviderSettings = { readonly kind: "aescbc" | "aesgcm" | "secretbox"; readonly keys: readonly NamedKey[] } | { readonly kind: "identity" } | { readonly kind: "kms"; readonly kms: KmsSettings };
export interface RuleSettings { readonly resources: readonly string[]; readonly providers: readonly ProviderSettings[] }

type Json = Readonly<Record<string, unknown>>;

const AES_BYTES = [16, 24, 32];
const BOX_BYTES = [32];
const KINDS = ["kms", "aesgcm", "aescbc", "secretbox", "identity"] as const;
const TIMEOUT_MS = 3_000;

/** `document`: the file, parsed. Throws for the first thing of a wrong type, and for all that upstream's validation refuses. */
export function encryptionSettings(document: unknown): readonly RuleSettings[] {
  const { apiVersion, kind, resources } = record(document, "the configuration", ["apiVersion", "kind", "resources"]);
  if (kind !== "EncryptionConfiguration" || (apiVersion !== "apiserver.config.k8s.io/v1" && apiVersion !== "v1")) throw new Error(`no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)}: expected EncryptionConfiguration of apiserver.config.k8s.io/v1`);
  const problems: string[] = [];
  const rules = list(resources, "resources").map((item, i): RuleSettings => {
    const path = `resources[${i}]`;
    const rule = record(item, path, ["resources", "providers"]);
    const names = list(rule["resources"], `${path}.resources`).map((name, j) => text(name, `${path}.resources[${j}]`));
    if (names.length === 0) problems.push(required(`${path}.resources`, `at least one ${path}.resources is required`));
    problems.push(...resourceProblems(names, `${path}.resources`));
    const providers = list(rule["providers"], `${path}.providers`);
    if (providers.length === 0) problems.push(required(`${path}.providers`, `at least one ${path}.providers is required`));
    return { resources: names, providers: providers.flatMap((provider, j) => readProvider(provider, `${path}.providers[${j}]`, problems) ?? []) };
  });
  if (rules.length === 0) problems.push(required("resources", "at least one resources is required"));
  const kmsNames = rules.flatMap(({ providers }) => providers.flatMap((one) => (one.kind === "kms" ? [one.kms.name] : [])));
  for (const name of new Set(kmsNames.filter((one, i) => kmsNames.indexOf(one) < i))) problems.push(invalid("resources", name, `duplicate KMS provider name ${name}, names must be unique`));
  if (problems.length > 0) throw new Error(problems.length === 1 ? problems[0] : `[${problems.join(", ")}]`);
  return rules;
}

/** With their ciphers; key services are asked whether they work. */
export async function encryptionRules(settings: readonly RuleSettings[], options: Pick<KmsOptions, "clock" | "onTrouble">): Promise<readonly EncryptionRule[]> {
  const made: Provider[] = [];
  try {
    const rules: EncryptionRule[] = [];
    for (const { resources, providers } of settings) {
      const own: Provider[] = [];
      for (const one of providers) own.push(...(one.kind === "kms" ? [await kmsProvider({ ...one.kms, ...options })] : one.kind === "identity" ? [identity] : one.keys.map(CIPHERS[one.kind])));
      made.push(...own);
      rules.push({ resources, providers: own });
    }
    return rules;
  } catch (error) {
    closeRules([{ resources: [], providers: made }]);
    throw error;
  }
}

export function closeRules(rules: readonly EncryptionRule[]): void {
  for (const { providers } of rules) for (const provider of providers) provider.close?.();
}

const CIPHERS: Readonly<Record<"aescbc" | "aesgcm" | "secretbox", (key: NamedKey) => Provider>> = { aescbc: aesCbc, aesgcm: aesGcm, secretbox };

function readProvider(item: unknown, path: string, problems: string[]): ProviderSettings | undefined {
  const provider = record(item, path, KINDS);
  const kinds = KINDS.filter((kind) => provider[kind] !== undefined);
  const [kind] = kinds;
  if (kind === undefined) {
    problems.push(invalid(path, {}, "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity"));
    return undefined;
  }
  if (kinds.length > 1) {
    problems.push(invalid(path, Object.fromEntries(kinds.map((one) => [one, {}])), "more than one provider specified in a single element, should split into different list elements"));
    return undefined;
  }
  if (kind === "identity") return { kind };
  if (kind === "kms") return readKms(provider[kind], `${path}.kms`, problems);
  return readKeys(kind, provider[kind], { path: `${path}.${kind}.keys`, problems });
}

function readKeys(kind: "aescbc" | "aesgcm" | "secretbox", item: unknown, { path, problems }: { readonly path: string; readonly problems: string[] }): ProviderSettings {
  const sizes = kind === "secretbox" ? BOX_BYTES : AES_BYTES;
  const keys = list(record(item ?? {}, path, ["keys"])["keys"], path).map((one, i): NamedKey => {
    const at = `${path}[${i}]`;
    const key = record(one, at, ["name", "secret"]);
    const name = text(key["name"] ?? "", `${at}.name`);
    const encoded = text(key["secret"] ?? "", `${at}.secret`);
    const secret = Buffer.from(encoded, "base64");
    if (name === "") problems.push(required(`${at}.name`, "name is a mandatory field for a key"));
    if (encoded === "") problems.push(required(`${at}.secret`, "secret is a mandatory field for a key"));
    else if (!/^[A-Za-z0-9+/]*={0,2}$/.test(encoded) || encoded.length % 4 !== 0) problems.push(invalid(`${at}.secret`, "REDACTED", "secrets must be base64 encoded"));
    else if (!sizes.includes(secret.length)) problems.push(invalid(`${at}.secret`, "REDACTED", `secret is not of the expected length, got ${secret.length}, expected one of [${sizes.join(" ")}]`));
    return { name, secret };
  });
  if (keys.length === 0) problems.push(required(path, "at least one keys is required"));
  return { kind, keys };
}

function readKms(item: unknown, path: string, problems: string[]): ProviderSettings {
  const kms = record(item, path, ["apiVersion", "name", "cachesize", "endpoint", "timeout"]);
  const name = text(kms["name"] ?? "", `${path}.name`);
  const endpoint = text(kms["endpoint"] ?? "", `${path}.endpoint`);
  const version = text(kms["apiVersion"] ?? "v1", `${path}.apiVersion`);
  const timeout = text(kms["timeout"] ?? `${TIMEOUT_MS}ms`, `${path}.timeout`);
  const timeoutMs = durationMs(timeout);
  if (name === "") problems.push(required(`${path}.name`, "name is a mandatory field for a provider"));
  if (name.includes(":")) problems.push(invalid(`${path}.name`, name, `invalid KMS provider name ${name}, must not contain ':'`));
  if (timeoutMs === undefined || timeoutMs <= 0) problems.push(invalid(`${path}.timeout`, timeout, "timeout should be a positive value"));
  if (endpoint === "") problems.push(invalid(`${path}.endpoint`, "", "endpoint is a mandatory field for a kms"));
  else if (!endpoint.startsWith("unix://")) problems.push(invalid(`${path}.endpoint`, endpoint, `unsupported scheme ${JSON.stringify(endpoint.split(":", 1)[0])} for KMS provider, only unix is supported`));
  if (kms["cachesize"] !== undefined && version !== "v1") problems.push(invalid(`${path}.cachesize`, kms["cachesize"], "cachesize is not supported in v2"));
  if (version === "v1") problems.push(invalid(`${path}.apiVersion`, version, "KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead."));
  else if (version !== "v2") problems.push(invalid(`${path}.apiVersion`, version, "unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported"));
  return { kind: "kms", kms: { name, endpoint, timeoutMs: timeoutMs ?? TIMEOUT_MS } };
}

function durationMs(duration: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(duration);
  return match ? Number(match[1]) * { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }[match[2] as "ms" | "s" | "m" | "h"] : undefined;
}

const WITHOUT_API = ["apiserveripinfo", "serviceipallocations", "servicenodeportallocations"];

function* resourceProblems(names: readonly string[], path: string): Iterable<string> {
  const parsed = names.map((name) => ({ resource: name.split(".", 1)[0]!, group: name.includes(".") ? name.slice(name.indexOf(".") + 1) : "" }));
  if (new Set(names).size < names.length) yield invalid(path, names, "the same resource cannot be specified multiple times");
  const masked = parsed.some((one, i) => parsed.some((other, j) => i !== j && names[i] !== names[j] && (names[i] === "*.*" || (one.resource === "*" && one.group === other.group))));
  if (masked) yield invalid(path, names, "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked");
  for (const [i, name] of names.entries()) {
    const { resource, group } = parsed[i]!;
    const told = name.toLowerCase() !== name ? "resource name should not contain capital letters"
      : name === "*" ? "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"
      : WITHOUT_API.includes(name) ? "resources which do not have REST API/s cannot be encrypted"
      : group === "events.k8s.io" ? "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file"
      : group === "extensions" ? "'extensions' group has been removed and cannot be used for encryption"
      : group === "*" && resource !== "*" ? "encrypting the same resource across groups is not supported" : undefined;
    if (told !== undefined) yield invalid(`${path}[${i}]`, name, told);
  }
}

function required(path: string, told: string): string { return `${path}: Required value: ${told}`; }
function invalid(path: string, value: unknown, told: string): string { return `${path}: Invalid value: ${JSON.stringify(value)}: ${told}`; }

function record(value: unknown, path: string, names: readonly string[]): Json {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error(`${path}: expected an object`);
  const unknown = Object.keys(value).find((name) => !names.includes(name));
  if (unknown !== undefined) throw new Error(`unknown field "${path === "the configuration" ? unknown : `${path}.${unknown}`}"`);
  return value as Json;
}

function list(value: unknown, path: string): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new Error(`${path}: expected a list`);
  return value;
}

function text(value: unknown, path: string): string {
  if (typeof value !== "string") throw new Error(`${path}: expected a string`);
  return value;
}
