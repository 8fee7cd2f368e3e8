/**
 * The certificates that clients are shown, by the name they ask for: from Secrets, which are watched one by one for as long as somebody refers to them, so that a
 * renewed certificate is shown to the next client.
 */
import { createSecureContext, type SecureContext } from "node:tls";
import type { Secret } from "../../core/api/gen/core.v1.ts";
import { objectKey } from "../../core/api/meta/object-meta.ts";
import type { Client } from "../../core/client/client.ts";
import { SECRETS } from "../../core/client/resources.ts";
import { watchedInformer } from "../../core/client/watched-informer.ts";
import type { CertificateUse } from "../../core/ingress/ingress-routes.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Random } from "../../core/lifecycle/random.ts";
import type { Log } from "../../core/observe/log.ts";
import type { OpenDoor } from "./doors.ts";

interface Watched { readonly stop: AbortController; readonly ended: Promise<void>; context: SecureContext | undefined }

export interface CertificatesDeps { readonly client: Client; readonly clock: Clock; readonly random: Random; readonly log: Log }

export class Certificates {
  readonly #deps: CertificatesDeps;
  readonly #watched = new Map<string, Watched>();
  /** By door: host, or ".example.com" for its wildcard, to the Secrets that may have its certificate: the first that has one is taken. */
  #byDoor = new Map<number, Map<string, string[]>>();

  constructor(deps: CertificatesDeps) { this.#deps = deps; }

  use(doors: readonly Pick<OpenDoor, "target" | "certificates">[]): void {
    const wanted = new Map<string, CertificateUse>();
    this.#byDoor = new Map(doors.map(({ target, certificates }) => {
      const byHost = new Map<string, string[]>();
      for (const one of certificates) {
        const key = objectKey(one.namespace, one.secret);
        wanted.set(key, one);
        const host = one.host.startsWith("*.") ? one.host.slice(1) : one.host;
        byHost.set(host, [...(byHost.get(host) ?? []), key]);
      }
      return [target, byHost];
    }));
    for (const [key, { stop }] of this.#watched) {
      if (wanted.has(key)) continue;
      stop.abort();
      this.#watched.delete(key);
    }
    for (const [key, one] of wanted) if (!this.#watched.has(key)) this.#watch(key, one);
  }

  contextFor(serverName: string, door: number): SecureContext | undefined {
    const name = serverName.toLowerCase();
    const dot = name.indexOf(".");
    for (const host of [name, ...(dot > 0 ? [name.slice(dot)] : []), ""])
      for (const key of this.#byDoor.get(door)?.get(host) ?? []) {
        const context = this.#watched.get(key)?.context;
        if (context) return context;
      }
    return undefined;
  }

  async close(): Promise<void> {
    const all = [...this.#watched.values()];
    this.use([]);
    await Promise.all(all.map(({ ended }) => ended));
  }

  #watch(key: string, { namespace, secret }: CertificateUse): void {
    const { client, clock, random, log } = this.#deps;
    const informer = watchedInformer(client.resource(SECRETS), { clock, random, log, query: { namespace, fieldSelector: `metadata.name=${secret}` } });
    const stop = new AbortController();
    const watched: Watched = { stop, ended: informer.run(stop.signal, () => {}), context: undefined };
    informer.onChange(({ object, deleted }) => {
      if (deleted) return void (watched.context = undefined);
      try {
        watched.context = contextOf(object);
      } catch (error) {
        log.warn("a certificate cannot be used", { namespace, secret, error });
      }
    });
    this.#watched.set(key, watched);
  }
}

function contextOf({ data = {} }: Readonly<Secret>): SecureContext {
  const pem = (name: string): string => {
    const value = data[name];
    if (value === undefined) throw new Error(`the Secret has no ${name}`);
    return Buffer.from(value as string, "base64").toString();
  };
  return createSecureContext({ cert: pem("tls.crt"), key: pem("tls.key"), minVersion: "TLSv1.2" });
}
