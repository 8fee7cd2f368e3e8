/**
 * Credentials for registries, from imagePullSecrets, the node's own docker configuration and credential providers.
 *
 * A key of a docker configuration is a host, with glob patterns per label and a port that must be equal, and a prefix of a path. The longest
 * (by sort order, as upstream has it) match is tried first.
 *
 * Source: kubernetes v1.36 pkg/credentialprovider/{keyring,config}.go, pkg/credentialprovider/secrets/secrets.go
 */
import type { Secret } from "../../../core/api/gen/core.v1.ts";
import type { AuthConfig } from "../../cri/gen/runtime.v1.ts";
import { globMatches } from "./host-glob.ts";
import { repositoryOf } from "./image-name.ts";

export interface Entry { readonly key: string; readonly auth: AuthConfig }
type DockerAuths = Readonly<Record<string, { readonly username?: string; readonly password?: string; readonly auth?: string } | undefined>>;

const DEFAULT_REGISTRY_HOST = "index.docker.io";

/** Throws an Error when the text is no docker configuration. `legacy`: the older form, without "auths". */
export function parseDockerConfig(text: string, { legacy = false } = {}): Entry[] {
  const parsed = JSON.parse(text) as { readonly auths?: DockerAuths } | null;
  const auths = (legacy ? (parsed as DockerAuths | null) : parsed?.auths) ?? {};
  return Object.entries(auths).flatMap(([location, value]) => (value ? [{ key: keyOf(location), auth: authOf(value) }] : []));
}

function authOf({ username = "", password = "", auth }: { readonly username?: string; readonly password?: string; readonly auth?: string }): AuthConfig {
  if (!auth) return { username, password };
  const decoded = decodedAuth(auth);
  const colon = decoded.indexOf(":");
  if (colon < 0) throw new Error("unable to parse auth field, must be formatted as base64(username:password)");
  return { username: decoded.slice(0, colon), password: decoded.slice(colon + 1) };
}

/** Base64, with or without its padding, in lines or not. Throws an Error for what is none: half of a password would be shown to the registry. */
function decodedAuth(auth: string): string {
  const text = auth.replace(/[\r\n]/g, "");
  const digits = /^[A-Za-z0-9+/]*/.exec(text)![0];
  const padding = text.slice(digits.length);
  const isWhole = padding === "" ? digits.length % 4 !== 1 : padding === "=".repeat(-digits.length & 3) && digits.length % 4 > 1;
  if (!isWhole) throw new Error(`illegal base64 data at input byte ${padding === "" ? digits.length - 1 : digits.length}`);
  return Buffer.from(digits, "base64").toString("utf8");
}

/** What a place of a docker configuration is in the keyring: neither its scheme nor the version of the registry's API counts. */
export function keyOf(location: string): string {
  const bare = location.replace(/^https?:\/\//, "");
  const slash = bare.indexOf("/");
  if (slash < 0) return bare;
  const path = bare.slice(slash).replace(/^\/v[12](?=\/)/, "");
  return path === "/" ? bare.slice(0, slash) : bare.slice(0, slash) + path;
}

/** Throws an Error when what it holds is no docker configuration. Secrets of other types hold none. */
export function entriesOfSecret({ type, data }: Secret): Entry[] {
  const [key, legacy] = type === "kubernetes.io/dockercfg" ? [".dockercfg", true] as const : [".dockerconfigjson", false] as const;
  const value = type === "kubernetes.io/dockercfg" || type === "kubernetes.io/dockerconfigjson" ? data?.[key] : undefined;
  return value ? parseDockerConfig(Buffer.from(value, "base64").toString("utf8"), { legacy }) : [];
}

/** Those to try for this image, in order. */
export function credentialsFor<E extends Entry>(image: string, entries: readonly E[]): E[] {
  const repository = repositoryOf(image);
  const sorted = entries.toSorted((a, b) => (a.key < b.key ? 1 : a.key > b.key ? -1 : 0));
  const matching = sorted.filter(({ key }) => keyMatches(key, repository));
  return matching.length > 0 || !repository.startsWith("docker.io/") ? matching : sorted.filter(({ key }) => key === DEFAULT_REGISTRY_HOST);
}

export function keyMatches(pattern: string, repository: string): boolean {
  const [want, have] = [split(pattern), split(repository)];
  if (want.port !== have.port || want.labels.length !== have.labels.length || !have.path.startsWith(want.path)) return false;
  return want.labels.every((label, i) => globMatches(label, have.labels[i]!));
}

function split(url: string): { readonly labels: readonly string[]; readonly port: string; readonly path: string } {
  const slash = url.indexOf("/");
  const authority = slash < 0 ? url : url.slice(0, slash);
  const [, host = authority, port = ""] = /^(.*):(\d*)$/.exec(authority) ?? [];
  const address = port === "" ? undefined : /^\[(.*)\]$/.exec(host)?.[1]; // of IPv6
  return { labels: (address ?? host).split("."), port, path: slash < 0 ? "" : url.slice(slash) };
}
