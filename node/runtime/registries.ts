/**
 * registries.yaml: mirrors, certificates and credentials of image registries, as k3s has it, for the bundled containerd.
 *
 *   mirrors:
 *     docker.io: { endpoint: ["https://mirror.example.com:5000"] }
 *     "*": { endpoint: ["https://cache.example.com"] }
 *   configs:
 *     mirror.example.com:5000:
 *       auth: { username: u, password: p }                     or auth: <base64>, identity_token: …
 *       tls: { ca_file: /etc/ca.pem, cert_file: …, key_file: …, insecure_skip_verify: false }
 *
 * A registry's mirrors are tried in order, then the registry itself. Mirrors and certificates become a hosts.toml per registry, which containerd reads at
 * each pull; credentials stand in its own configuration.
 *
 * API: https://github.com/containerd/containerd/blob/main/docs/hosts.md
 */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileTextSync } from "../../core/lifecycle/file-text.ts";

export interface RegistryAuth { readonly username?: string | undefined; readonly password?: string | undefined; readonly auth?: string | undefined; readonly identity_token?: string | undefined }
export interface RegistryTls { readonly cert_file?: string | undefined; readonly key_file?: string | undefined; readonly ca_file?: string | undefined; readonly insecure_skip_verify?: boolean | undefined }
export interface Registries {
  readonly mirrors: Readonly<Record<string, { readonly endpoint: readonly string[] }>>;
  readonly configs: Readonly<Record<string, { readonly auth?: RegistryAuth | undefined; readonly tls?: RegistryTls | undefined }>>;
}

export const NO_REGISTRIES: Registries = { mirrors: {}, configs: {} };

const MARK = "# Written by coracle from registries.yaml.";
/** Docker Hub's own name is not where it is served. */
const SERVED_AT: Readonly<Record<string, string>> = { "docker.io": "registry-1.docker.io" };

/** Throws an Error for the user. `value`: the file, parsed; each scalar in it is a text. */
export function decodeRegistries(value: unknown): Registries {
  const root = record(value, "registries.yaml", ["mirrors", "configs"]);
  const mirrors = Object.entries(record(root["mirrors"], "mirrors")).map(([name, mirror]) => {
    const at = `mirrors.${name}`, host = hostName(name, at);
    const { endpoint = [], rewrite } = record(mirror, at, ["endpoint", "rewrite"]);
    if (rewrite !== undefined) throw new Error(`${at}.rewrite: containerd cannot rewrite names of repositories`);
    if (!Array.isArray(endpoint)) throw new Error(`${at}.endpoint: must be a list of URLs`);
    return [host, { endpoint: endpoint.map((one) => endpointUrl(String(one), `${at}.endpoint`)) }] as const;
  });
  const configs = Object.entries(record(root["configs"], "configs")).map(([name, config]) => {
    const at = `configs.${name}`, host = hostName(name, at);
    const { auth, tls } = record(config, at, ["auth", "tls"]);
    return [host, { ...(auth ? { auth: texts(auth, `${at}.auth`, ["username", "password", "auth", "identity_token"]) } : {}), ...(tls ? { tls: tlsOf(tls, `${at}.tls`) } : {}) }] as const;
  });
  return { mirrors: Object.fromEntries(mirrors), configs: Object.fromEntries(configs) };
}

