/**
 * Whether disruption budgets forbid that pods go: asked about each pod of lower priority of a thousand nodes, so that a budget is looked at for those pods alone that have a label it asks for.
 *
 *   const known = new Budgets(budgets);
 *   const left = known.left();            for each node anew: who goes there goes instead of those of other nodes
 *   left.forbids(pod)                     and it counts from then on
 *
 * Source: kubernetes v1.36 pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go filterPodsWithPDBViolation
 */
import type { Pod } from "../api/gen/core.v1.ts";
import type { PodDisruptionBudget } from "../api/gen/policy.v1.ts";
import { type LabelSelector, labelSelector } from "../api/meta/label-selector.ts";
import { labelsOf, namespaceOf } from "../api/meta/object-meta.ts";
import { placeOf, placesFor } from "../api/meta/selector-places.ts";

interface Known { readonly budget: Readonly<PodDisruptionBudget>; readonly selector: LabelSelector }

export class Budgets {
  readonly #places = new Map<string, Known[]>();

  constructor(budgets: readonly Readonly<PodDisruptionBudget>[]) {
    for (const budget of budgets) {
      const selector = labelSelector(budget.spec.selector);
      if (selector.empty) continue;
      const place = placeOf(selector, namespaceOf(budget)), there = this.#places.get(place);
      if (there) there.push({ budget, selector });
      else this.#places.set(place, [{ budget, selector }]);
    }
  }

  /** How many may go yet. */
  left(): BudgetsLeft { return new BudgetsLeft((pod) => this.#about(pod)); }

  #about(pod: Readonly<Pod>): readonly Readonly<PodDisruptionBudget>[] {
    const labels = labelsOf(pod);
    if (this.#places.size === 0 || Object.keys(labels).length === 0) return [];
    return placesFor(labels, namespaceOf(pod)).flatMap((place) => this.#places.get(place)?.filter(({ selector }) => selector.matches(labels)).map(({ budget }) => budget) ?? []);
  }
}

export class BudgetsLeft {
  readonly #about: (pod: Readonly<Pod>) => readonly Readonly<PodDisruptionBudget>[];
  readonly #allowed = new Map<Readonly<PodDisruptionBudget>, number>();

  constructor(about: (pod: Readonly<Pod>) => readonly Readonly<PodDisruptionBudget>[]) {
    this.#about = about;
  }

  /** Whether some budget forbids that the pod goes, too. */
  forbids(pod: Readonly<Pod>): boolean {
    let isForbidden = false;
    for (const budget of this.#about(pod)) {
      const { disruptionsAllowed = 0, disruptedPods } = budget.status ?? {};
      if (disruptedPods?.[pod.metadata.name] !== undefined) continue; // counted already
      const allowed = (this.#allowed.get(budget) ?? disruptionsAllowed) - 1;
      this.#allowed.set(budget, allowed);
      if (allowed < 0) isForbidden = true;
    }
    return isForbidden;
  }
}
