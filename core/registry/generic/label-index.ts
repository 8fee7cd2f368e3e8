/**
 * Which entries of a resource have which value of a label, for those labels that lists are selected by: a list of a hundred pods out of ten thousand
 * need not look at the others.
 */
import type { Cached } from "./cached.ts";

/** Labels kept at a time. Whoever selects selects by few. */
const KEYS_MAX = 4;

interface Key { readonly values: Map<string, Set<Cached>>; used: boolean }

export class LabelIndex {
  readonly #keys = new Map<string, Key>();

  /** The entries whose label `key` is `value`, in no order; `all` is read when that label has not been asked for lately. */
  find(key: string, value: string, all: () => Iterable<Cached>): ReadonlySet<Cached> {
    const known = this.#keys.get(key) ?? this.#add(key, all());
    known.used = true;
    return known.values.get(value) ?? NONE;
  }

  replace(previous: Cached | undefined, entry: Cached | undefined): void {
    for (const [key, { values }] of this.#keys) {
      const before = previous?.object.metadata.labels?.[key];
      if (previous && before !== undefined) {
        const having = values.get(before);
        having?.delete(previous);
        if (having?.size === 0) values.delete(before);
      }
      if (entry) put(values, entry.object.metadata.labels?.[key], entry);
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
    for (const entry of all) put(made.values, entry.object.metadata.labels?.[key], entry);
    if (this.#keys.size >= KEYS_MAX) this.#keys.delete(this.#keys.keys().next().value!);
    this.#keys.set(key, made);
    return made;
  }
}

const NONE: ReadonlySet<Cached> = new Set();

function put(values: Map<string, Set<Cached>>, value: unknown, entry: Cached): void {
  if (typeof value !== "string") return; // "constructor" finds what is nobody's label
  const having = values.get(value);
  if (having) having.add(entry);
  else values.set(value, new Set([entry]));
}
