/**
 * Credentials for registries, from imagePullSecrets and the node's own docker configuration.
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
  const parsed = JSON.parse(text) as { readonly auths?: DockerAuths };
  const auths = legacy ? (parsed as DockerAuths) : parsed.auths ?? {};
  return Object.entries(auths).flatMap(([location, value]) => (value ? [{ key: keyOf(location), auth: authOf(value) }] : []));
}

function authOf({ username = "", password = "", auth }: { readonly username?: string; readonly password?: string; readonly auth?: string }): AuthConfig {
  if (!auth) return { username, password };
  const decoded = Buffer.from(auth, "base64").toString("utf8");
  const colon = decoded.indexOf(":");
  if (colon < 0) throw new Error("unable to parse auth field, must be formatted as base64(username:password)");
  return { username: decoded.slice(0, colon), password: decoded.slice(colon + 1).replace(/\0+$/, "") };
}

function keyOf(location: string): string {
  const bare = location.replace(/^https?:\/\//, "");
  const slash = bare.indexOf("/");
  if (slash < 0) return bare;
  const path = bare.slice(slash).replace(/^\/v[12](?=\/)/, "");
  return path === "/" ? bare.slice(0, slash) : bare.slice(0, slash) + path;
}

export function entriesOfSecret({ type, data }: Secret): Entry[] {
  const [key, legacy] = type === "kubernetes.io/dockercfg" ? [".dockercfg", true] as const : [".dockerconfigjson", false] as const;
  const value = data?.[key];
  return value === undefined ? [] : parseDockerConfig(Buffer.from(value, "base64").toString("utf8"), { legacy });
}

/** Those to try for this image, in order. */
export function credentialsFor(image: string, entries: readonly Entry[]): AuthConfig[] {
  const repository = repositoryOf(image);
  const sorted = entries.toSorted((a, b) => (a.key < b.key ? 1 : a.key > b.key ? -1 : 0));
  const matching = sorted.filter(({ key }) => keyMatches(key, repository));
  if (matching.length > 0) return matching.map(({ auth }) => auth);
  return repository.startsWith("docker.io/") ? sorted.filter(({ key }) => key === DEFAULT_REGISTRY_HOST || key.startsWith(`${DEFAULT_REGISTRY_HOST}/`)).map(({ auth }) => auth) : [];
}

export function keyMatches(pattern: string, repository: string): boolean {
  const [want, have] = [split(pattern), split(repository)];
  if (want.port !== have.port || want.labels.length !== have.labels.length || !have.path.startsWith(want.path)) return false;
  return want.labels.every((label, i) => globMatches(label, have.labels[i]!));
}

function split(url: string): { readonly labels: readonly string[]; readonly port: string; readonly path: string } {
  const slash = url.indexOf("/");
  const authority = slash < 0 ? url : url.slice(0, slash);
  const port = /:(\d+)$/.exec(authority)?.[1] ?? "";
  return { labels: (port === "" ? authority : authority.slice(0, -port.length - 1)).split("."), port, path: slash < 0 ? "" : url.slice(slash) };
}
