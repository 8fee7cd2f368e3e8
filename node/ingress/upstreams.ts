/**
 * Connections to endpoints, kept open between requests.
 *
 * A kept connection may be closed by the endpoint just as the next request is sent, and then nobody knows whether that was heard. So requests that may not be
 * sent twice only get connections that were in use a moment ago, or new ones.
 */
import type { Endpoint } from "../../core/ingress/endpoints.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { dialTls } from "../../core/net/dial-tls.ts";
import { type Held, KeptConnections } from "../../core/net/kept-connections.ts";
import { dialEndpoint } from "./dial-endpoint.ts";

/** Most servers close what has been quiet for 5 s and more. */
const KEPT = { idleMs: 4_000, perKey: 64, all: 4_096 };
const FRESH_MS = 1_000;

export class Upstreams {
  readonly #clock: Clock;
  readonly #kept: KeptConnections;
  readonly #active = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
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

  /** `secure`: with TLS; pods have no certificates anyone could check. `fresh`: one that surely is still open. */
  async acquire(endpoint: Endpoint, { secure, fresh, signal }: { readonly secure: boolean; readonly fresh: boolean; readonly signal: AbortSignal }): Promise<Held> {
    return await this.#kept.open(keyOf(endpoint, secure), async () => {
      const socket = await dialEndpoint(endpoint, { clock: this.#clock, signal });
      return secure ? await dialTls(socket, { ca: undefined, serverName: endpoint.address, insecure: true, signal }) : socket;
    }, { quietMs: fresh ? FRESH_MS : undefined });
  }

  /** Those that are idle. */
  close(): void { this.#kept.close(); }
}

function keyOf({ address, port }: Endpoint, secure = false): string { return `${address} ${port}${secure ? " tls" : ""}`; }
