/**
 * A range of numbers that are given out one by one: addresses of services, ports of nodes.
 *
 * What is in use is told by the services there are; the pool itself only remembers what writes in flight have taken, so it cannot leak and needs no repair.
 * Numbers nobody asked for come from the upper part of the range first: those who do ask mostly ask for low ones.
 *
 * Source: kubernetes v1.36 pkg/registry/core/service/{ipallocator,portallocator}
 */
import type { Random } from "../../../../lifecycle/random.ts";

export interface PoolRange {
  readonly first: bigint;
  readonly last: bigint;
  /** How many at the start are left for those who ask. */
  readonly reserved: bigint;
}

/** Ranges can be larger than anything that could be tried one by one; a free number is found long before that. */
const TRIES_MAX = 1n << 24n;

export class Pool {
  readonly range: PoolRange;
  readonly #random: Random;
  /** Taken by writes that are not finished. */
  readonly #inFlight: Set<bigint>;

  /** `inFlight`: shared with pools whose ranges may overlap. */
  constructor(range: PoolRange, random: Random, inFlight = new Set<bigint>()) {
    this.range = range;
    this.#random = random;
    this.#inFlight = inFlight;
  }

  has(value: bigint): boolean { return value >= this.range.first && value <= this.range.last; }

  isTaken(value: bigint, inUse: ReadonlySet<bigint>): boolean { return inUse.has(value) || this.#inFlight.has(value); }

  /** False if it is in use. `inUse`: by the services there are. */
  take(value: bigint, inUse: ReadonlySet<bigint>): boolean {
    if (this.isTaken(value, inUse)) return false;
    this.#inFlight.add(value);
    return true;
  }

  /** Any free number; undefined if there is none. */
  takeAny(inUse: ReadonlySet<bigint>): bigint | undefined {
    const { first, last, reserved } = this.range;
    return this.#takeFrom(first + reserved, last, inUse) ?? this.#takeFrom(first, first + reserved - 1n, inUse);
  }

  #takeFrom(first: bigint, last: bigint, inUse: ReadonlySet<bigint>): bigint | undefined {
    const size = last - first + 1n;
    if (size <= 0n) return undefined;
    const start = BigInt(Math.floor(this.#random.next() * Number(size)));
    for (let tried = 0n; tried < size && tried < TRIES_MAX; tried++) {
      const value = first + ((start + tried) % size);
      if (this.take(value, inUse)) return value;
    }
    return undefined;
  }

  /** The write is over: from now on the services tell whether it is in use. */
  done(value: bigint): void { this.#inFlight.delete(value); }
}
