/** What names stand for while an expression is evaluated, and what that has cost so far. */
import { CostExceeded, type Value } from "../value/value.ts";

export interface Scope {
  /** Undefined: there is no such name. */
  resolve(name: string): Value | undefined;
  readonly meter: Meter;
}

export class Meter {
  readonly #limit: number;
  #spent = 0;

  constructor(limit: number) { this.#limit = limit; }

  get spent(): number { return this.#spent; }

  /** Throws CostExceeded. */
  add(cost: number): void {
    this.#spent += cost;
    if (this.#spent > this.#limit) throw new CostExceeded();
  }
}
