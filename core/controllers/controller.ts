/**
 * What a controller is: it watches objects, and makes the world match them, one key at a time.
 *
 *   a watched object changes ─▶ keys ─▶ queue (run-controller.ts) ─▶ reconcile(key) ─▶ writes through the API ─▶ watch …
 *
 * A controller is told only a key, never the event: it reads what it needs from informers, decides in its plan.ts, and acts.
 */
import { type ApiObject, controllerOf, keyOf, type ObjectKey, objectKey, splitKey } from "../api/meta/object-meta.ts";
import { parseApiVersion } from "../api/meta/gvk.ts";
import type { ObjectName, ResourceRef } from "../client/client.ts";
import type { Informer } from "../client/informer.ts";
import type { BackoffOptions } from "../lifecycle/backoff.ts";
import type { Log } from "../observe/log.ts";

export type AddKey = (key: ObjectKey, afterMs?: number) => void;

/** Which keys to reconcile when something changes. */
export interface Watch {
  whenSynced(signal: AbortSignal): Promise<void>;
  /** Calls `add` for every object there is and for every change from now on. Returns what ends that. */
  subscribe(add: AddKey): () => void;
}

/** What a reconcile may ask for; nothing means "done until something changes". A throw means "again, with backoff". */
export type Next = void | { readonly againInMs: number };

export interface Call { readonly signal: AbortSignal; readonly log: Log }

export interface Controller {
  /** Upstream's name for its queue and its metrics: "replicaset". */
  readonly name: string;
  /** Keys reconciled at once. One key is never reconciled twice at the same time. */
  readonly workers: number;
  /** How long a key waits that failed; absent: 5 ms, doubling to 1000 s. */
  readonly retry?: BackoffOptions | undefined;
  readonly watches: readonly Watch[];
  /** Informers that reconcile reads without being woken by them; also waited for before the first reconcile. */
  readonly reads?: readonly Pick<Informer<ApiObject>, "whenSynced">[];
  /** Keys reconciled at the start, for work that hangs on no object. */
  readonly starts?: readonly ObjectKey[];
  /** Makes the world match the object as it is now. Told only a key, never the event, so a missed event costs nothing. */
  reconcile(key: ObjectKey, call: Call): Promise<Next>;
}

export interface Change<T extends ApiObject> { readonly object: Readonly<T>; readonly old?: Readonly<T> | undefined; readonly deleted: boolean }

/** The keys that a change concerns. */
export function mapped<T extends ApiObject>(informer: Informer<T>, keysOf: (change: Change<T>) => Iterable<ObjectKey>): Watch {
  return {
    whenSynced: (signal) => informer.whenSynced(signal),
    subscribe: (add) => informer.onChange((change) => { for (const key of keysOf(change)) add(key); }),
  };
}

/** All these keys, whenever it is told. Absent: never. */
export function whenTold(onTold: ((handler: () => void) => () => void) | undefined, keys: () => Iterable<ObjectKey>): Watch {
  return { whenSynced: () => Promise.resolve(), subscribe: (add) => onTold?.(() => { for (const key of keys()) add(key); }) ?? (() => undefined) };
}

/** The same keys, but later: what happens meanwhile is seen with it. */
export function delayed(watch: Watch, ms: number): Watch {
  return { whenSynced: (signal) => watch.whenSynced(signal), subscribe: (add) => watch.subscribe((key, afterMs = 0) => add(key, Math.max(afterMs, ms))) };
}

/** The object itself. */
export function itself<T extends ApiObject>(informer: Informer<T>): Watch {
  return mapped(informer, ({ object }) => [keyOf(object)]);
}

/** The object's controller, if it is of this kind; both of them when it has changed hands. */
export function controllerIs<T extends ApiObject>(informer: Informer<T>, owner: Pick<ResourceRef, "group" | "kind">): Watch {
  return mapped(informer, ({ object, old }) => {
    const keys = new Set<ObjectKey>();
    for (const one of old === undefined ? [object] : [old, object]) {
      const key = controllerKey(one, owner);
      if (key !== undefined) keys.add(key);
    }
    return keys;
  });
}

/** The key of the object's controller, if that is of this kind. */
export function controllerKey(object: Readonly<ApiObject>, { group, kind }: Pick<ResourceRef, "group" | "kind">): ObjectKey | undefined {
  const owner = controllerOf(object);
  if (owner === undefined || owner.kind !== kind || parseApiVersion(owner.apiVersion).group !== group) return undefined;
  return objectKey(object.metadata.namespace ?? "", owner.name);
}

/** The name a key stands for, as a client takes it. */
export function nameOfKey(key: ObjectKey): ObjectName {
  const { namespace, name } = splitKey(key);
  return { metadata: namespace === "" ? { name } : { namespace, name } };
}
