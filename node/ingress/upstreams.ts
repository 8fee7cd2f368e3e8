/**
 * Connections to endpoints, kept open between requests.
 *
 * A kept connection may be closed by the endpoint just as the next request is sent, and then nobody knows whether that was heard. So requests that may not be
 * sent twice only get connections that were in use a moment ago, or new ones.
 */
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { ObjectKey } from "../../core/api/meta/object-meta.ts";
import type { BackendTls, CertificateName } from "../../core/ingress/backend-tls.ts";
import type { Endpoint } from "../../core/ingress/endpoints.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { dialTls } from "../../core/net/dial-tls.ts";
import { type Held, KeptConnections } from "../../core/net/kept-connections.ts";
import { dialEndpoint, type Withheld } from "./dial-endpoint.ts";

/** Most servers close what has been quiet for 5 s and more. */
const KEPT = { idleMs: 4_000, perKey: 64, all: 4_096 };
const FRESH_MS = 1_000;

/** What is asked of an endpoint's certificate. */
export interface UpstreamTls {
  /** Another one is another trust: connections are not shared. */
  readonly key: string;
  /** PEM; undefined: whom this machine trusts. */
  readonly ca: string | undefined;
  /** Undefined: any certificate will do. Pods have none that anyone could check, unless a policy says which. */
  readonly serverName: string | undefined;
  readonly names: readonly CertificateName[];
}

export class Upstreams {
  readonly #clock: Clock;
  readonly #withheld: Withheld;
  readonly #kept: KeptConnections;
  readonly #active = new Map<string, number>();

  constructor(clock: Clock, withheld: Withheld) {
    this.#clock = clock;
    this.#withheld = withheld;
    this.#kept = new KeptConnections(clock, KEPT);
  }

  /** Requests under way. */
  load(endpoint: Endpoint): number { return this.#active.get(keyOf(endpoint)) ?? 0; }
  begin(endpoint: Endpoint): void { this.#active.set(keyOf(endpoint), this.load(endpoint) + 1); }
  end(endpoint: Endpoint): void {
    const left = this.load(endpoint) - 1;
    if (left > 0) this.#active.set(keyOf(endpoint), left);
    else this.#active.delete(keyOf(endpoint));
  }

  /** `fresh`: one that surely is still open. */
  async acquire(endpoint: Endpoint, { tls, fresh, signal }: { readonly tls: UpstreamTls | undefined; readonly fresh: boolean; readonly signal: AbortSignal }): Promise<Held> {
    return await this.#kept.open(keyOf(endpoint, tls), async () => {
      const socket = await this.dial(endpoint, signal);
      return tls ? await dialSecurely(socket, endpoint, { tls, alpn: "http/1.1", signal }) : socket;
    }, { quietMs: fresh ? FRESH_MS : undefined });
  }

  /** A new one, with nothing said on it. */
  async dial(endpoint: Endpoint, signal: AbortSignal): Promise<Socket> { return await dialEndpoint(endpoint, { withheld: this.#withheld, clock: this.#clock, signal }); }

  /** Those that are idle. */
  close(): void { this.#kept.close(); }
}

/** `authorityOf`: PEM. Undefined: there is nobody whom it may trust. */
export function upstreamTls({ authorities, serverName, names, policy }: BackendTls, authorityOf: (key: ObjectKey) => string | undefined): UpstreamTls | undefined {
  const ca = authorities === "System" ? undefined : authorities.flatMap((key) => authorityOf(key) ?? []).join("\n");
  const wanted = [policy, serverName, ...names.map(({ type, value }) => `${type}:${value}`)].join(" ");
  return ca === "" ? undefined : { key: `${wanted} ${ca === undefined ? "System" : Bun.hash(ca)}`, ca, serverName, names };
}

/** Closes the connection when the endpoint is not who it should be. */
export async function dialSecurely(socket: Duplex, { address }: Endpoint, { tls: { ca, serverName, names }, alpn, signal }: { readonly tls: UpstreamTls; readonly alpn: "http/1.1" | "h2" | undefined; readonly signal: AbortSignal }): Promise<Duplex> {
  return await dialTls(socket, { ca, serverName: serverName ?? address, names, alpn, insecure: serverName === undefined, signal });
}

/** An alias has connections of its own: where it may not lead, it is not to find one that is open. */
export function keyOf({ address, port, isAlias }: Endpoint, tls?: UpstreamTls): string { return `${isAlias ? "alias " : ""}${address} ${port}${tls ? ` tls ${tls.key}` : ""}`; }
