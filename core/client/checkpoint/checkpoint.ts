/**
 * A Transport that remembers what it has read, on disk, and answers from that while no server can be reached. Whoever stands on it (informers,
 * lookups, the kubelet) sees a server that is there, at worst one on which nothing changes.
 *
 *   const journal = openJournal({ path, clock, log });
 *   const reach = reachability({ servers, probe, clock, random, log });
 *   const transport = checkpointed(httpTransport(…), { journal, reach, clock });
 *   runAll([journal, reach, transport, …])
 *
 * online    every request goes to the server; objects, lists, their watch events and issued tokens are remembered (kept.ts: without what changes all the time)
 * offline   reads   are answered as remembered; what is not remembered fails as a server fails that cannot be reached
 *           watches wait for the server; one that continues a list out of memory then ends with 410, so that the reader lists again;
 *                   endpoints of Services are told of the node's own pods (own-readiness.ts)
 *           writes  fail, at once in the beginning, later after waiting as long as the server has been away, up to a minute: so nothing spins
 *
 * What nobody has asked for in a while is forgotten: of lists that were watched after minutes, of other reads after a day.
 */
import type { EndpointSlice } from "../../api/gen/discovery.v1.ts";
import { type ApiObject, keyOf } from "../../api/meta/object-meta.ts";
import { isNotFound, isTooLarge, resourceVersionTooOld, serviceUnavailable, StatusError } from "../../api/meta/status-error.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import type { Runnable } from "../../lifecycle/run-all.ts";
import type { ApiRequest, ApiWatchEvent, Transport } from "../transport.ts";
import type { Journal } from "./journal.ts";
import { hasteOf, keptForm, keptResource, withoutType } from "./kept.ts";
import { listsEndpoints, OwnReadiness } from "./own-readiness.ts";
import type { Reachability } from "./reachability.ts";

interface Deps {
  readonly journal: Journal;
  readonly reach: Reachability;
  readonly clock: Clock;
}

interface Use { watchers: number; lastMs: number; readonly forgetAfterMs: number }

/** A call that takes this long may mean that the server has gone without a word. */
const SLOW_MS = 10_000;
const WRITE_WAIT_MS_MAX = 60_000;
const SWEEP_MS = 300_000;
/** A pod that ends and comes back within this time finds its objects. */
const FORGET_WATCHED_MS = 600_000;
/** Tokens are renewed once a day at least. */
const FORGET_READ_MS = 25 * 3_600_000;
/** Gateway errors: those of a balancer without a server, and our own for a server that does not answer. */
const UNREACHABLE: ReadonlySet<number> = new Set([502, 503, 504]);
const SECRET: ReadonlySet<string> = new Set(["secrets", "serviceaccounts"]);

