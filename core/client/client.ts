/**
 * Typed access to the resources of the API.
 *
 *   const client = clientOver(transport);        // resource-client.ts
 *   const pods = client.resource(PODS);          // PODS: a ResourceRef, see resources.ts
 *   await pods.create(draft, { signal });
 *
 * All methods throw StatusError with the server's Status, and the signal's reason once it has aborted.
 * Objects that come back are frozen: build a new one to change it.
 */
import type { ApiObject, NewObject } from "../api/meta/object-meta.ts";
import type { ApiRequest, ApiWatchEvent } from "./transport.ts";

/** Which resource: what its path needs, and its kind. T is the type of its objects. */
export interface ResourceRef<T extends ApiObject = ApiObject> {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly __type?: T;
}

export interface Call {
  readonly signal: AbortSignal;
}

export interface ListQuery {
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly limit?: number | undefined;
  readonly continue?: string | undefined;
  /** "": the newest state. "0": any state will do. Else: at least as new. */
  readonly resourceVersion?: string | undefined;
}

export interface WatchQuery extends ListQuery {
  readonly allowWatchBookmarks?: boolean;
  /** The server ends the watch after this long. */
  readonly timeoutSeconds?: number;
}

export interface ObjectList<T> {
  readonly items: readonly Readonly<T>[];
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string | undefined };
}

export interface DeleteQuery {
  readonly gracePeriodSeconds?: number | undefined;
  readonly propagationPolicy?: "Orphan" | "Background" | "Foreground" | undefined;
  readonly preconditions?: { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined } | undefined;
}

export type PatchType = "application/json-patch+json" | "application/merge-patch+json" | "application/strategic-merge-patch+json";

/** Identifies an object: any object, or just its name and namespace. */
export interface ObjectName {
  readonly metadata: { readonly name: string; readonly namespace?: string | undefined };
}

export interface ResourceClient<T extends ApiObject> {
  readonly ref: ResourceRef<T>;
  get(name: ObjectName, call: Call): Promise<Readonly<T>>;
  list(query: ListQuery, call: Call): Promise<ObjectList<T>>;
  watch(query: WatchQuery, call: Call): AsyncIterable<ApiWatchEvent & { readonly object: Readonly<T> }>;
  /** Without a fieldManager the fields are the program's. */
  create(object: NewObject<T>, call: Call & { readonly fieldManager?: string }): Promise<Readonly<T>>;
  update(object: T, call: Call & { readonly fieldManager?: string }): Promise<Readonly<T>>;
  /** PUT …/status. Throws Conflict if `object` is not the newest. */
  updateStatus(object: T, call: Call): Promise<Readonly<T>>;
  patch(name: ObjectName, type: PatchType, patch: unknown, call: Call & { readonly subresource?: string | undefined }): Promise<Readonly<T>>;
  /** Server-side apply. */
  apply(object: NewObject<T>, call: Call & { readonly fieldManager: string; readonly force?: boolean; readonly subresource?: string | undefined }): Promise<Readonly<T>>;
  /** The object as it is after the call, if the server sends it: pods, and all that stays for a while (a finalizer, a grace period). */
  delete(name: ObjectName, query: DeleteQuery, call: Call): Promise<Readonly<T> | undefined>;
  /** Deletes all that the query selects. Throws MethodNotAllowed where the resource has no such verb. */
  deleteCollection(query: ListQuery, options: DeleteQuery, call: Call): Promise<void>;
  /** POST …/<subresource>: binding, eviction, token … */
  createSubresource<R>(name: ObjectName, subresource: string, body: unknown, call: Call): Promise<R>;
  /** PUT …/<subresource>: finalize, approval, scale, ephemeralcontainers … */
  updateSubresource<R>(name: ObjectName, subresource: string, body: unknown, call: Call): Promise<R>;
}

export interface Client {
  resource<T extends ApiObject>(ref: ResourceRef<T>): ResourceClient<T>;
  /** Any other request: discovery, reviews, /healthz … */
  request(request: ApiRequest): Promise<unknown>;
}
