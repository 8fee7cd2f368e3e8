/**
 * Sets of completion indexes, as status.completedIndexes writes them: "0,3-5,7".
 *
 * Source: kubernetes v1.36 pkg/controller/job/indexed_job_utils.go
 */
interface Span { readonly first: number; readonly last: number }

/** Immutable; spans are sorted and never touch. */
export class Indexes {
  static readonly NONE = new Indexes([]);
  readonly #spans: readonly Span[];

  private constructor(spans: readonly Span[]) {
    this.#spans = spans;
  }

  /** What cannot be read is left out, and what is not below `completions`. */
  static parse(text: string | undefined, completions: number): Indexes {
    const spans: Span[] = [];
    for (const part of (text ?? "").split(",")) {
      const match = /^(\d+)(?:-(\d+))?$/.exec(part);
      if (match === null || Number(match[1]) >= completions) continue;
      spans.push({ first: Number(match[1]), last: Math.min(completions - 1, Number(match[2] ?? match[1])) });
    }
    return Indexes.#merged(spans);
  }

  static of(indexes: Iterable<number>): Indexes { return Indexes.#merged([...indexes].map((index) => ({ first: index, last: index }))); }

  static #merged(spans: readonly Span[]): Indexes {
    const merged: Span[] = [];
    for (const span of spans.toSorted((a, b) => a.first - b.first)) {
      const before = merged.at(-1);
      if (before !== undefined && span.first <= before.last + 1) merged[merged.length - 1] = { first: before.first, last: Math.max(before.last, span.last) };
      else merged.push(span);
    }
    return new Indexes(merged);
  }

  get size(): number { return this.#spans.reduce((sum, { first, last }) => sum + last - first + 1, 0); }

  has(index: number): boolean { return this.#spans.some(({ first, last }) => first <= index && index <= last); }

  union(other: Indexes): Indexes { return Indexes.#merged([...this.#spans, ...other.#spans]); }

  /** How many are in both. */
  overlap(other: Indexes): number {
    let count = 0;
    for (const a of this.#spans) for (const b of other.#spans) count += Math.max(0, Math.min(a.last, b.last) - Math.max(a.first, b.first) + 1);
    return count;
  }

  /** The first `count` indexes below `completions` that are not in the set. */
  missing(count: number, completions: number): number[] {
    const found: number[] = [];
    let candidate = 0;
    for (const { first, last } of [...this.#spans, { first: completions, last: completions }]) {
      for (; candidate < Math.min(first, completions) && found.length < count; candidate++) found.push(candidate);
      candidate = Math.max(candidate, last + 1);
    }
    return found;
  }

  toString(): string {
    return this.#spans.map(({ first, last }) => (first === last ? `${first}` : last === first + 1 ? `${first},${last}` : `${first}-${last}`)).join(",");
  }
}