export function checkpointed(transport: Transport, { journal, reach, clock }: Deps): Transport & Runnable {
  const uses = new Map<string, Use>(); // by key of what was read
  const outOfMemory = new Set<string>(); // lists whose reader has them from the checkpoint
  const own = new OwnReadiness();

  function used(key: string, forgetAfterMs: number): Use {
    const use = uses.get(key) ?? { watchers: 0, lastMs: 0, forgetAfterMs };
    use.lastMs = clock.uptimeMs();
    uses.set(key, use);
    return use;
  }

  function remember(key: string, path: string, object: Readonly<ApiObject>): void {
    const resource = keptResource(path)!;
    const kept = keptForm(resource, object);
    const json = JSON.stringify(isCollection(path) ? withoutType(kept) : kept);
    const before = journal.get(key);
    if (json !== before) journal.put(key, json, hasteOf(resource, before === undefined ? undefined : (JSON.parse(before) as ApiObject), JSON.parse(json) as ApiObject));
  }

  function forget(key: string, path: string): void {
    journal.delete(key, { erase: SECRET.has(keptResource(path) ?? "") });
  }

  function rememberList(key: string, path: string, { items }: RawList): void {
    outOfMemory.delete(key);
    const gone = new Set(journal.keys(`${key} `));
    for (const item of items ?? []) {
      const at = `${key} ${keyOf(item)}`;
      gone.delete(at);
      remember(at, path, item);
    }
    for (const at of gone) forget(at, path);
    journal.put(key, "{}", "soon"); // last: a list that is not whole is none
  }

  function recallList(key: string): RawList | undefined {
    if (journal.get(key) === undefined) return undefined;
    outOfMemory.add(key);
    return { metadata: { resourceVersion: "0" }, items: journal.keys(`${key} `).map((at) => JSON.parse(journal.get(at)!) as ApiObject) };
  }

  /** Goes to the server, as long as it is there. */
  async function send(request: ApiRequest): Promise<unknown> {
    const { connection } = reach;
    const slow = clock.after(SLOW_MS, () => reach.suspect());
    try {
      return await transport.call({ ...request, signal: AbortSignal.any([request.signal, connection]) });
    } catch (error) {
      if (request.signal.aborted) throw error;
      if (connection.aborted) throw unreachable(reach.server(), connection.reason);
      if (isUnreachable(error)) reach.suspect();
      throw error;
    } finally {
      slow.cancel();
    }
  }

  async function read(request: ApiRequest, key: string, isList: boolean): Promise<unknown> {
    used(key, isList ? FORGET_WATCHED_MS : FORGET_READ_MS);
    await reach.whenKnown(request.signal);
    request.signal.throwIfAborted();
    try {
      if (reach.state === "offline") throw unreachable(reach.server());
      const answer = await send(request);
      if (isList) rememberList(key, request.path, answer as RawList);
      else remember(key, request.path, answer as ApiObject);
      return answer;
    } catch (error) {
      if (isNotFound(error)) forget(key, request.path);
      if (request.signal.aborted || !isUnreachable(error)) throw error;
      const recalled = isList ? recallList(key) : recall(key);
      if (recalled === undefined) throw error;
      return deepFreeze(recalled);
    }
  }

  function recall(key: string): unknown {
    const text = journal.get(key);
    return text === undefined ? undefined : JSON.parse(text);
  }

  async function write(request: ApiRequest): Promise<unknown> {
    await reach.whenKnown(request.signal);
    if (reach.state === "offline") own.heard(request);
    const { offlineSinceMs } = reach;
    if (offlineSinceMs !== undefined) await reach.whenOnline(request.signal, Math.min(WRITE_WAIT_MS_MAX, clock.uptimeMs() - offlineSinceMs));
    request.signal.throwIfAborted();
    if (reach.state === "offline") throw unreachable(reach.server());
    return await send(request);
  }

  return {
    name: "objects in the checkpoint",
    call(request) {
      const key = keyOfRequest(request);
      return key === undefined ? write(request) : read(request, key, isCollection(request.path));
    },

    async *watch(request) {
      const { signal } = request;
      const key = keyOfRequest(request);
      const use = key === undefined ? undefined : used(key, FORGET_WATCHED_MS);
      if (use) use.watchers++;
      try {
        if (key !== undefined && listsEndpoints(request.path)) yield* ownEndpoints(key, signal);
        await reach.whenOnline(signal);
        if (signal.aborted) return;
        own.forget();
        if (key !== undefined && outOfMemory.has(key)) throw resourceVersionTooOld(request.query?.["resourceVersion"] ?? "0", "1");
        const { connection } = reach;
        for await (const event of transport.watch({ ...request, signal: AbortSignal.any([signal, connection]) })) {
          if (key !== undefined) rememberEvent(key, request.path, event);
          yield event;
        }
        if (connection.aborted && !signal.aborted) throw unreachable(reach.server(), connection.reason);
      } catch (error) {
        if (isUnreachable(error)) reach.suspect();
        throw error;
      } finally {
        if (use) {
          use.watchers--;
          use.lastMs = clock.uptimeMs();
        }
      }
    },

    async run(signal, ready) {
      ready();
      const bornMs = clock.uptimeMs();
      for await (const _ of clock.every(SWEEP_MS, signal)) if (reach.state === "online") sweep(bornMs);
    },
  };

  /** Until the server is there. Who has been told something lists again then. */
  async function* ownEndpoints(key: string, signal: AbortSignal): AsyncGenerator<ApiWatchEvent> {
    await reach.whenKnown(signal);
    const shown = new Map<string, string>();
    const online = new AbortController();
    void reach.whenOnline(signal).finally(() => online.abort());
    const over = new Promise<void>((resolve) => online.signal.addEventListener("abort", () => resolve(), { once: true }));
    while (!signal.aborted && !online.signal.aborted && reach.state === "offline") {
      const { changed } = own;
      const slices = journal.keys(`${key} `).map((at) => [at, JSON.parse(journal.get(at)!) as EndpointSlice] as const);
      for (const event of own.events(slices, shown)) {
        outOfMemory.add(key);
        yield event;
      }
      await Promise.race([changed, over]);
    }
  }

  function rememberEvent(key: string, path: string, { type, object }: ApiWatchEvent): void {
    if (type === "BOOKMARK") return;
    const at = `${key} ${keyOf(object)}`;
    if (type === "DELETED") forget(at, path);
    else remember(at, path, object);
  }

  function sweep(bornMs: number): void {
    const nowMs = clock.uptimeMs();
    for (const key of journal.keys("")) {
      const read = key.split(" ")[0]!;
      const { watchers, lastMs, forgetAfterMs } = uses.get(read) ?? { watchers: 0, lastMs: bornMs, forgetAfterMs: isCollection(read.split("?")[0]!) ? FORGET_WATCHED_MS : FORGET_READ_MS };
      if (watchers > 0 || nowMs - lastMs <= forgetAfterMs) continue;
      forget(key, read.split("?")[0]!);
      if (key === read) uses.delete(read);
    }
  }
}

