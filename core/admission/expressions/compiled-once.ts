/** Expressions are compiled when they first matter, which after two hundred new policies, or one with thousands of them, is with one write: others have their turn between. */
import { type Breathe, breather, inPieces, type Pausing } from "../../lifecycle/breather.ts";
import type { Clock } from "../../lifecycle/clock.ts";

/** What `compile` makes of an object, as long as there is that object. */
export class CompiledOnce<S extends object, C> {
  readonly #compile: (source: S) => Pausing<C>;
  readonly #breathe: Breathe;
  readonly #known = new WeakMap<S, Promise<C>>();

  constructor(compile: (source: S) => Pausing<C>, clock: Pick<Clock, "uptimeMs">) {
    this.#compile = compile;
    this.#breathe = breather(clock);
  }

  of(source: S): Promise<C> {
    let known = this.#known.get(source); // or under way: it is not begun again for who comes meanwhile
    if (!known) this.#known.set(source, (known = this.#made(source)));
    return known;
  }

  async #made(source: S): Promise<C> {
    await this.#breathe();
    return await inPieces(this.#compile(source), this.#breathe);
  }
}
