/**
 * How many seats a request takes: a list one for each 100 kB of objects it may have in memory at once, a write one, and one more for a while if many watch what is written.
 *
 * Source: kubernetes v1.36 apiserver/pkg/util/flowcontrol/{watch_tracker.go,request/{width,list_work_estimator,mutating_work_estimator,config}.go}
 */
import { jsonText } from "../../api/codec/json.ts";
import { isTrue } from "../../api/request/query.ts";
import type { Cached } from "../../registry/generic/cached.ts";
import type { Registry } from "../../registry/registry.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import type { RequestInfo, ResourceRequestInfo } from "../request-info.ts";

export interface WorkEstimate {
  readonly seats: number;
  /** After the request, one seat for so long: watchers are being told. */
  readonly afterMs: number;
  /** Of a write: how many watch what is written. */
  readonly watchers?: number;
}

export interface ResourceSize {
  readonly objects: number;
  /** Of an object, on average. */
  bytesEach(): number;
  /** Of what the request is about: all of the resource, its namespace, or the object itself. Not those of one node's pods, of whom a change reaches one. */
  readonly watchers: number;
}

interface Cache { readonly size: number; values(): Iterable<Pick<Cached, "jsonLength" | "object">> }

/** A few objects are looked at, once a minute. */
const SAMPLES = 16, SAMPLE_MS = 60_000;

export class ResourceSizes {
  readonly #clock: Pick<Clock, "uptimeMs">;
  readonly #means = new WeakMap<Cache, { readonly atMs: number; readonly bytes: number }>();

  constructor(clock: Pick<Clock, "uptimeMs">) {
    this.#clock = clock;
  }

  /** As it is now; undefined: another server's. */
  of(registry: Pick<Registry, "storeOf">, { group, resource, namespace, name }: ResourceRequestInfo): ResourceSize | undefined {
    const store = registry.storeOf(group, resource);
    return store && { objects: store.cache.size, bytesEach: () => this.#mean(store.cache), watchers: store.cache.listenersOf(store.keyOf(namespace, name)) };
  }

  /** About how many bytes all of its objects are. */
  bytesOf(cache: Cache): number { return Math.round(this.#mean(cache) * cache.size); }

  #mean(cache: Cache): number {
    const nowMs = this.#clock.uptimeMs();
    const known = this.#means.get(cache);
    if (known && nowMs - known.atMs < SAMPLE_MS) return known.bytes;
    const bytes = meanOf(cache);
    this.#means.set(cache, { atMs: nowMs, bytes });
    return bytes;
  }
}

function meanOf(cache: Cache): number {
  const stride = Math.ceil(cache.size / SAMPLES);
  let [at, count, sum] = [0, 0, 0];
  for (const entry of cache.values()) {
    if (at++ % stride !== 0) continue;
    count++;
    sum += entry.jsonLength ?? jsonText(entry.object).length;
  }
  return count === 0 ? 0 : sum / count;
}

const BYTES_PER_SEAT = 100_000;
/** Of what comes from the copy in memory: it is sent as it is read. */
const CACHED_BYTES_MAX = 1_000_000;
const SEATS_MAX = 100;
const WATCHES_PER_SEAT = 10;
const EVENT_MS = 5;
const ONE: WorkEstimate = { seats: 1, afterMs: 0 };

/** `seatsMax`: a share of the level's seats, so that no request takes all. */
export function estimateWork(info: RequestInfo, query: URLSearchParams, sizeOf: (info: ResourceRequestInfo) => ResourceSize | undefined, seatsMax: number): WorkEstimate {
  if (!info.isResource || info.subresource === "token") return ONE; // nobody who watches is told of a token
  switch (info.verb) {
    case "list":
    case "watch": {
      if (info.verb === "watch" && !sendsInitialEvents(query)) return ONE;
      const size = sizeOf(info);
      if (!size?.objects) return ONE;
      return { seats: Math.max(1, Math.min(seatsMax || SEATS_MAX, SEATS_MAX, Math.ceil(bytesAtOnce(size, info, query) / BYTES_PER_SEAT))), afterMs: 0 };
    }
    case "create":
    case "update":
    case "patch":
    case "delete": {
      const watchers = sizeOf(info)?.watchers ?? 0;
      return { seats: 1, afterMs: watchers < WATCHES_PER_SEAT ? 0 : Math.ceil(watchers / WATCHES_PER_SEAT) * EVENT_MS, watchers };
    }
    default: return ONE;
  }
}

function sendsInitialEvents(query: URLSearchParams): boolean {
  const version = query.get("resourceVersion") ?? "";
  return version === "" || version === "0" || (query.has("sendInitialEvents") && isTrue(query.get("sendInitialEvents")));
}

function bytesAtOnce({ objects, bytesEach }: ResourceSize, { verb, name }: ResourceRequestInfo, query: URLSearchParams): number {
  if (name !== "") return throughStore(verb, query) ? bytesEach() : Math.min(bytesEach(), CACHED_BYTES_MAX);
  const asked = Number(query.get("limit") ?? 0);
  const limited = asked > 0 ? Math.min(asked, objects) : objects;
  if (!throughStore(verb, query)) return Math.min(limited * bytesEach(), CACHED_BYTES_MAX);
  const isSelected = Boolean(query.get("fieldSelector") || query.get("labelSelector"));
  return (isSelected ? Math.max(limited, Math.floor(objects / 2)) : limited) * bytesEach();
}

/** What is asked for as it was is read from the store; everything else comes from the copy in memory. Source: kubernetes v1.36 apiserver/pkg/storage/cacher/delegator/interface.go */
function throughStore(verb: string, query: URLSearchParams): boolean {
  if (verb !== "list") return false;
  const match = query.get("resourceVersionMatch") ?? "", version = query.get("resourceVersion") ?? "";
  if (match !== "") return match !== "NotOlderThan";
  return Boolean(query.get("continue")) || (Number(query.get("limit") ?? 0) > 0 && version !== "" && version !== "0");
}
