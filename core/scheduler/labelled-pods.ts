/** Placed pods by their labels: of a selector that asks for values of one, only those have to be looked at that have them, though there be ten thousand such selectors. */
import type { Pod } from "../api/gen/core.v1.ts";
import type { LabelRequirement } from "../api/meta/label-requirement.ts";
import type { LabelSelector } from "../api/meta/label-selector.ts";
import { labelsOf } from "../api/meta/object-meta.ts";

/** Where pods are, by uid. */
type Places = Map<string, string>;

export class LabelledPods {
  readonly #places = new Map<string, Map<string, Places>>(); // by key and value; none is empty

  move(pod: Readonly<Pod>, node: string, by: 1 | -1): void {
    for (const [key, value] of Object.entries(labelsOf(pod))) {
      let values = this.#places.get(key);
      if (!values) this.#places.set(key, (values = new Map()));
      let places = values.get(value);
      if (!places) values.set(value, (places = new Map()));
      if (by > 0) places.set(pod.metadata.uid, node);
      else places.delete(pod.metadata.uid);
      if (places.size === 0) values.delete(value);
      if (values.size === 0) this.#places.delete(key);
    }
  }

  /** Few, among which are all that each of the selectors means. */
  *among(selectors: readonly LabelSelector[]): Iterable<readonly [uid: string, node: string]> {
    let fewest: { readonly found: readonly Places[]; readonly size: number } | undefined;
    for (const { requirements } of selectors)
      for (const requirement of requirements) {
        if (!asksForValues(requirement)) continue;
        const found = this.#with(requirement);
        const size = found.reduce((sum, places) => sum + places.size, 0);
        if (!fewest || size < fewest.size) fewest = { found, size };
        if (size === 0) return;
      }
    for (const places of fewest?.found ?? []) yield* places;
  }

  #with({ key, values }: LabelRequirement): Places[] {
    const known = this.#places.get(key);
    return known ? [...new Set(values)].flatMap((value) => known.get(value) ?? []) : [];
  }
}

/** Whether pods can be found by their labels: otherwise all have to be looked at. */
export function areFoundByLabel(selectors: readonly LabelSelector[]): boolean { return selectors.some(({ requirements }) => requirements.some(asksForValues)); }

function asksForValues({ operator }: LabelRequirement): boolean { return operator === "=" || operator === "==" || operator === "in"; }
