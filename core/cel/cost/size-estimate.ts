/**
 * How large something is or how much it costs, at least and at most. Numbers are those of a uint64; those too large stay at its largest.
 *
 * Source: cel-go checker/cost.go
 */
export interface Estimate {
  readonly min: bigint;
  readonly max: bigint;
}

export const LARGEST = 2n ** 64n - 1n;
export const UNKNOWN_SIZE: Estimate = { min: 0n, max: LARGEST };
export const FREE: Estimate = { min: 0n, max: 0n };

export function fixed(value: bigint): Estimate { return { min: value, max: value }; }

export function sum(...estimates: readonly Estimate[]): Estimate {
  return estimates.reduce((a, b) => ({ min: atMost(a.min + b.min), max: atMost(a.max + b.max) }), FREE);
}

export function product(a: Estimate, b: Estimate): Estimate { return { min: atMost(a.min * b.min), max: atMost(a.max * b.max) }; }
/** Rounded up. */
export function times(a: Estimate, factor: number): Estimate { return { min: scaled(a.min, factor), max: scaled(a.max, factor) }; }
/** What is either. */
export function either(a: Estimate, b: Estimate): Estimate { return { min: a.min < b.min ? a.min : b.min, max: a.max > b.max ? a.max : b.max }; }

function atMost(value: bigint): bigint { return value > LARGEST ? LARGEST : value; }

function scaled(value: bigint, factor: number): bigint {
  const number = Number(value);
  if (number > 0 && factor > 0 && number > Number(LARGEST) / factor) return LARGEST;
  const ceiling = Math.ceil(number * factor);
  return ceiling >= 2 ** 64 ? LARGEST : BigInt(ceiling);
}
