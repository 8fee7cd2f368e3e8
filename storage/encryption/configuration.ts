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

export interface KmsSettings { readonly name: string; readonly endpoint: string; readonly timeoutMs: number; readonly version: string }
type ProviderSettings = { readonly kind: "aescbc" | "aesgcm" | "secretbox"; readonly keys: readonly NamedKey[] } | { readonly kind: "identity" } | { readonly kind: "kms"; readonly kms: KmsSettings };
export interface RuleSettings { readonly resources: readonly string[]; readonly providers: readonly ProviderSettings[] }

type Json = Readonly<Record<string, unknown>>;

const AES_BYTES = [16, 24, 32];
const BOX_BYTES = [32];
const KINDS = ["kms", "aesgcm", "aescbc", "secretbox", "identity"] as const;
const SHOWN: readonly (readonly [(typeof KINDS)[number], string])[] = [["aesgcm", "AESGCM"], ["aescbc", "AESCBC"], ["secretbox", "Secretbox"], ["identity", "Identity"], ["kms", "KMS"]];
const TIMEOUT = "3s";

/** `document`: the file, parsed. `reloads`: it is read again when it changes. Throws for the first thing of a wrong type, and for all that upstream refuses. */
export function encryptionSettings(document: unknown, { reloads = false }: { readonly reloads?: boolean } = {}): readonly RuleSettings[] {
  const { apiVersion, kind, resources } = record(document, "the configuration", ["apiVersion", "kind", "resources"]);
  if (kind !== "EncryptionConfiguration" || (apiVersion !== "apiserver.config.k8s.io/v1" && apiVersion !== "v1")) throw new Error(`no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)}: expected EncryptionConfiguration of apiserver.config.k8s.io/v1`);
  const problems: string[] = [];
  const reading: Reading = { problems, reloads, kmsNames: new Set() };
  const rules = list(resources, "resources").map((item, i): RuleSettings => {
    const path = `resources[${i}]`;
    const rule = record(item, path, ["resources", "providers"]);
    const names = list(rule["resources"], `${path}.resources`).map((name, j) => text(name, `${path}.resources[${j}]`));
    if (names.length === 0) problems.push(required(`${path}.resources`, `at least one ${path}.resources is required`));
    problems.push(...resourceProblems(names, `${path}.resources`));
    const providers = list(rule["providers"], `${path}.providers`);
    if (providers.length === 0) problems.push(required(`${path}.providers`, `at least one ${path}.providers is required`));
    return { resources: names.map(fullName), providers: providers.flatMap((provider, j) => readProvider(provider, `${path}.providers[${j}]`, reading) ?? []) };
  });
  if (rules.length === 0) problems.push(required("resources", "at least one resources is required"));
  const told = [...new Set(problems)];
  if (told.length > 0) throw new Error(told.length === 1 ? told[0] : `[${told.join(", ")}]`);
  refuseMasked(rules);
  if (rules.some(({ providers }) => providers.some((one) => one.kind === "kms" && one.kms.version === "v1"))) throw new Error("KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead.");
  return rules;
}

/** A name without a group may be written with the dot before it. */
function fullName(name: string): string { return name === "*." || !name.endsWith(".") ? name : name.slice(0, -1); }

/** Throws for a resource that an earlier rule takes with its whole group, or with all. */
function refuseMasked(rules: readonly RuleSettings[]): void {
  const before = new Set<string>();
  for (const { resources } of rules) {
    for (const name of resources) {
      const by = [`*.${groupOf(name)}`, "*.*"].find((one) => before.has(one));
      if (by !== undefined) throw new Error(`resource ${JSON.stringify(name)} is masked by earlier rule ${JSON.stringify(by)}`);
      before.add(name);
    }
  }
}

function groupOf(name: string): string { return name.includes(".") ? name.slice(name.indexOf(".") + 1) : ""; }

