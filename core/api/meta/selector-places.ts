/** Where selectors are kept so that of a pod's labels only those have to be looked at that may mean it. */
import type { Labels } from "./label-requirement.ts";
import type { LabelSelector } from "./label-selector.ts";

export function labelIn(namespace: string, key: string, value: string): string { return `${namespace} ${key}=${value}`; }

/** Under what a selector is found: one label that it asks for, of several any will do, for a pod that it means has all of them; or that it asks for no one value of any. */
export function placeOf(selector: LabelSelector, namespace: string): string {
  const exact = selector.exactLabel();
  return exact === undefined ? namespace : labelIn(namespace, exact.key, exact.value);
}

/** Everybody who selects pods is told of one after the other, and asks for the same places: those of the labels that were asked about last are known. */
class LastPlaces {
  #labels: Labels | undefined;
  #namespace = "";
  #places: readonly string[] = [];

  of(labels: Labels, namespace: string): readonly string[] {
    if (labels === this.#labels && namespace === this.#namespace) return this.#places;
    const places = [namespace];
    for (const key in labels) places.push(labelIn(namespace, key, labels[key]!));
    if (Object.isFrozen(labels)) [this.#labels, this.#namespace, this.#places] = [labels, namespace, places];
    return places;
  }
}

const last = new LastPlaces();

/** Where the selectors are that may mean a pod of these labels. */
export function placesFor(labels: Labels, namespace: string): readonly string[] { return last.of(labels, namespace); }
