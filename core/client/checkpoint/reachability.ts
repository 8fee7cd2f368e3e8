/**
 * Whether an API server can be reached, and which one: found out once, for everything in this process that talks to it.
 *
 *   unknown ──probe──▶ online ──suspect()──▶ probe ──▶ online (perhaps at another server)
 *                        ▲                    │
 *                        └── probe, 1 s … 10 s ┘ offline
 *
 * Nothing is sent while all is well: only a failure elsewhere (`suspect`) makes it look. Any answer at all counts, but those with which a load
 * balancer says that nobody is behind it. One that comes after its server was taken for gone counts as well: over a slow link a handshake alone
 * may take that long, and from then on more time is given.
 */
import { errorText } from "../../api/meta/error-text.ts";
import { backoffMs } from "../../lifecycle/backoff.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import type { Random } from "../../lifecycle/random.ts";
import type { Runnable } from "../../lifecycle/run-all.ts";
import type { Log } from "../../observe/log.ts";

export type Reach = "unknown" | "online" | "offline";

export interface Reachability {
  readonly state: Reach;
  /** Aborts at the next loss of the server that is in use; a new one after each. */
  readonly connection: AbortSignal;
  /** Since when nobody answers, by `uptimeMs`; undefined unless offline. */
  readonly offlineSinceMs: number | undefined;
  /** Of the server in use: https://host:port. */
  server(): string;
  /** Something failed that may have to do with the server. */
  suspect(): void;
  /** Resolves when a server answers, when `signal` aborts, or after `ms`. */
  whenOnline(signal: AbortSignal, ms?: number): Promise<void>;
  /** Resolves when the first probe has ended, or `signal` aborts. */
  whenKnown(signal: AbortSignal): Promise<void>;
}

export interface ReachabilityDeps {
  /** All that may be tried, the preferred first. Asked again each time. */
  readonly servers: () => readonly string[];
  /** Throws, with the reason, if there is no answer. */
  readonly probe: (server: string, signal: AbortSignal) => Promise<void>;
  /** The server in use is lost, or has been left for another. */
  readonly onLost?: ((server: string) => void) | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/** Without an answer for so long the server is taken for gone, or, where the last answer took its time, for so many times that. */
const PATIENCE_MS_MIN = 5_000;
const PATIENCE_FACTOR = 3;
/** Beside all else an answer is waited for this long. */
const PROBE_MS_MAX = 30_000;
/** Of one loss: more are names for the same, or numbers in them. */
const REASONS_MAX = 4;
const RETRY = { minMs: 500, maxMs: 5_000 }; // and up to as much again, at random: all agents notice a return at the same time

export function reachability({ servers, probe, onLost, clock, random, log }: ReachabilityDeps): Reachability & Runnable {
  let state: Reach = "unknown";
  let current = servers()[0]!;
  let connection = new AbortController();
  let offlineSinceMs: number | undefined;
  let patienceMs = PATIENCE_MS_MIN;
  let last: { readonly server: string; readonly atMs: number } | undefined; // the last answer
  let suspected = Promise.withResolvers<void>();
  let changed = Promise.withResolvers<void>();
  const told = new Set<string>(); // why nobody has answered since the server was lost: one that is down for a while may come back as another one

  function become(next: Reach, server = current): void {
    const before = current;
    const lost = state === "online" && (next === "offline" || server !== before);
    const same = next === state && server === current;
    state = next;
    current = server;
    offlineSinceMs = next === "offline" ? offlineSinceMs ?? clock.uptimeMs() : undefined;
    if (same) return;
    if (lost) {
      connection.abort(new Error(`the connection to ${before} is lost`));
      connection = new AbortController();
      onLost?.(before);
    }
    const waitedFor = changed;
    changed = Promise.withResolvers();
    waitedFor.resolve();
  }

  /** Undefined if it does; why not otherwise, as far as is known by then. */
  async function answers(server: string, signal: AbortSignal): Promise<unknown> {
    const startMs = clock.uptimeMs();
    const late = new AbortController(), known = new AbortController();
    const noAnswer = (ms: number): Error => new Error(`no answer within ${(ms / 1000).toFixed()} s`);
    const alarm = clock.after(PROBE_MS_MAX, () => late.abort(noAnswer(PROBE_MS_MAX)));
    const probed = probe(server, AbortSignal.any([signal, late.signal])).then(() => answered(server, clock.uptimeMs() - startMs), (error: unknown) => error ?? new Error("no answer")).finally(() => {
      alarm.cancel();
      known.abort();
    });
    return await Promise.race([probed, clock.sleep(patienceMs, AbortSignal.any([signal, known.signal])).then(() => (known.signal.aborted ? probed : noAnswer(patienceMs)))]);
  }

  function answered(server: string, tookMs: number): void {
    patienceMs = Math.min(PROBE_MS_MAX, Math.max(PATIENCE_MS_MIN, PATIENCE_FACTOR * tookMs));
    last = { server, atMs: clock.uptimeMs() };
    if (state === "offline") use(server);
  }

  function use(server: string): void {
    if (server !== current || state === "offline") log.info("the API server answers", { server });
    become("online", server);
  }

  /** The one in use first, then the others. Returns why none answers. */
  async function look(signal: AbortSignal): Promise<unknown> {
    const startMs = clock.uptimeMs();
    let reason: unknown;
    for (const server of new Set([...(servers().includes(current) ? [current] : []), ...servers()])) {
      const problem = await answers(server, signal);
      if (signal.aborted) return undefined;
      if (problem === undefined) return void use(server);
      reason ??= problem;
    }
    if (last && last.atMs >= startMs) return void use(last.server); // late, but it did
    if (state !== "offline") told.clear();
    const why = errorText(reason);
    if (!told.has(why) && told.size < REASONS_MAX) log.warn("no API server can be reached: what runs here goes on, from the checkpoint if need be", { servers: servers(), error: reason });
    told.add(why);
    become("offline");
    return reason;
  }

  async function until(holds: () => boolean, signal: AbortSignal): Promise<void> {
    if (holds() || signal.aborted) return;
    const quit = Promise.withResolvers<void>();
    const stop = (): void => quit.resolve();
    signal.addEventListener("abort", stop, { once: true });
    while (!holds() && !signal.aborted) await Promise.race([changed.promise, quit.promise]);
    signal.removeEventListener("abort", stop);
  }

  async function whenOnline(signal: AbortSignal, ms?: number): Promise<void> {
    if (state === "online") return;
    const late = new AbortController();
    const alarm = ms === undefined ? undefined : clock.after(ms, () => late.abort());
    await until(() => state === "online", AbortSignal.any([signal, late.signal]));
    alarm?.cancel();
  }

  return {
    name: "API server",
    get state() { return state; },
    get connection() { return connection.signal; },
    get offlineSinceMs() { return offlineSinceMs; },
    server: () => current,
    suspect: () => suspected.resolve(),
    whenOnline,
    whenKnown: (signal) => until(() => state !== "unknown", signal),

    async run(signal, ready) {
      ready();
      let failures = 0;
      signal.addEventListener("abort", () => suspected.resolve(), { once: true });
      while (!signal.aborted) {
        suspected = Promise.withResolvers();
        const problem = await look(signal);
        failures = problem === undefined ? 0 : failures + 1;
        if (signal.aborted) break;
        if (failures > 0) await whenOnline(signal, backoffMs(failures, RETRY) * (1 + random.next()));
        if (state === "online") await suspected.promise;
      }
    },
  };
}
