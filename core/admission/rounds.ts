/** Which webhooks or policies are to be asked again in the second round, and what they left of the object. Source: kubernetes v1.36 apiserver/pkg/admission/plugin/{webhook,policy}/mutating/reinvocationcontext.go */
import type { ApiObject } from "../api/meta/object-meta.ts";
import { copyOf } from "../api/meta/copy.ts";
import { sameValue } from "./refuse.ts";

export class Rounds {
  #last: ApiObject | undefined;
  readonly #asked = new Set<string>();
  readonly #again = new Set<string>();
  #isPatched = false;

  left(object: ApiObject | undefined): void { this.#last = copyOf(object); }
  isChanged(object: ApiObject | undefined): boolean { return !sameValue(this.#last, object); }
  asked(id: string): void { this.#asked.add(id); }
  /** Of all patches of the request. Tells it once. */
  isFirstPatch(): boolean {
    const isFirst = !this.#isPatched;
    this.#isPatched = true;
    return isFirst;
  }
  isToBeAsked(id: string): boolean { return this.#again.has(id); }
  askAgain(): void {
    for (const id of this.#asked) this.#again.add(id);
    this.#asked.clear();
  }
}

/** Whoever sent the request holds the object itself. */
export function replaceIn(target: ApiObject, next: ApiObject): void {
  for (const key of Object.keys(target)) delete (target as unknown as Record<string, unknown>)[key];
  Object.assign(target, next);
}
