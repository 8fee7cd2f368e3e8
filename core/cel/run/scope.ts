/** What names stand for while an expression is evaluated, and what that has cost so far. */
import { costAhead } from "../cost/actual-cost.ts";
import type { Value } from "../value/value.ts";

export interface Scope {
  /** Undefined: there is no such name. */
  resolve(name: string): Value | undefined;
  readonly meter: Meter;
}

/** The expression has cost more than it may. */
export class CostExceeded extends Error {
  override readonly name = "CostExceeded";
  constructor() { super("operation cancelled: actual cost limit exceeded"); }
}

export class Meter {
  readonly #limit: number;
  #spent = 0;

  constructor(limit: number) { this.#limit = limit; }

  get spent(): number { return this.#spent; }

  /** What a call does that its cost does not tell. Throws CostExceeded. */
  addAhead(name: string, args: readonly Value[]): void {
    const ahead = costAhead(name, args, this.#limit);
    if (ahead > 0) this.add(ahead);
  }

  /** Throws CostExceeded. */
  add(cost: number): void {
    this.#spent += cost;
    if (this.#spent > this.#limit) throw new CostExceeded();
  }
}
