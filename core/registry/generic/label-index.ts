/**
 * Which entries of a resource have which value of a label, for those labels that lists are selected by: a list of a hundred pods out of ten thousand
 * need not look at the others. The node a pod is on is found like a label: when a server starts again, each node lists its own pods.
 */
import type { ApiObject } from "../../api/meta/object-meta.ts";
import type { Cached } from "./cached.ts";
import { insert, remove } from "./sorted-entries.ts";

/** For spec.nodeName. No label is called this. */
export const ON_NODE = "/spec.nodeName";

/** Labels kept at a time. Whoever selects selects by few. */
const KEYS_MAX = 4;

interface Key { readonly values: Map<string, Cached[]>; used: boolean }

export class LabelIndex {
  readonly #keys = new Map<string, Key>();

  /** The entries whose label `key` is `value`, in the order of their keys and only until one of them changes; `all`, in that order, is read when the label has not been asked for lately. */
  find(key: string, value: string, all: () => Iterable<Cached>): readonly Cached[] {
    const known = this.#keys.get(key) ?? this.#add(key, all());
    known.used = true;
    return known.values.get(value) ?? NONE;
  }

  replace(previous: Cached | undefined, entry: Cached | undefined): void {
    for (const [key, { values }] of this.#keys) {
      const before = previous && valueOf(key, previous.object), now = entry && valueOf(key, entry.object);
      if (previous && before !== undefined && before !== now) {
        const having = values.get(before);
        if (having) remove(having, previous.key);
        if (having?.length === 0) values.delete(before);
      }
      if (entry) put(values, now, entry);
    }
  }

  /** Lets go of labels nobody has asked for since this was last called. */
  forgetUnused(): void {
    for (const [key, known] of this.#keys) {
      if (!known.used) this.#keys.delete(key);
      known.used = false;
    }
  }

  #add(key: string, all: Iterable<Cached>): Key {
    const made: Key = { values: new Map(), used: true };
    for (const entry of all) put(made.values, valueOf(key, entry.object), entry);
    if (this.#keys.size >= KEYS_MAX) this.#keys.delete(this.#keys.keys().next().value!);
    this.#keys.set(key, made);
    return made;
  }
}

const NONE: readonly Cached[] = [];

function valueOf(key: string, object: Readonly<ApiObject>): string | undefined {
  if (key === ON_NODE) return (object as { readonly spec?: { readonly nodeName?: string } }).spec?.nodeName ?? "";
  const value: unknown = object.metadata.labels?.[key];
  return typeof value === "string" ? value : undefined; // "constructor" finds what is nobody's label
}

function put(values: Map<string, Cached[]>, value: string | undefined, entry: Cached): void {
  if (value === undefined) return;
  const having = values.get(value);
  if (having) insert(having, entry);
  else values.set(value, [entry]);
}
