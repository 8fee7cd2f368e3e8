/**
 * A Transport that remembers what it has read, on disk, and answers from that while no server can be reached. Whoever stands on it (informers,
 * lookups, the kubelet) sees a server that is there, at worst one on which nothing changes.
 *
 *   const journal = openJournal({ path, clock, log });
 *   const reach = reachability({ servers, probe, clock, random, log });
 *   const transport = checkpointed(httpTransport(…), { journal, reach, clock });
 *   runAll([journal, reach, transport, …])
 *
 * online    every request goes to the server; objects, lists, their watch events and issued tokens are remembered (remembered.ts), without what changes
 *           all the time (kept.ts)
 * offline   reads   are answered as remembered; what is not remembered fails as a server fails that cannot be reached
 *           watches wait for the server; one that continues a list out of memory then ends with 410, so that the reader lists again;
 *                   endpoints of Services are told of the node's own pods (own-readiness.ts)
 *           writes  fail, at once in the beginning, later after waiting as long as the server has been away, up to a minute: so nothing spins
 */
import type { EndpointSlice } from "../../api/gen/discovery.v1.ts";
import { isNotFound, isTooLarge, resourceVersionTooOld, serviceUnavailable, StatusError } from "../../api/meta/status-error.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import type { Runnable } from "../../lifecycle/run-all.ts";
import type { ApiRequest, ApiWatchEvent, Transport } from "../transport.ts";
import type { Journal } from "./journal.ts";
import { listsEndpoints, OwnReadiness } from "./own-readiness.ts";
import type { Reachability } from "./reachability.ts";
import { type Read, readOf, Remembered } from "./remembered.ts";

interface Deps {
  readonly journal: Journal;
  readonly reach: Reachability;
  readonly clock: Clock;
}

/** A call that takes this long may mean that the server has gone without a word. */
const SLOW_MS = 10_000;
const WRITE_WAIT_MS_MAX = 60_000;
const SWEEP_MS = 300_000;
/** Gateway errors: those of a balancer without a server, and our own for a server that does not answer. */
const UNREACHABLE: ReadonlySet<number> = new Set([502, 503, 504]);

export function checkpointed(server: Transport, deps: Deps): Transport & Runnable { return new CheckpointedTransport(server, deps); }

class CheckpointedTransport implements Transport, Runnable {
  readonly name = "objects in the checkpoint";
  readonly #server: Transport;
  readonly #reach: Reachability;
  readonly #clock: Clock;
  readonly #remembered: Remembered;
  readonly #recalled = new Set<string>(); // keys of lists whose reader has them as they were remembered, or otherwise not as the server has them
  readonly #own = new OwnReadiness();

  constructor(server: Transport, { journal, reach, clock }: Deps) {
    this.#server = server;
    this.#reach = reach;
    this.#clock = clock;
    this.#remembered = new Remembered({ journal, clock });
  }

  call(request: ApiRequest): Promise<unknown> {
    const read = readOf(request);
    return read === undefined ? this.#write(request) : this.#read(request, read);
  }

  async *watch(request: ApiRequest): AsyncGenerator<ApiWatchEvent> {
    const { signal } = request;
    const reach = this.#reach;
    const read = readOf(request);
    const unwatched = read && this.#remembered.watched(read);
    try {
      if (read && listsEndpoints(request.path)) yield* this.#ownEndpoints(read, signal);
      await reach.whenOnline(signal);
      if (signal.aborted) return;
      this.#own.forget();
      if (read && this.#recalled.has(read.key)) throw resourceVersionTooOld(request.query?.["resourceVersion"] ?? "0", "1");
      const { connection } = reach;
      for await (const event of this.#server.watch({ ...request, signal: AbortSignal.any([signal, connection]) })) {
        if (read) this.#remembered.hear(read, event);
        yield event;
      }
      if (connection.aborted && !signal.aborted) throw unreachable(reach.server(), connection.reason);
    } catch (error) {
      if (isUnreachable(error)) reach.suspect();
      throw error;
    } finally {
      unwatched?.();
    }
  }

  async run(signal: AbortSignal, ready: () => void): Promise<void> {
    ready();
    const bornMs = this.#clock.uptimeMs();
    for await (const _ of this.#clock.every(SWEEP_MS, signal)) if (this.#reach.state === "online") this.#remembered.sweep(bornMs);
  }

  async #read(request: ApiRequest, read: Read): Promise<unknown> {
    const { signal } = request;
    const remembered = this.#remembered;
    remembered.use(read);
    await this.#reach.whenKnown(signal);
    signal.throwIfAborted();
    try {
      if (this.#reach.state === "offline") throw unreachable(this.#reach.server());
      const answer = await this.#send(request);
      this.#recalled.delete(read.key);
      remembered.remember(read, answer);
      return answer;
    } catch (error) {
      if (isNotFound(error)) remembered.forget(read);
      if (signal.aborted || !isUnreachable(error)) throw error;
      const recalled = remembered.recall(read);
      if (recalled === undefined) throw error;
      if (read.isList) this.#recalled.add(read.key);
      return recalled;
    }
  }

  async #write(request: ApiRequest): Promise<unknown> {
    const reach = this.#reach;
    await reach.whenKnown(request.signal);
    if (reach.state === "offline") this.#own.heard(request);
    const { offlineSinceMs } = reach;
    if (offlineSinceMs !== undefined) await reach.whenOnline(request.signal, Math.min(WRITE_WAIT_MS_MAX, this.#clock.uptimeMs() - offlineSinceMs));
    request.signal.throwIfAborted();
    if (reach.state === "offline") throw unreachable(reach.server());
    return await this.#send(request);
  }

  /** Goes to the server, as long as it is there. */
  async #send(request: ApiRequest): Promise<unknown> {
    const reach = this.#reach;
    const { connection } = reach;
    const slow = this.#clock.after(SLOW_MS, () => reach.suspect());
    try {
      return await this.#server.call({ ...request, signal: AbortSignal.any([request.signal, connection]) });
    } catch (error) {
      if (request.signal.aborted) throw error;
      if (connection.aborted) throw unreachable(reach.server(), connection.reason);
      if (isUnreachable(error)) reach.suspect();
      throw error;
    } finally {
      slow.cancel();
    }
  }

  /** Until the server is there. Who has been told something lists again then. */
  async *#ownEndpoints(read: Read, signal: AbortSignal): AsyncGenerator<ApiWatchEvent> {
    const reach = this.#reach;
    await reach.whenKnown(signal);
    const shown = new Map<string, string>();
    const online = new AbortController();
    void reach.whenOnline(signal).finally(() => online.abort());
    const over = new Promise<void>((resolve) => online.signal.addEventListener("abort", () => resolve(), { once: true }));
    while (!signal.aborted && !online.signal.aborted && reach.state === "offline") {
      const { changed } = this.#own;
      for (const event of this.#own.events(this.#remembered.items(read) as Iterable<readonly [key: string, slice: EndpointSlice]>, shown)) {
        this.#recalled.add(read.key);
        yield event;
      }
      await Promise.race([changed, over]);
    }
  }
}

function unreachable(server: string, cause?: unknown): StatusError {
  const { status } = serviceUnavailable(`cannot reach ${server}${cause instanceof Error ? `: ${cause.message}` : ""}`);
  const error = new StatusError(status, { cause });
  error.stack = `${error.name}: ${error.message}`; // told often, and always from here
  return error;
}

function isUnreachable(error: unknown): boolean { return error instanceof StatusError && UNREACHABLE.has(error.code) && !isTooLarge(error); }
