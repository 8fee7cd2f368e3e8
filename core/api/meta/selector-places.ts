/** Where selectors are kept so that of a pod's labels only those have to be looked at that may mean it. Pure. */
import type { Labels } from "./label-requirement.ts";
import type { LabelSelector } from "./label-selector.ts";

export function labelIn(namespace: string, key: string, value: string): string { return `${namespace} ${key}=${value}`; }

/** Under what a selector is found: one label that it asks for, of several any will do, for a pod that it means has all of them; or that it asks for no one value of any. */
export function placeOf(selector: LabelSelector, namespace: string): string {
  const exact = selector.exactLabel();
  return exact === undefined ? namespace : labelIn(namespace, exact.key, exact.value);
}

/** Where the selectors are that may mean a pod of these labels. */
export function placesFor(labels: Labels, namespace: string): string[] { return [namespace, ...Object.entries(labels).map(([key, value]) => labelIn(namespace, key, value))]; }
