/**
 * The certificates that clients are shown, by the name they ask for: from Secrets, which are watched one by one for as long as somebody refers to them, so that a
 * renewed certificate is shown to the next client.
 */
import { createSecureContext, type SecureContext } from "node:tls";
import type { Secret } from "../../core/api/gen/core.v1.ts";
import { type ObjectKey, objectKey } from "../../core/api/meta/object-meta.ts";
import { SECRETS } from "../../core/client/resources.ts";
import { KEY_AGREEMENTS } from "../../core/net/tls.ts";
import type { OpenDoor } from "./doors.ts";
import { ReadObjects, type ReadObjectsDeps } from "./read-objects.ts";

export class Certificates {
  readonly #contexts: ReadObjects<Secret, SecureContext>;
  /** By door: host, or ".example.com" for its wildcard, to the Secrets that may have its certificate: the first that has one is taken. */
  #byDoor = new Map<number, Map<string, ObjectKey[]>>();

  constructor(deps: ReadObjectsDeps) { this.#contexts = new ReadObjects(deps, SECRETS, contextOf); }

  use(doors: readonly Pick<OpenDoor, "target" | "certificates">[]): void {
    this.#byDoor = new Map(doors.map(({ target, certificates }) => {
      const byHost = Map.groupBy(certificates, ({ host, labels }) => (labels === "one" && host.startsWith("*.") ? host.slice(1) : host));
      return [target, new Map([...byHost].map(([host, all]) => [host, [...new Set(all.map(({ namespace, secret }) => objectKey(namespace, secret)))]]))];
    }));
    this.#contexts.use(new Set([...this.#byDoor.values()].flatMap((hosts) => [...hosts.values()].flat())));
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
