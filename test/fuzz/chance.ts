import { mulberry32 } from "../mulberry32.ts";

/** Choices that a seed repeats. */
export class Chance {
  /** 0 ≤ x < 1. */
  readonly next: () => number;
  constructor(seed: number) { this.next = mulberry32(seed); }

  below(n: number): number { return Math.floor(this.next() * n); }
  is(probability: number): boolean { return this.next() < probability; }
  one<T>(from: readonly T[]): T { return from[this.below(from.length)]!; }
  many<T>(max: number, make: () => T): T[] { return Array.from({ length: this.below(max + 1) }, make); }
}

const WORDS = ["a", "b", "name", "spec", "metadata", "kind", "apiVersion", "__proto__", "constructor", "prototype", "toString", "", "0", "-", "app.kubernetes.io/name", "containers", "labels", "é", "\u0000", "😀", "\ud800", "$patch", "$retainKeys", "$setElementOrder/containers", "~0~1", "x-kubernetes-validations"];
const NUMBERS = [0, 1, -1, 1.5, -0, 1e21, 1e-7, 2 ** 31, 2 ** 53, -(2 ** 53) - 2, 255];

export function word(chance: Chance): string { return chance.is(0.85) ? chance.one(WORDS) : chance.many(6, () => String.fromCharCode(chance.below(300))).join(""); }

/** Any JSON. */
export function json(chance: Chance, depth = 4): unknown {
  const kind = depth <= 0 ? chance.below(5) : chance.below(9);
  switch (kind) {
    case 0: return null;
    case 1: return chance.is(0.5);
    case 2: return chance.one(NUMBERS);
    case 3: case 4: return word(chance);
    case 5: case 6: return chance.many(4, () => json(chance, depth - 1));
    default: return record(chance.many(5, () => [word(chance), json(chance, depth - 1)] as const));
  }
}

/** With own members of any name, __proto__ too. */
export function record(entries: readonly (readonly [string, unknown])[]): Record<string, unknown> {
  const made: Record<string, unknown> = {};
  for (const [key, value] of entries) Object.defineProperty(made, key, { value, enumerable: true, configurable: true, writable: true });
  return made;
}

/** The same JSON with some of it replaced, left out, put twice or nested. */
export function mutated(chance: Chance, value: unknown, rate = 0.08): unknown {
  if (chance.is(rate)) return chance.is(0.5) ? json(chance, 2) : chance.is(0.5) ? [value] : record([[word(chance), value]]);
  if (Array.isArray(value)) {
    const items = value.flatMap((item) => (chance.is(rate / 2) ? [] : chance.is(rate / 2) ? [item, item] : [mutated(chance, item, rate)]));
    return chance.is(rate) ? [...items, json(chance, 2)] : items;
  }
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(() => !chance.is(rate / 2)).map(([key, below]) => [chance.is(rate / 4) ? word(chance) : key, mutated(chance, below, rate)] as const);
  return record(chance.is(rate) ? [...entries, [word(chance), json(chance, 2)]] : entries);
}

/** The same text with characters changed, left out, repeated or moved. */
export function garbled(chance: Chance, text: string): string {
  let result = text;
  for (let times = 1 + chance.below(4); times > 0; times--) {
    const [at, length] = [chance.below(result.length + 1), chance.below(8)];
    const piece = chance.one(["", "", word(chance), result.slice(at, at + length).repeat(1 + chance.below(5)), result.slice(chance.below(result.length + 1)).slice(0, 12), chance.one(["{", "}", "[", "]", "\"", "'", ",", ":", "\\", "\n", "\t", "-", "&a ", "*a", "#", "|", "%", "(", ")", "!", "="])]);
    result = result.slice(0, at) + piece + result.slice(at + (chance.is(0.5) ? length : 0));
  }
  return result;
}

export function garbledBytes(chance: Chance, bytes: Uint8Array): Uint8Array {
  const result = [...bytes];
  for (let times = 1 + chance.below(6); times > 0; times--) {
    const at = chance.below(result.length + 1);
    const how = chance.below(4);
    if (how === 0) result.splice(at, 1 + chance.below(6));
    else if (how === 1) result.splice(at, 0, ...chance.many(6, () => chance.below(256)));
    else if (at < result.length) result[at] = how === 2 ? chance.below(256) : result[at]! ^ (1 << chance.below(8));
  }
  return Uint8Array.from(result);
}
