/** Expressions are compiled when they first matter, which after two hundred new policies is with one write: others have their turn between. */
import { type Breathe, breather } from "../../lifecycle/breather.ts";
import type { Clock } from "../../lifecycle/clock.ts";

/** What `compile` makes of an object, as long as there is that object. */
export class CompiledOnce<S extends object, C> {
  readonly #compile: (source: S) => C;
  readonly #breathe: Breathe;
  readonly #known = new WeakMap<S, { readonly value: C }>();

  constructor(compile: (source: S) => C, clock: Pick<Clock, "uptimeMs">) {
    this.#compile = compile;
    this.#breathe = breather(clock);
  }

  async of(source: S): Promise<C> {
    if (!this.#known.has(source)) await this.#breathe();
    let known = this.#known.get(source); // by somebody who waited, too
    if (!known) this.#known.set(source, (known = { value: this.#compile(source) }));
    return known.value;
  }
}
