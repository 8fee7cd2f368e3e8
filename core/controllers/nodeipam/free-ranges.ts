/**
 * The parts of one range that are free, kept as parts are taken and given back: the next is found without a look at all that are in use.
 *
 * Parts go round: one that was given back is the last to be offered again.
 */
import { addressBits, type Cidr, cidrsOverlap, nthSubnet, subnetCount } from "../../net/cidr.ts";

export class FreeRanges {
  readonly #range: Cidr;
  readonly #prefix: number;
  readonly #count: bigint;
  /** By a part's number: how many of those in use lie in it. */
  readonly #taken = new Map<bigint, number>();
  /** In use, and wider than a part: what is not for nodes at all, or was given out when parts were. */
  readonly #wide: Cidr[] = [];
  #next = 0n;
  #passed = 0;

  /** Parts of `prefix` bits of `range`. */
  constructor(range: Cidr, prefix: number) {
    this.#range = range;
    this.#prefix = prefix;
    this.#count = subnetCount(range, prefix);
  }

  /** May be said of the same one twice; ranges of elsewhere change nothing. */
  take(used: Cidr): void {
    if (!cidrsOverlap(used, this.#range)) return;
    if (used.prefix < this.#prefix) this.#wide.push(used);
    else this.#taken.set(this.#numberOf(used), (this.#taken.get(this.#numberOf(used)) ?? 0) + 1);
  }

  /** Undoes one `take`. */
  giveBack(used: Cidr): void {
    if (!cidrsOverlap(used, this.#range)) return;
    if (used.prefix < this.#prefix) {
      const at = this.#wide.findIndex(({ base, prefix }) => base === used.base && prefix === used.prefix);
      if (at >= 0) this.#wide.splice(at, 1);
      return;
    }
    const number = this.#numberOf(used);
    const left = (this.#taken.get(number) ?? 1) - 1;
    if (left > 0) this.#taken.set(number, left);
    else this.#taken.delete(number);
  }

  get count(): number { return Number(this.#count); }
  /** Of `count`: what is wider than a part counts as those that it covers. */
  get used(): number { return this.#taken.size + this.#wide.reduce((sum, { prefix }) => sum + Math.min(this.count, 2 ** (this.#prefix - prefix)), 0); }

  /** How many that are in use were passed by to find the last one that `next` gave. */
  get passed(): number { return this.#passed; }

  /** One that is free, and still is until it is taken; undefined: none is left. */
  next(): Cidr | undefined {
    for (let n = 0n; n < this.#count; n++) {
      const number = (this.#next + n) % this.#count;
      if (this.#taken.has(number)) continue;
      const part = nthSubnet(this.#range, this.#prefix, number);
      if (this.#wide.some((one) => cidrsOverlap(one, part))) continue;
      this.#next = number + 1n;
      this.#passed = Number(n);
      return part;
    }
    return undefined;
  }

  #numberOf(used: Cidr): bigint { return (used.base - this.#range.base) >> BigInt(addressBits(this.#range.family) - this.#prefix); }
}
