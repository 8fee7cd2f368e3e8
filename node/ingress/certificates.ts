/**
 * The certificates that clients are shown, by the name they ask for: from Secrets, which are watched one by one for as long as somebody refers to them, so that a
 * renewed certificate is shown to the next client.
 */
import { createSecureContext, type SecureContext } from "node:tls";
import type { Secret } from "../../core/api/gen/core.v1.ts";
import { type ObjectKey, objectKey, splitKey } from "../../core/api/meta/object-meta.ts";
import { SECRETS } from "../../core/client/resources.ts";
import { KEY_AGREEMENTS } from "../../core/net/tls.ts";
import type { OpenDoor } from "./doors.ts";
import { ReadObjects, type ReadObjectsDeps } from "./read-objects.ts";

/** Secrets that are watched, on each node: one takes some 25 kB of the server, whether or not it is there, and anybody who may make an Ingress or a Gateway may name thousands. */
const SECRETS_MAX = 5_000;

export class Certificates {
  readonly #contexts: ReadObjects<Secret, SecureContext>;
  /** By door: host, or ".example.com" for its wildcard, to the Secrets that may have its certificate: the first that has one is taken. */
  #byDoor = new Map<number, Map<string, ObjectKey[]>>();
  readonly #log: ReadObjectsDeps["log"];

  constructor(deps: ReadObjectsDeps) {
    this.#contexts = new ReadObjects(deps, SECRETS, contextOf);
    this.#log = deps.log;
  }

  use(doors: readonly Pick<OpenDoor, "target" | "certificates">[]): void {
    this.#byDoor = new Map(doors.map(({ target, certificates }) => {
      const byHost = Map.groupBy(certificates, ({ host, labels }) => (labels === "one" && host.startsWith("*.") ? host.slice(1) : host));
      return [target, new Map([...byHost].map(([host, all]) => [host, [...new Set(all.map(({ namespace, secret }) => objectKey(namespace, secret)))]]))];
    }));
    const named = new Set([...this.#byDoor.values()].flatMap((hosts) => [...hosts.values()].flat())), watched = shared(named, SECRETS_MAX);
    if (watched.size < named.size) this.#log.warn("Ingresses and Gateways name more Secrets than are watched: who names most goes without some of them", { named: named.size, watched: watched.size });
    this.#contexts.use(watched);
  }

  contextFor(serverName: string, door: number): SecureContext | undefined {
    for (const host of hostsOf(serverName.toLowerCase().replace(/\.$/, "")))
      for (const key of this.#byDoor.get(door)?.get(host) ?? []) {
        const context = this.#contexts.get(key);
        if (context) return context;
      }
    return undefined;
  }

  async close(): Promise<void> { await this.#contexts.close(); }
}

/** Of all keys `max`: each namespace has what it wants, or as many as the others who want more, the first of its own. */
export function shared(keys: ReadonlySet<ObjectKey>, max: number): ReadonlySet<ObjectKey> {
  if (keys.size <= max) return keys;
  const byNamespace = Map.groupBy(keys, (key) => splitKey(key).namespace);
  const chosen = new Set<ObjectKey>();
  let left = byNamespace.size;
  for (const own of [...byNamespace.values()].toSorted((a, b) => a.length - b.length)) for (const key of own.slice(0, Math.floor((max - chosen.size) / left--))) chosen.add(key);
  return chosen;
}

/** What a name may stand under, the most specific first. */
function hostsOf(name: string): string[] {
  const hosts = [name], first = name.indexOf(".");
  if (first > 0) hosts.push(name.slice(first));
  for (let dot = first; dot > 0; dot = name.indexOf(".", dot + 1)) hosts.push(`*${name.slice(dot)}`);
  return [...hosts, ""];
}

function contextOf({ data = {} }: Readonly<Secret>): SecureContext {
  const pem = (name: string): string => {
    const value = data[name];
    if (value === undefined) throw new Error(`the Secret has no ${name}`);
    return Buffer.from(value as string, "base64").toString();
  };
  return createSecureContext({ cert: pem("tls.crt"), key: pem("tls.key"), minVersion: "TLSv1.2", ...KEY_AGREEMENTS });
}
