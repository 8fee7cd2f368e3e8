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
import { type GoUrl, parseUrl, UrlError } from "../../../core/api/meta/go-url.ts";
import { dockerUsers } from "./docker-config.ts";
import { globMatches } from "./host-glob.ts";
import { repositoryOf } from "../../cri/image-name.ts";

export interface Entry { readonly key: string; readonly auth: AuthConfig }

const DEFAULT_REGISTRY_HOST = "index.docker.io";

/** Throws an Error when the text is no docker configuration. `legacy`: the older form, without "auths". Places that are none are left out. */
export function parseDockerConfig(text: string, { legacy = false } = {}): Entry[] {
  return [...dockerUsers(text, { legacy })].flatMap(([place, auth]) => entryOf(place, auth) ?? []);
}

/** Undefined: that is no place. */
export function entryOf(place: string, auth: AuthConfig): Entry | undefined {
  const key = keyOf(place);
  return key === undefined ? undefined : { key, auth };
}

/** What a place of a docker configuration is in the keyring: neither its scheme nor the version of the registry's API counts. */
function keyOf(place: string): string | undefined {
  const url = urlOf(/^https?:\/\//.test(place) ? place : `https://${place}`);
  if (!url) return undefined;
  const path = pathOf(url).replace(/^\/v[12](?=\/)/, "");
  return path === "/" ? url.host : url.host + path;
}

function urlOf(text: string): GoUrl | undefined {
  try {
    return parseUrl(text);
  } catch (error) {
    if (error instanceof UrlError) return undefined;
    throw error;
  }
}

function pathOf({ escapedPath }: GoUrl): string {
  try {
    return decodeURIComponent(escapedPath);
  } catch {
    return escapedPath; // bytes that are no text are in no image's name
  }
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
  if (!want || !have || want.port !== have.port || want.labels.length !== have.labels.length || !have.path.startsWith(want.path)) return false;
  return want.labels.every((label, i) => globMatches(label, have.labels[i]!));
}

function split(schemeless: string): { readonly labels: readonly string[]; readonly port: string; readonly path: string } | undefined {
  const url = urlOf(`https://${schemeless}`);
  if (!url) return undefined;
  const [, name, port = ""] = /^(.*):(\d*)$/.exec(url.host) ?? [];
  const isPortless = name === undefined || (url.host.startsWith("[") && url.host.endsWith("]")); // an IPv6 address keeps its brackets then
  return { labels: (isPortless ? url.host : name.replace(/^\[(.*)\]$/, "$1")).split("."), port: isPortless ? "" : port, path: pathOf(url) };
}