/** Some give its URL. */
function hostName(text: string, at: string): string {
  const host = text.replace(/^https?:\/\//, "").replace(/\/$/, "");
  if (host !== "*" && !/^[A-Za-z0-9.\-:[\]]+$/.test(host)) throw new Error(`${at}: ${JSON.stringify(text)} is no host of a registry, as registry.example.com:5000 is one`);
  return host;
}

function tlsOf(value: unknown, at: string): RegistryTls {
  const { insecure_skip_verify: insecure = "false", ...files } = texts(value, at, ["cert_file", "key_file", "ca_file", "insecure_skip_verify"]);
  if (!/^(true|yes|on|false|no|off)$/i.test(insecure)) throw new Error(`${at}.insecure_skip_verify: must be true or false`);
  return { ...files, ...(/^(true|yes|on)$/i.test(insecure) ? { insecure_skip_verify: true } : {}) };
}

/** Those that say something. Their values are told to nobody. */
function texts<K extends string>(value: unknown, at: string, known: readonly K[]): Partial<Record<K, string>> {
  return Object.fromEntries(Object.entries(record(value, at, known)).flatMap(([key, text]) => {
    if (typeof text === "object" && text !== null) throw new Error(`${at}.${key}: must be a text`);
    return text === null || text === undefined || text === "" ? [] : [[key, String(text)]];
  })) as Partial<Record<K, string>>;
}

/** What is left empty is a map of nothing. */
function record(value: unknown, at: string, known?: readonly string[]): Record<string, unknown> {
  if (value === null || value === undefined || value === "") return {};
  if (typeof value !== "object" || Array.isArray(value)) throw new Error(`${at}: must be a map`);
  const strange = known && Object.keys(value).find((key) => !known.includes(key));
  if (strange !== undefined) throw new Error(`${at}: there is no ${strange}; there are ${known!.join(", ")}`);
  return value as Record<string, unknown>;
}

function endpointUrl(text: string, at: string): string {
  const url = URL.parse(/^https?:\/\//.test(text) ? text : `https://${text}`);
  if (!url) throw new Error(`${at}: ${JSON.stringify(text)} is no URL`);
  return url.href.replace(/\/$/, "");
}

/** hosts.toml of each registry, by its directory below certs.d; as containerd looks for it, with a port's colon as it is. Pure. */
export function hostsFiles({ mirrors, configs }: Registries): ReadonlyMap<string, string> {
  const names = new Set([...Object.keys(mirrors), ...Object.keys(configs).filter((host) => configs[host]?.tls)]);
  return new Map([...names].map((name) => {
    const isDefault = name === "*";
    const own = isDefault ? [] : [`server = ${JSON.stringify(`https://${SERVED_AT[name] ?? name}`)}`, ...tlsLines(configs[name]?.tls)];
    const hosts = (mirrors[name]?.endpoint ?? []).flatMap((endpoint) => {
      const { host, pathname } = new URL(endpoint);
      const isElsewhere = pathname !== "/" && !pathname.endsWith("/v2");
      return ["", `[host.${JSON.stringify(endpoint)}]`, `capabilities = ["pull", "resolve"]`, ...(isElsewhere ? ["override_path = true"] : []), ...tlsLines(configs[host]?.tls)];
    });
    return [isDefault ? "_default" : name, [MARK, ...own, ...hosts, ""].join("\n")] as const;
  }));
}

function tlsLines(tls: RegistryTls | undefined): string[] {
  if (!tls) return [];
  return [
    ...(tls.ca_file ? [`ca = ${JSON.stringify(tls.ca_file)}`] : []), ...(tls.cert_file ? [`client = [[${JSON.stringify(tls.cert_file)}, ${JSON.stringify(tls.key_file ?? "")}]]`] : []),
    ...(tls.insecure_skip_verify ? ["skip_verify = true"] : []),
  ];
}

/** Credentials by host, as containerd's configuration names them. */
export function registryAuths({ configs }: Registries): ReadonlyMap<string, Readonly<Record<string, string>>> {
  return new Map(Object.entries(configs).flatMap(([host, { auth }]) => {
    if (!auth) return [];
    const { username, password, auth: encoded, identity_token: identitytoken } = auth;
    const fields = Object.entries({ username, password, auth: encoded, identitytoken }).filter((pair): pair is [string, string] => typeof pair[1] === "string" && pair[1] !== "");
    return [[SERVED_AT[host] ?? host, Object.fromEntries(fields)] as const];
  }));
}

/** Writes them, and removes those of before. What others have put there stays. */
export function writeHostsFiles(directory: string, files: ReadonlyMap<string, string>): void {
  mkdirSync(directory, { recursive: true });
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    if (!entry.isDirectory() || files.has(entry.name)) continue;
    const path = join(directory, entry.name, "hosts.toml");
    if (fileTextSync(path)?.startsWith(MARK)) rmSync(join(directory, entry.name), { recursive: true });
  }
  for (const [name, text] of files) {
    mkdirSync(join(directory, name), { recursive: true });
    const path = join(directory, name, "hosts.toml");
    rmSync(path, { force: true }); // its sectors may be bad
    writeFileSync(path, text, { mode: 0o600 });
  }
}