interface RawList { readonly items?: readonly Readonly<ApiObject>[] | null; readonly metadata: { readonly resourceVersion?: string } }

/** Under which key an answer is remembered: no spaces in it. Undefined: it is not. */
function keyOfRequest({ method, path, query = {}, body }: ApiRequest): string | undefined {
  if (keptResource(path) === undefined) return undefined;
  if (method === "POST" && path.endsWith("/token")) return `${path}?${encodeURIComponent(JSON.stringify((body as { readonly spec?: unknown } | undefined)?.spec ?? {}))}`;
  if (method !== "GET" || query["continue"]) return undefined;
  const { fieldSelector = "", labelSelector = "" } = query;
  return `${path}?${new URLSearchParams({ ...(fieldSelector ? { fieldSelector } : {}), ...(labelSelector ? { labelSelector } : {}) }).toString()}`;
}

/** …/pods or …/namespaces/x/pods, but not …/pods/web nor …/pods/web/log. */
function isCollection(path: string): boolean {
  const parts = path.split("/").filter((part) => part !== "");
  const rest = parts.slice(parts[0] === "api" ? 2 : 3);
  return rest.length === 1 || (rest.length === 3 && rest[0] === "namespaces");
}

function unreachable(server: string, cause?: unknown): StatusError {
  const { status } = serviceUnavailable(`cannot reach ${server}${cause instanceof Error ? `: ${cause.message}` : ""}`);
  const error = new StatusError(status, { cause });
  error.stack = `${error.name}: ${error.message}`; // told often, and always from here
  return error;
}

function isUnreachable(error: unknown): boolean { return error instanceof StatusError && UNREACHABLE.has(error.code) && !isTooLarge(error); }

function deepFreeze(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  for (const member of Object.values(value)) deepFreeze(member);
  return Object.freeze(value);
}
