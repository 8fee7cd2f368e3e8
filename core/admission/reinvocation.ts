/**
 * Mutating admission runs a second time when a webhook has changed the object: what plug-ins add to every container, say, they then also add
 * to the container a webhook has put in. One per request; there is no third round.
 *
 * Source: kubernetes v1.36 apiserver/pkg/admission/reinvocation.go
 */
export class Reinvocation {
  #isSecond = false;
  #asked = false;
  readonly #notes = new Map<object, unknown>();

  get isSecond(): boolean { return this.#isSecond; }

  /** The object has changed in a way the plug-ins before should see. */
  ask(): void { this.#asked = true; }

  /** Whether there is to be another round; it has begun then. */
  next(): boolean {
    if (this.#isSecond || !this.#asked) return false;
    this.#isSecond = true;
    return true;
  }

  /** What a plug-in keeps from one round to the next. */
  note<T>(owner: object, make: () => T): T {
    if (!this.#notes.has(owner)) this.#notes.set(owner, make());
    return this.#notes.get(owner) as T;
  }
}
