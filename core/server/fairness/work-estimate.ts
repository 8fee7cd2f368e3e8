/**
 * How many seats a request takes: a list one for each hundred objects it may go through, a write one, and one more for a while if many watch what is written.
 *
 * Source: kubernetes v1.36 apiserver/pkg/util/flowcontrol/{watch_tracker.go,request/{width,list_work_estimator,mutating_work_estimator,config}.go}
 */
import type { Registry } from "../../registry/registry.ts";
import type { RequestInfo, ResourceRequestInfo } from "../request-info.ts";
import { isTrue } from "../request-info.ts";

export interface WorkEstimate {
  readonly seats: number;
  /** After the request, one seat for so long: watchers are being told. */
  readonly afterMs: number;
  /** Of a write: how many watch what is written. */
  readonly watchers?: number;
}

export interface ResourceSize {
  readonly objects: number;
  /** Of what the request is about: all of the resource, its namespace, or the object itself. Not those of one node's pods, of whom a change reaches one. */
  readonly watchers: number;
}

/** As it is now; undefined: another server's. */
export function sizeIn(registry: Pick<Registry, "storeOf">, { group, resource, namespace, name }: ResourceRequestInfo): ResourceSize | undefined {
  const store = registry.storeOf(group, resource);
  return store && { objects: store.cache.size, watchers: store.cache.listenersOf(store.keyOf(namespace, name)) };
}

const OBJECTS_PER_SEAT = 100;
const SEATS_MAX = 10;
const WATCHES_PER_SEAT = 10;
const EVENT_MS = 5;
const ONE: WorkEstimate = { seats: 1, afterMs: 0 };

/** `seatsMax`: a share of the level's seats, so that no request takes all. */
export function estimateWork(info: RequestInfo, query: URLSearchParams, sizeOf: (info: ResourceRequestInfo) => ResourceSize | undefined, seatsMax: number): WorkEstimate {
  if (!info.isResource || info.subresource === "token" || (info.resource === "leases" && info.group === "coordination.k8s.io")) return ONE;
  switch (info.verb) {
    case "list":
    case "watch": {
      if (info.name !== "" || (info.verb === "watch" && !sendsInitialEvents(query))) return ONE;
      const objects = sizeOf(info)?.objects ?? 0;
      if (objects <= OBJECTS_PER_SEAT) return ONE;
      return { seats: Math.max(1, Math.min(seatsMax || SEATS_MAX, SEATS_MAX, Math.ceil(throughStore(info.verb, query) ? perPage(objects, query) / OBJECTS_PER_SEAT : objects / OBJECTS_PER_SEAT))), afterMs: 0 };
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
  return query.has("sendInitialEvents") ? isTrue(query.get("sendInitialEvents")) : version === "" || version === "0";
}

/** A page of a snapshot is read from the store; everything else comes from the copy in memory. */
function throughStore(verb: string, query: URLSearchParams): boolean {
  return verb === "list" && (query.has("continue") || (query.has("limit") && (query.get("resourceVersion") ?? "") !== "0"));
}

function perPage(objects: number, query: URLSearchParams): number {
  const asked = Number(query.get("limit") ?? 0);
  const limit = asked > 0 ? Math.min(asked, objects) : objects;
  return query.has("fieldSelector") || query.has("labelSelector") ? objects + limit : 2 * limit;
}
