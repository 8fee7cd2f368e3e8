/**
 * Connections to other servers, kept open between requests: making one means a dial, perhaps through a tunnel, and a TLS handshake.
 *
 *   const kept = new KeptConnections(clock);
 *   const response = await askKept((fresh) => kept.open(key, make, { fresh }), () => request, signal);
 *
 * What `key` says must be all that matters: where it leads, whom we trust there, and what we show of ourselves.
 */
import type { Duplex } from "node:stream";
import type { Clock } from "../lifecycle/clock.ts";
import { http1Request, type Http1Request, type Http1Response } from "./http1-client.ts";

export interface Held {
  readonly connection: Duplex;
  /** It has carried another request before, and may have been closed meanwhile. */
  readonly reused: boolean;
  /** For Http1Request. */
  release(connection: Duplex): void;
}

interface Idle { readonly connection: Duplex; readonly drop: () => void; readonly forget: () => void }

/** Shorter than what servers in Go wait (90 s and more). Others close sooner: askKept asks again. */
const IDLE_MS_MAX = 30_000;
/** As many as are asked at once, again and again; the rest are made anew. Go keeps 25 for each host. */
const IDLE_PER_KEY_MAX = 25;
const IDLE_MAX = 200;

export class KeptConnections {
  readonly #clock: Pick<Clock, "after">;
  readonly #idle = new Map<string, Idle[]>();
  #count = 0;

  constructor(clock: Pick<Clock, "after">) { this.#clock = clock; }

  /** How many are idle. */
  get size(): number { return this.#count; }

  /** One that is idle, unless a `fresh` one is asked for, else a new one. Throws what `make` throws. */
  async open(key: string, make: () => Promise<Duplex>, { fresh = false }: { readonly fresh?: boolean } = {}): Promise<Held> {
    const release = (connection: Duplex): void => this.#keep(key, connection);
    const idle = fresh ? undefined : this.#idle.get(key)?.at(-1);
    if (!idle) return { connection: await make(), reused: false, release };
    idle.forget();
    return { connection: idle.connection, reused: true, release };
  }

  /** Closes all that are idle. */
  close(): void {
    for (const idle of [...this.#idle.values()].flat()) idle.drop();
  }

  #keep(key: string, connection: Duplex): void {
    const list = this.#idle.get(key) ?? [];
    if (connection.destroyed || !connection.writable || list.length >= IDLE_PER_KEY_MAX || this.#count >= IDLE_MAX) return void connection.destroy();
    const drop = (): void => {
      forget();
      connection.on("error", () => undefined); // it is given up
      connection.destroy();
    };
    const alarm = this.#clock.after(IDLE_MS_MAX, drop);
    const forget = (): void => {
      alarm.cancel();
      connection.off("data", drop).off("end", drop).off("close", drop).off("error", drop);
      list.splice(list.indexOf(entry), 1);
      if (list.length === 0) this.#idle.delete(key);
      this.#count--;
    };
    const entry: Idle = { connection, drop, forget };
    connection.on("data", drop).on("end", drop).on("close", drop).on("error", drop); // nobody has asked anything: whatever comes is its end
    list.push(entry);
    this.#idle.set(key, list);
    this.#count++;
  }
}

/** One exchange. Where a kept connection fails before it has answered, the server had closed it: it is asked once more on a new one, so only for what may be asked twice. */
export async function askKept(open: (fresh: boolean) => Promise<Held>, request: () => Http1Request, signal: AbortSignal): Promise<Http1Response> {
  const { connection, reused, release } = await open(false);
  try {
    return await http1Request(connection, { ...request(), release }, signal);
  } catch (error) {
    if (!reused || signal.aborted) throw error;
  }
  const anew = await open(true);
  return await http1Request(anew.connection, { ...request(), release: anew.release }, signal);
}
