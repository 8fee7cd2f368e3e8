/**
 * Connections to endpoints, kept open between requests.
 *
 * A kept connection may be closed by the endpoint just as the next request is sent, and then nobody knows whether that was heard. So requests that may not be
 * sent twice only get connections that were in use a moment ago, or new ones.
 */
import type { Duplex } from "node:stream";
import * as tls from "node:tls";
import type { Endpoint } from "../../core/ingress/endpoints.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { dialEndpoint } from "./dial-endpoint.ts";

export interface Upstream {
  readonly connection: Duplex;
  /** It has carried another request before. */
  readonly reused: boolean;
}

interface Idle { readonly connection: Duplex; readonly sinceMs: number; readonly forget: () => void }

/** Most servers close what has been quiet for 5 s and more. */
const IDLE_MS_MAX = 4_000;
const FRESH_MS = 1_000;
const IDLE_PER_ENDPOINT_MAX = 64;

export class Upstreams {
  readonly #clock: Clock;
  readonly #idle = new Map<string, Idle[]>();
  readonly #active = new Map<string, number>();

  constructor(clock: Clock) { this.#clock = clock; }

  /** Requests under way. */
  load(endpoint: Endpoint): number { return this.#active.get(keyOf(endpoint)) ?? 0; }
  begin(endpoint: Endpoint): void { this.#active.set(keyOf(endpoint), this.load(endpoint) + 1); }
  end(endpoint: Endpoint): void {
    const left = this.load(endpoint) - 1;
    if (left > 0) this.#active.set(keyOf(endpoint), left);
    else this.#active.delete(keyOf(endpoint));
  }

  /** `secure`: with TLS; pods have no certificates anyone could check. `fresh`: one that surely is still open. */
  async acquire(endpoint: Endpoint, { secure, fresh, signal }: { readonly secure: boolean; readonly fresh: boolean; readonly signal: AbortSignal }): Promise<Upstream> {
    const idle = this.#idle.get(keyOf(endpoint, secure)) ?? [];
    for (let last = idle.pop(); last !== undefined; last = idle.pop()) {
      last.forget();
      const ageMs = this.#clock.uptimeMs() - last.sinceMs;
      if (!last.connection.destroyed && ageMs < (fresh ? FRESH_MS : IDLE_MS_MAX)) return { connection: last.connection, reused: true };
      last.connection.destroy();
    }
    const socket = await dialEndpoint(endpoint, { clock: this.#clock, signal });
    return { connection: secure ? await encrypted(socket as unknown as tls.TLSSocket, signal) : socket, reused: false };
  }

  release(endpoint: Endpoint, secure: boolean, connection: Duplex): void {
    const key = keyOf(endpoint, secure);
    const idle = this.#idle.get(key) ?? [];
    if (connection.destroyed || !connection.writable || idle.length >= IDLE_PER_ENDPOINT_MAX) return void connection.destroy();
    const drop = (): void => {
      entry.forget();
      connection.on("error", () => undefined); // it is given up
      connection.destroy();
      const at = idle.indexOf(entry);
      if (at >= 0) idle.splice(at, 1);
    };
    const entry: Idle = { connection, sinceMs: this.#clock.uptimeMs(), forget: () => void connection.off("data", drop).off("end", drop).off("close", drop).off("error", drop) };
    connection.on("data", drop).on("end", drop).on("close", drop).on("error", drop);
    idle.push(entry);
    this.#idle.set(key, idle);
  }

  /** Closes what has been idle for too long, or everything. */
  sweep(olderThanMs: number = IDLE_MS_MAX): void {
    const nowMs = this.#clock.uptimeMs();
    for (const [key, idle] of this.#idle) {
      for (const one of [...idle]) if (nowMs - one.sinceMs >= olderThanMs) one.connection.destroy();
      const left = idle.filter(({ connection }) => !connection.destroyed);
      if (left.length === 0) this.#idle.delete(key);
      else idle.splice(0, idle.length, ...left);
    }
  }
}

function keyOf({ address, port }: Endpoint, secure = false): string { return `${address} ${port}${secure ? " tls" : ""}`; }

async function encrypted(socket: tls.TLSSocket, signal: AbortSignal): Promise<Duplex> {
  const { promise, resolve, reject } = Promise.withResolvers<Duplex>();
  const connection = tls.connect({ socket, rejectUnauthorized: false, ALPNProtocols: ["http/1.1"] }, () => resolve(connection));
  const quit = (): void => reject(new Error("context canceled"));
  const closed = (): void => reject(new Error("EOF"));
  connection.on("error", reject).on("close", closed);
  signal.addEventListener("abort", quit, { once: true });
  try {
    return await promise;
  } catch (error) {
    connection.on("error", () => undefined); // what comes now comes after the end
    connection.destroy();
    socket.destroy();
    throw error;
  } finally {
    signal.removeEventListener("abort", quit);
    connection.off("error", reject).off("close", closed);
  }
}
