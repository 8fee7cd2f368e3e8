/**
 * A local, indexed, eventually current copy of one resource, kept by list and watch. Objects in it are frozen.
 * Within the server's process the objects are the registry's own, so a copy costs a map, not the objects.
 *
 *   const pods = informers.of(PODS);                       // informer-factory.ts: shared, started when first asked for
 *   await pods.whenSynced(signal);
 *   pods.by(PODS_BY_NODE, "node-1");
 *
 * Made by watchedInformer (watched-informer.ts).
 */
import type { ApiObject, ObjectKey } from "../api/meta/object-meta.ts";
import type { ResourceRef } from "./client.ts";

export interface InformerHandler<T extends ApiObject> {
  /** `old` is absent for an add, `object` is the last known state for a delete (`deleted` true). Called in order; must not throw or block. */
  (change: { readonly object: Readonly<T>; readonly old?: Readonly<T> | undefined; readonly deleted: boolean }): void;
}

export interface Informer<T extends ApiObject> {
  readonly ref: ResourceRef<T>;
  /** True once the first list is in. */
  readonly synced: boolean;
  whenSynced(signal: AbortSignal): Promise<void>;
  get(key: ObjectKey): Readonly<T> | undefined;
  list(): Iterable<Readonly<T>>;
  inNamespace(namespace: string): Iterable<Readonly<T>>;
  /** Objects with an owner reference to `uid`. */
  ownedBy(uid: string): readonly Readonly<T>[];
  /** Objects for which `index.valuesOf` yields `value`; the index is made at the first use. */
  by(index: Index<T>, value: string): readonly Readonly<T>[];
  /** Handlers get every object that is already there as an add, then every change. Returns what removes the handler. */
  onChange(handler: InformerHandler<T>): () => void;
  /**
   * Resolves once this copy is at least as new as every object in `written`: a later read then sees our own writes.
   * `written` are objects as a create, update or patch returned them. Also resolves after five minutes, or when `signal` aborts.
   */
  caughtUp(written: readonly Readonly<T>[], signal: AbortSignal): Promise<void>;
  /** Resolves once each of `deleted` (by its uid) is gone from this copy or marked as being deleted. Same limits as `caughtUp`. */
  sawDeleted(deleted: readonly Readonly<T>[], signal: AbortSignal): Promise<void>;
}

/** Declared once as a constant, so that an informer builds it once. */
export interface Index<T extends ApiObject> {
  readonly name: string;
  valuesOf(object: Readonly<T>): Iterable<string>;
  /** What the values come from: they are the same where all of it is. Absent: they are asked for at each change. */
  partsOf?(object: Readonly<T>): readonly unknown[];
}
