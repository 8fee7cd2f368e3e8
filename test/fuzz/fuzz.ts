/**
 * Input that nobody wrote, for what strangers may send us. A case is JSON; a target makes cases and takes them.
 *
 *   bun test/fuzz/run.ts --minutes 10 [--target cel] [--seed 7]      a long run; what it finds goes to test/fuzz/corpus/<target>/
 *   test/fuzz/fuzz.test.ts                                           in CI: the corpus, and a second of each target
 *
 * Found is: an error that is none of those the target may throw (no TypeError, no RangeError), a case that takes too long, and anything that has
 * become part of Object.prototype.
 */
import { Chance } from "./chance.ts";

export interface Target {
  readonly name: string;
  /** JSON. */
  make(chance: Chance): unknown;
  /** Throws only errors that `allows`. */
  take(value: never): void;
  /** By the error's name. */
  readonly allows: readonly string[];
}

export interface Finding { readonly target: string; readonly seed: number; readonly value: unknown; readonly why: string }

/** More than any case should need on the busiest machine. */
const SLOW_MS = 15_000;

/** Undefined: all is well. */
export function tried(target: Target, value: unknown, slowMs = SLOW_MS): string | undefined {
  const before = performance.now();
  try {
    target.take(structuredClone(value) as never);
  } catch (error) {
    const { name } = error as Error;
    if (!target.allows.includes(name)) return `${name}: ${(error as Error).message}\n${(error as Error).stack ?? ""}`.slice(0, 1500);
  }
  const took = performance.now() - before;
  const polluted = Object.keys(Object.prototype);
  if (polluted.length > 0) {
    for (const key of polluted) delete (Object.prototype as Record<string, unknown>)[key];
    return `Object.prototype has got ${polluted.join(", ")}`;
  }
  return took > slowMs ? `took ${Math.round(took)} ms` : undefined;
}

/** Cases from `seed` on until the time is over, or `casesMax` have been tried; `begins` hears of each before it is made. */
export function fuzz(target: Target, { seed, ms, casesMax = Number.POSITIVE_INFINITY, slowMs, begins }: { readonly seed: number; readonly ms: number; readonly casesMax?: number; readonly slowMs?: number; begins?(seed: number): void }): { readonly cases: number; readonly findings: readonly Finding[] } {
  const end = performance.now() + ms;
  const findings: Finding[] = [];
  let cases = 0;
  for (; performance.now() < end && cases < casesMax && findings.length < 5; cases++) {
    begins?.(seed + cases);
    const value = target.make(new Chance(seed + cases));
    const why = tried(target, value, slowMs);
    if (why !== undefined) findings.push({ target: target.name, seed: seed + cases, value, why });
  }
  return { cases, findings };
}
