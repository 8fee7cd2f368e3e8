/**
 * Which fields a write can come to own at all. What the registry resets whatever the client sends (status in a write of the object, spec in a
 * write of its status) is nobody's by that write.
 *
 *   excludeFields("status")                              a resource whose status has its own subresource
 *   includeFields("spec.containers.*.resources", …)      a subresource that changes only these
 *
 * Source: sigs.k8s.io/structured-merge-diff v6 fieldpath/set.go Filter; GetResetFields of the strategies in kubernetes v1.36 pkg/registry
 */
import { EMPTY_SET, type FieldSet, hasElement, LEAF, recursiveDifference, setOf } from "./field-set.ts";
import { fieldElement } from "./path-element.ts";

export type FieldFilter = (set: FieldSet) => FieldSet;

/** Paths of struct fields, `metadata.ownerReferences`; all that is below them goes too. */
export function excludeFields(...paths: readonly string[]): FieldFilter {
  const excluded = setOf(...paths.map((path) => path.split(".").map(fieldElement)));
  return remembered((set) => recursiveDifference(set, excluded));
}

/** What came of a set is known when it comes again, as it does with new objects of one template (compare.ts). */
export function remembered(filter: FieldFilter): FieldFilter {
  const known = new WeakMap<FieldSet, FieldSet>();
  return (set) => {
    const before = known.get(set);
    if (before) return before;
    const found = filter(set);
    known.set(set, found);
    return found;
  };
}

interface Pattern { all: boolean; readonly children: Map<string, Pattern> }

/** Paths that may have `*` for any item of a list or key of a map. */
export function includeFields(...paths: readonly string[]): FieldFilter {
  const root: Pattern = { all: false, children: new Map() };
  for (const path of paths) {
    let at = root;
    for (const step of path.split(".")) {
      const element = step === "*" ? step : fieldElement(step);
      const next = at.children.get(element) ?? { all: false, children: new Map<string, Pattern>() };
      at.children.set(element, next);
      at = next;
    }
    at.all = true;
  }
  return (set) => include(set, root);
}

function include(set: FieldSet, pattern: Pattern): FieldSet {
  if (pattern.all) return set;
  const kept: FieldSet = {};
  for (const element in set) {
    const next = pattern.children.get("*") ?? pattern.children.get(element);
    if (next === undefined || element === ".") continue;
    const inside = next.all ? set[element]! : include(set[element]!, next);
    if (hasElement(set, element)) kept[element] = inside === EMPTY_SET || Object.keys(inside).length === 0 ? LEAF : { ".": LEAF, ...inside };
    else if (Object.keys(inside).length > 0) kept[element] = inside;
  }
  return kept;
}
