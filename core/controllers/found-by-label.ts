/**
 * Pods by their labels, and what selects pods (or ReplicaSets, or revisions) by a label it asks for: neither has to look at all of the others in its namespace.
 *
 *   matchingPods(pods, { namespace, selector })         the pods that a selector means
 *   BY_SELECTOR = bySelector({ selectorOf: ({ spec }) => labelSelector(spec.selector) })
 *   selecting(budgets, BY_SELECTOR, pod)                those whose selectors mean a pod
 *   mapped(pods, nowAndBefore(setsOf))                  those that a change of a pod concerns
 */
import type { Pod } from "../api/gen/core.v1.ts";
import type { LabelSelector } from "../api/meta/label-selector.ts";
import { type ApiObject, labelsOf, namespaceOf, type ObjectKey } from "../api/meta/object-meta.ts";
import { labelIn, placeOf, placesFor } from "../api/meta/selector-places.ts";
import type { Index, Informer } from "../client/informer.ts";
import type { Change } from "./controller.ts";

/** By each of its labels. */
export const PODS_BY_LABEL: Index<Pod> = { name: "label", partsOf: ({ metadata }) => [metadata.labels], valuesOf: (pod) => Object.entries(labelsOf(pod)).map(([key, value]) => labelIn(namespaceOf(pod), key, value)) };

/** In no order that could be relied on. */
export function matchingPods(pods: Pick<Informer<Pod>, "by" | "inNamespace">, { namespace, selector }: { readonly namespace: string; readonly selector: LabelSelector }): readonly Readonly<Pod>[] {
  let fewest: Iterable<Readonly<Pod>> | undefined, least = Number.POSITIVE_INFINITY;
  for (const { key, value } of selector.exactLabels()) {
    const found = pods.by(PODS_BY_LABEL, labelIn(namespace, key, value));
    if (found.length < least) [fewest, least] = [found, found.length];
    if (least === 0) return [];
  }
  return [...fewest ?? pods.inNamespace(namespace)].filter(({ metadata }) => selector.matches(metadata.labels));
}

/** What selects objects of its namespace. */
export interface BySelector<T extends ApiObject> extends Index<T> {
  /** Throws for one that validation would have refused: an object may be from before it did. */
  selectorOf(object: Readonly<T>): LabelSelector;
}

export function bySelector<T extends ApiObject>({ selectorOf }: Pick<BySelector<T>, "selectorOf">): BySelector<T> {
  return {
    name: "selector", selectorOf,
    valuesOf(object) {
      try {
        const selector = selectorOf(object);
        return selector.nothing ? [] : [placeOf(selector, namespaceOf(object))];
      } catch {
        return []; // it means no pod; whoever reads it for itself says so
      }
    },
  };
}

export function selecting<T extends ApiObject>(informer: Pick<Informer<T>, "by">, index: BySelector<T>, object: Readonly<ApiObject>): Readonly<T>[] {
  const labels = labelsOf(object), found: Readonly<T>[] = [];
  for (const place of placesFor(labels, namespaceOf(object))) for (const one of informer.by(index, place)) if (index.selectorOf(one).matches(labels)) found.push(one);
  return found;
}

/** What `keysOf` says of an object as it is and as it was: it goes by labels, namespace, controller, and whether the object is being deleted, and is asked once where those are the same. */
export function nowAndBefore<T extends ApiObject>(keysOf: (object: Readonly<T>) => readonly ObjectKey[]): (change: Change<T>) => readonly ObjectKey[] {
  return ({ object, old }) => (old === undefined || belongsAlike(object.metadata, old.metadata) ? keysOf(object) : [...keysOf(object), ...keysOf(old)]);
}

/** Versions share what they have in common. */
function belongsAlike(now: Readonly<ApiObject["metadata"]>, before: Readonly<ApiObject["metadata"]>): boolean {
  return now.labels === before.labels && now.ownerReferences === before.ownerReferences && (now.deletionTimestamp === undefined) === (before.deletionTimestamp === undefined);
}
