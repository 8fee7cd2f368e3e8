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

export function smoothed(before: number, { average, deviation }: Pick<Period, "average" | "deviation">): number {
  const envelope = average + deviation;
  return Math.max(envelope, SMOOTHING * before + (1 - SMOOTHING) * envelope);
}

export interface Claim { readonly lower: number; readonly upper: number; readonly target: number }

/** Of what a level has a claim to, `least` is its own whatever others take. */
export interface LevelClaim extends Claim { readonly least: number }

/** Who lent gets back what was in demand, and the rest goes by recent demand. */
export function claimOf({ nominal, lower: least, upper }: Limits, peak: number, demand: number): LevelClaim {
  const lower = Math.max(least, Math.min(nominal, peak));
  return { least, lower, upper, target: Math.max(lower, demand) };
}

/**
 * Shares the seats of all levels, `nominal` together. What the exempt one takes is taken from the others, down to what each does not lend; between that and what each has a claim to they go short alike.
 */
export function shareSeats({ nominal, exempt, claims }: { readonly nominal: number; readonly exempt: number; readonly claims: readonly LevelClaim[] }): { readonly fraction: number; readonly seats: readonly number[] } {
  const left = nominal - exempt, least = total(claims.map((claim) => claim.least)), lowest = total(claims.map(({ lower }) => lower));
  if (left <= least) return { fraction: 0, seats: claims.map((claim) => claim.least) };
  if (left <= lowest) return { fraction: 0, seats: claims.map((claim) => claim.least + Math.round(((claim.lower - claim.least) * (left - least)) / (lowest - least))) };
  const { fraction, seats } = allocate(nominal, claims);
  return { fraction, seats: seats.map(Math.round) };
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
