/**
 * How many seats each level has: its share of the server's, and, adjusted every ten seconds, what levels with less to do lend to those with more.
 *
 * Source: kubernetes v1.36 apiserver/pkg/util/flowcontrol/{apf_controller,conc_alloc}.go
 */
import type { PriorityLevelConfigurationSpec } from "../../api/gen/flowcontrol.v1.ts";
import type { Period } from "./time-weighted.ts";

export interface Limits { readonly nominal: number; readonly lower: number; readonly upper: number }

export function sharesOf({ exempt, limited }: Readonly<PriorityLevelConfigurationSpec>): number {
  return (exempt ?? limited)?.nominalConcurrencyShares ?? (limited ? 30 : 0);
}

/** `total` seats, of which the level has `spec`'s share of `allShares`. */
export function limitsOf(spec: Readonly<PriorityLevelConfigurationSpec>, total: number, allShares: number): Limits {
  const nominal = allShares > 0 ? Math.ceil((total * sharesOf(spec)) / allShares) : 0;
  const lendable = Math.round((nominal * ((spec.exempt ?? spec.limited)?.lendablePercent ?? 0)) / 100);
  const borrowable = spec.limited?.borrowingLimitPercent;
  return { nominal, lower: nominal - lendable, upper: nominal + (borrowable === undefined || borrowable === null ? total : Math.round((nominal * borrowable) / 100)) };
}

/** How slowly the memory of demand fades: half of it in five minutes. Source: seatDemandSmoothingCoefficient */
const SMOOTHING = 0.977;

export function smoothed(before: number, { average, deviation }: Period): number {
  const envelope = average + deviation;
  return Math.max(envelope, SMOOTHING * before + (1 - SMOOTHING) * envelope);
}

export interface Claim { readonly lower: number; readonly upper: number; readonly target: number }

/** Who lent gets back what was in demand, and the rest goes by recent demand. */
export function claimOf({ nominal, lower, upper }: Limits, peak: number, demand: number): Claim {
  const least = Math.max(lower, Math.min(nominal, peak));
  return { lower: least, upper, target: Math.max(least, demand) };
}

/** Shares `sum` so that each gets the same fraction of its target, but no less than its lower and no more than its upper bound. */
export function allocate(sum: number, claims: readonly Claim[]): { readonly fraction: number; readonly seats: readonly number[] } {
  const lowest = claims.reduce((total, { lower }) => total + lower, 0);
  const highest = claims.reduce((total, { upper }) => total + upper, 0);
  if (sum <= lowest) return { fraction: 0, seats: claims.map(({ lower }) => lower) };
  if (sum >= highest) return { fraction: 0, seats: claims.map(({ upper }) => upper) };
  const given = (fraction: number): number[] => claims.map(({ lower, upper, target }) => Math.min(upper, Math.max(lower, fraction * Math.max(target, LEAST_TARGET))));
  let low = 0;
  let high = 1;
  while (total(given(high)) < sum) high *= 2;
  for (let step = 0; step < BISECTIONS; step++) {
    const middle = (low + high) / 2;
    if (total(given(middle)) < sum) low = middle;
    else high = middle;
  }
  return { fraction: high, seats: given(high) };
}

/** A level that wants nothing still counts for a little: what nobody wants has to go somewhere. Source: conc_alloc.go MinTarget */
const LEAST_TARGET = 0.001;
const BISECTIONS = 60;

function total(values: readonly number[]): number { return values.reduce((sum, value) => sum + value, 0); }
