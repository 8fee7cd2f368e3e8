/**
 * What is known of values by their JSON, of those that were met last: of equal texts the values are equal, and in the same order. A text of 1 kB is made and found in less time than
 * most of what can be done with a value takes.
 */
export class ByText<V> {
  readonly #known = new Map<string, V>();
  readonly #max: number;

  /** So many at a time: those that have not been put for longest go. */
  constructor(max: number) { this.#max = max; }

  get(text: string): V | undefined { return this.#known.get(text); }

  put(text: string, value: V): V {
    this.#known.delete(text);
    this.#known.set(text, value);
    if (this.#known.size > this.#max) this.#known.delete(this.#known.keys().next().value!);
    return value;
  }
}

/** Undefined: it is longer than `lengthMax`, or has integers that JSON.stringify does not know. */
export function textOf(value: object, lengthMax: number = Infinity): string | undefined {
  try {
    const text = JSON.stringify(value);
    return text.length <= lengthMax ? text : undefined;
  } catch {
    return undefined;
  }
}
