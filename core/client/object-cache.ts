/**
 * The copy an informer keeps: objects by key, the indexes asked for, the handlers, and how new the copy is.
 *
 * Invariant: every change of the resource up to `revision` is in the copy and has been told to every handler, in order.
 */
import { type ApiObject, keyOf, namespaceOf, type ObjectKey } from "../api/meta/object-meta.ts";
import type { Log } from "../observe/log.ts";
import type { Index, InformerHandler } from "./informer.ts";

type Change<T extends ApiObject> = Parameters<InformerHandler<T>>[0];
type IndexMap = Map<string, Set<ObjectKey>>;

/** Someone who waits for the copy to get somewhere. `arrived` is asked again after every change. */
interface Waiter { arrived(): boolean; resolve(): void }

export const BY_NAMESPACE: Index<ApiObject> = { name: "namespace", valuesOf: (object) => [namespaceOf(object)] };
export const BY_OWNER: Index<ApiObject> = { name: "owner", valuesOf: (object) => object.metadata.ownerReferences?.map(({ uid }) => uid) ?? [] };

export class ObjectCache<T extends ApiObject> {
  readonly #log: Log;
  readonly #objects = new Map<ObjectKey, Readonly<T>>();
  readonly #indexes = new Map<Index<T>, IndexMap>();
  readonly #handlers = new Set<InformerHandler<T>>();
  readonly #waiters = new Set<Waiter>();
  #revision = 0;

  constructor(log: Log) {
    this.#log = log;
  }

  get revision(): number { return this.#revision; }
  get(key: ObjectKey): Readonly<T> | undefined { return this.#objects.get(key); }
  list(): Iterable<Readonly<T>> { return this.#objects.values(); }

  by(index: Index<T>, value: string): readonly Readonly<T>[] {
    const found = this.#index(index).get(value);
    return found === undefined ? [] : Array.from(found, (key) => this.#objects.get(key)!);
  }

  /** The same, one after the other as they are then: for who may not want all of them. */
  each(index: Index<T>, value: string): Iterable<Readonly<T>> {
    const found = this.#index(index), objects = this.#objects;
    return { *[Symbol.iterator]() { for (const key of found.get(value) ?? []) yield objects.get(key)!; } };
  }

  onChange(handler: InformerHandler<T>): () => void {
    // A handler of its own for each call, so that one function registered twice is told twice and removed once.
    const own: InformerHandler<T> = (change) => handler(change);
    for (const object of [...this.#objects.values()]) this.#tell(own, { object, deleted: false });
    this.#handlers.add(own);
    return () => void this.#handlers.delete(own);
  }

  /** Resolves when `arrived` holds after some change, or holds now. The caller bounds the wait by aborting `signal`; never rejects. */
  async waitUntil(arrived: () => boolean, signal: AbortSignal): Promise<void> {
    if (arrived() || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        this.#waiters.delete(waiter);
        signal.removeEventListener("abort", end);
        resolve();
      };
      const waiter: Waiter = { arrived, resolve: end };
      this.#waiters.add(waiter);
      signal.addEventListener("abort", end, { once: true });
    });
  }

  /** The objects are now exactly `items`, at `revision`, which is lower than before when the server has lost its last ones. Handlers hear what differs; objects that are missing are told as deleted. */
  replace(items: readonly Readonly<T>[], revision: number): void {
    const next = new Map(items.map((item) => [keyOf(item), item]));
    for (const [key, old] of [...this.#objects]) if (!next.has(key)) this.#remove(key, old);
    for (const [key, item] of next) this.#put(key, item);
    this.#revision = revision;
    this.#advance(revision);
  }

  put(object: Readonly<T>): void {
    this.#put(keyOf(object), object);
    this.#advance(revisionOf(object));
  }

  /** `object` is its last state. */
  remove(object: Readonly<T>): void {
    const key = keyOf(object);
    if (this.#objects.has(key)) this.#remove(key, object);
    this.#advance(revisionOf(object));
  }

  /** A bookmark: nothing has happened up to `revision`. */
  reached(revision: number): void { this.#advance(revision); }

  #put(key: ObjectKey, object: Readonly<T>): void {
    let old = this.#objects.get(key);
    if (old !== undefined && old.metadata.uid !== object.metadata.uid) {
      this.#remove(key, old); // another object of the same name: we missed the end of the first
      old = undefined;
    }
    if (old !== undefined && old.metadata.resourceVersion === object.metadata.resourceVersion) return;
    this.#objects.set(key, object);
    for (const [index, map] of this.#indexes) {
      if (old !== undefined && hasSameParts(index, old, object)) continue;
      const values = [...index.valuesOf(object)], before = old === undefined ? [] : [...index.valuesOf(old)];
      if (isSameList(values, before)) continue;
      if (before.length > 0) dropFrom(map, key, new Set(before).difference(new Set(values)));
      addTo(map, key, values);
    }
    this.#tellAll(old === undefined ? { object, deleted: false } : { object, old, deleted: false });
  }

  #remove(key: ObjectKey, last: Readonly<T>): void {
    const held = this.#objects.get(key);
    this.#objects.delete(key);
    if (held !== undefined) for (const [index, map] of this.#indexes) dropFrom(map, key, index.valuesOf(held));
    this.#tellAll(held === undefined ? { object: last, deleted: true } : { object: last, old: held, deleted: true });
  }

  #advance(revision: number): void {
    if (revision > this.#revision) this.#revision = revision;
    for (const waiter of [...this.#waiters]) if (waiter.arrived()) waiter.resolve();
  }

  #tellAll(change: Change<T>): void {
    for (const handler of [...this.#handlers]) this.#tell(handler, change);
  }

  #tell(handler: InformerHandler<T>, change: Change<T>): void {
    try {
      handler(change);
    } catch (error) {
      this.#log.error("informer handler failed", { key: keyOf(change.object), error }); // one handler's bug must not starve the others
    }
  }

  #index(index: Index<T>): IndexMap {
    let map = this.#indexes.get(index);
    if (map === undefined) {
      this.#indexes.set(index, (map = new Map()));
      for (const [key, object] of this.#objects) addTo(map, key, index.valuesOf(object));
    }
    return map;
  }
}

/** Revisions are counters of one store: comparable as numbers, across resources too. */
export function revisionOf({ metadata }: { readonly metadata: { readonly resourceVersion?: string | undefined } }): number {
  return Number(metadata.resourceVersion ?? 0) || 0;
}

function hasSameParts<T extends ApiObject>({ partsOf }: Index<T>, old: Readonly<T>, object: Readonly<T>): boolean { return partsOf !== undefined && isSameList(partsOf(old), partsOf(object)); }

function isSameList(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

function addTo(map: IndexMap, key: ObjectKey, values: Iterable<string>): void {
  for (const value of values) {
    const at = map.get(value);
    if (at === undefined) map.set(value, new Set([key]));
    else at.add(key);
  }
}

function dropFrom(map: IndexMap, key: ObjectKey, values: Iterable<string>): void {
  for (const value of values) {
    const at = map.get(value);
    at?.delete(key);
    if (at?.size === 0) map.delete(value);
  }
}
