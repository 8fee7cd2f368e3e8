/**
 * What the authorizer says while an expression is evaluated. Evaluation does not wait: it is given up when an answer is not at hand, and begun again with it.
 * Each question is asked once for a request.
 *
 *   const decisions = new Decisions(authorizer);
 *   await decisions.settled(() => activation.evaluate(…))        with authorizerValue(user, decisions.decide) among the bindings
 *
 * Source: kubernetes v1.36 apiserver/pkg/admission/plugin/authorizer/caching_authorizer.go
 */
import { errorText } from "../../api/meta/error-text.ts";
import type { Attributes } from "../../api/request/attributes.ts";
import type { Authorizer, Decision } from "../../authz/authorizer.ts";
import type { Decided } from "../../cel/library/authz.ts";

class Pending extends Error {
  override readonly name = "Pending";
  readonly known: Promise<void>;
  constructor(known: Promise<void>) { super("the authorizer has not answered yet"); this.known = known; }
}

export class Decisions {
  readonly #authorizer: Authorizer;
  readonly #known = new Map<string, Decided>();

  constructor(authorizer: Authorizer) { this.#authorizer = authorizer; }

  readonly decide = (attributes: Attributes): Decided => {
    const key = JSON.stringify(attributes);
    const known = this.#known.get(key);
    if (known) return known;
    const note = (decided: Decided): Decided => {
      this.#known.set(key, decided);
      return decided;
    };
    try {
      const answer = this.#authorizer.authorize(attributes);
      if (!(answer instanceof Promise)) return note(decidedBy(answer));
      throw new Pending(answer.then((decision) => void note(decidedBy(decision)), (error: unknown) => void note(failed(error))));
    } catch (error) {
      if (error instanceof Pending) throw error;
      return note(failed(error));
    }
  };

  async settled<T>(work: () => T): Promise<T> {
    for (;;) {
      try {
        return work();
      } catch (error) {
        if (!(error instanceof Pending)) throw error;
        await error.known;
      }
    }
  }
}

function decidedBy({ decision, reason }: Decision): Decided { return { allowed: decision === "allow", reason }; }
function failed(error: unknown): Decided { return { allowed: false, reason: "", error: errorText(error) }; }
