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

interface Idle { readonly connection: Duplex; readonly sinceMs: number; readonly drop: () => void; readonly forget: () => void }

export interface KeptLimits {
  /** How long one is kept that nobody asks for. */
  readonly idleMs: number;
  readonly perKey: number;
  readonly all: number;
}

/**
 * Shorter than what servers in Go wait (90 s and more). Others close sooner: askKept asks again.
 * As many as are asked at once, again and again; the rest are made anew. Go keeps 25 for each host.
 */
const LIMITS: KeptLimits = { idleMs: 30_000, perKey: 25, all: 200 };

export class KeptConnections {
  readonly #clock: Pick<Clock, "after" | "uptimeMs">;
  readonly #limits: KeptLimits;
  readonly #idle = new Map<string, Idle[]>();
  #count = 0;

  constructor(clock: Pick<Clock, "after" | "uptimeMs">, limits: KeptLimits = LIMITS) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** How many are idle. */
  get size(): number { return this.#count; }

  /** One that is idle, and has been for less than `quietMs`, unless a `fresh` one is asked for, else a new one. Throws what `make` throws. */
  async open(key: string, make: () => Promise<Duplex>, { fresh = false, quietMs }: { readonly fresh?: boolean; readonly quietMs?: number | undefined } = {}): Promise<Held> {
    const release = (connection: Duplex): void => this.#keep(key, connection);
    const idle = fresh ? undefined : this.#idle.get(key)?.at(-1);
    if (!idle || (quietMs !== undefined && this.#clock.uptimeMs() - idle.sinceMs >= quietMs)) return { connection: await make(), reused: false, release };
    idle.forget();
    return { connection: idle.connection, reused: true, release };
  }

  /** Closes all that are idle. */
  close(): void {
    for (const idle of [...this.#idle.values()].flat()) idle.drop();
  }

  #keep(key: string, connection: Duplex): void {
    const list = this.#idle.get(key) ?? [];
    if (connection.destroyed || !connection.writable || list.length >= this.#limits.perKey || this.#count >= this.#limits.all) return void connection.on("error", () => undefined).destroy();
    const drop = (): void => {
      forget();
      connection.on("error", () => undefined); // it is given up
      connection.destroy();
    };
    const alarm = this.#clock.after(this.#limits.idleMs, drop);
    const forget = (): void => {
      alarm.cancel();
      connection.off("data", drop).off("end", drop).off("close", drop).off("error", drop);
      list.splice(list.indexOf(entry), 1);
      if (list.length === 0) this.#idle.delete(key);
      this.#count--;
    };
    const entry: Idle = { connection, sinceMs: this.#clock.uptimeMs(), drop, forget };
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