/** With their ciphers; key services are asked whether they work. Throws when one does not, unless it may come later. */
export async function encryptionRules(settings: readonly RuleSettings[], { mayComeLater, ...options }: Pick<KmsOptions, "clock" | "meter" | "onTrouble" | "trace"> & { readonly mayComeLater: boolean }): Promise<readonly EncryptionRule[]> {
  const made: Provider[] = [];
  try {
    const rules: EncryptionRule[] = [];
    for (const { resources, providers } of settings) {
      const own: Provider[] = [];
      for (const one of providers) own.push(...(one.kind === "kms" ? [await kmsProvider({ ...one.kms, ...options }, { mayComeLater })] : one.kind === "identity" ? [identity] : one.keys.map(CIPHERS[one.kind])));
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

interface Reading {
  readonly problems: string[];
  readonly reloads: boolean;
  /** Of those read before. */
  readonly kmsNames: Set<string>;
}

function readProvider(item: unknown, path: string, reading: Reading): ProviderSettings | undefined {
  const { problems } = reading;
  const provider = record(item, path, KINDS);
  const kinds = KINDS.filter((kind) => provider[kind] != null);
  const [kind] = kinds;
  const shown = Object.fromEntries(SHOWN.map(([one, name]) => [name, kinds.includes(one) ? {} : null])); // without its keys, unlike upstream's
  if (kind === undefined) {
    problems.push(invalid(path, shown, "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity"));
    return undefined;
  }
  if (kinds.length > 1) problems.push(invalid(path, shown, "more than one provider specified in a single element, should split into different list elements"));
  if (kind === "identity") return { kind };
  if (kind === "kms") return readKms(provider[kind], `${path}.kms`, reading);
  return readKeys(kind, provider[kind], { path: `${path}.${kind}.keys`, problems });
}

function readKeys(kind: "aescbc" | "aesgcm" | "secretbox", item: unknown, { path, problems }: { readonly path: string; readonly problems: string[] }): ProviderSettings {
  const sizes = kind === "secretbox" ? BOX_BYTES : AES_BYTES;
  const keys = list(record(item ?? {}, path, ["keys"])["keys"], path).map((one, i): NamedKey => {
    const at = `${path}[${i}]`;
    const key = record(one, at, ["name", "secret"]);
    const name = text(key["name"] ?? "", `${at}.name`);
    const given = text(key["secret"] ?? "", `${at}.secret`);
    const encoded = given.replace(/[\r\n]/g, ""); // a block of YAML ends with one
    const secret = Buffer.from(encoded, "base64");
    if (name === "") problems.push(required(`${at}.name`, "name is a mandatory field for a key"));
    if (given === "") problems.push(required(`${at}.secret`, "secret is a mandatory field for a key"));
    else if (!/^[A-Za-z0-9+/]*={0,2}$/.test(encoded) || encoded.length % 4 !== 0) problems.push(invalid(`${at}.secret`, "REDACTED", "secrets must be base64 encoded"));
    else if (!sizes.includes(secret.length)) problems.push(invalid(`${at}.secret`, "REDACTED", `secret is not of the expected length, got ${secret.length}, expected one of [${sizes.join(" ")}]`));
    return { name, secret };
  });
  if (keys.length === 0) problems.push(required(path, "at least one keys is required"));
  return { kind, keys };
}

function readKms(item: unknown, path: string, { problems, reloads, kmsNames }: Reading): ProviderSettings {
  const kms = record(item, path, ["apiVersion", "name", "cachesize", "endpoint", "timeout"]);
  const name = text(kms["name"] ?? "", `${path}.name`);
  const endpoint = text(kms["endpoint"] ?? "", `${path}.endpoint`);
  const version = text(kms["apiVersion"] ?? "", `${path}.apiVersion`) || "v1";
  const cacheSize = kms["cachesize"] ?? undefined;
  const timeout = text(kms["timeout"] ?? TIMEOUT, `${path}.timeout`);
  const timeoutMs = durationMs(timeout);
  if (name === "") problems.push(required(`${path}.name`, "name is a mandatory field for a provider"));
  if (version !== "v1" && name.includes(":")) problems.push(invalid(`${path}.name`, name, `invalid KMS provider name ${name}, must not contain ':'`));
  if ((reloads || version !== "v1") && kmsNames.has(name)) problems.push(invalid(`${path}.name`, name, `duplicate KMS provider name ${name}, names must be unique`));
  kmsNames.add(name);
  if (timeoutMs <= 0) problems.push(invalid(`${path}.timeout`, timeout, "timeout should be a positive value"));
  problems.push(...endpointProblems(endpoint, `${path}.endpoint`));
  if (cacheSize !== undefined && version !== "v1") problems.push(invalid(`${path}.cachesize`, cacheSize, "cachesize is not supported in v2"));
  if (cacheSize === 0 && version === "v1") problems.push(invalid(`${path}.cachesize`, cacheSize, "cachesize should be a positive value, or negative to disable"));
  if (version !== "v1" && version !== "v2") problems.push(invalid(`${path}.apiVersion`, version, "unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported"));
  return { kind: "kms", kms: { name, endpoint, timeoutMs, version } };
}

function* endpointProblems(endpoint: string, path: string): Iterable<string> {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(endpoint)?.[1]?.toLowerCase() ?? "";
  if (endpoint === "") yield invalid(path, "", "endpoint is a mandatory field for a kms");
  else if (/[\0-\x1f\x7f]/.test(endpoint)) yield invalid(path, endpoint, `invalid endpoint for kms provider, error: parse ${JSON.stringify(endpoint)}: net/url: invalid control character in URL`);
  else if (scheme !== "unix") yield invalid(path, endpoint, `unsupported scheme ${JSON.stringify(scheme)} for KMS provider, only unix is supported`);
}

const UNIT_MS = { ns: 1e-6, us: 1e-3, "µs": 1e-3, "μs": 1e-3, ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;

/** As Go reads one: "1m30s". Throws what Go says of what is none. */
function durationMs(duration: string): number {
  const parts = /^([-+]?)((?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+|0)$/.exec(duration);
  if (!parts) throw new Error(`time: invalid duration ${JSON.stringify(duration)}`);
  const ms = [...parts[2]!.matchAll(/([\d.]+)([a-zµμ]+)/g)].reduce((sum, [, count, unit]) => sum + Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS], 0);
  return parts[1] === "-" ? -ms : ms;
}

const WITHOUT_API = ["apiserveripinfo", "serviceipallocations", "servicenodeportallocations"];

function* resourceProblems(names: readonly string[], path: string): Iterable<string> {
  const parsed = names.map((name) => ({ name: fullName(name), resource: name.split(".", 1)[0]!, group: groupOf(name) }));
  if (new Set(parsed.map(({ name }) => name)).size < names.length) yield invalid(path, names, "the same resource cannot be specified multiple times");
  const masked = parsed.some((one, i) => parsed.some((other, j) => i !== j && (one.name === "*.*" || (one.resource === "*" && one.group === other.group))));
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
