/**
 * What changed between two objects, as sets of fields: added, modified, removed. No field is in two of them.
 *
 * Maps and lists that are atomic, scalars, and containers that are empty on both sides are compared as a whole. Something that is there on
 * one side only is added or removed with everything in it. `undefined` is absent; null is a value.
 * Parts that are the same object on both sides cost nothing.
 *
 * Source: sigs.k8s.io/structured-merge-diff v6 typed/compare.go
 */
import { ByText, textOf } from "../../codec/by-text.ts";
import { equalJson, isEmptyMap, isMap, type JsonMap, valueAt } from "../json-value.ts";
import { ANYTHING_ATOMIC, childNode, type ListSchema, type MapSchema, type SchemaNode, shapeOf } from "../schema.ts";
import { EMPTY_SET, type FieldSet, LEAF, sortKeys, union } from "./field-set.ts";
import { fieldElement, itemElement, type PathElement } from "./path-element.ts";

export interface Comparison { readonly added: FieldSet; readonly modified: FieldSet; readonly removed: FieldSet }

/** Throws TypedError if the items of a list cannot be told apart. `isNew`: `before` is the empty object of the schema. */
export function compareObjects(schema: SchemaNode, before: JsonMap, after: JsonMap, { isNew = false }: { readonly isNew?: boolean } = {}): Comparison {
  const found = isNew && isMap(after["spec"]) ? compareNew(schema, before, after) : compareValues(schema, before, after);
  return found === undefined ? SAME : { added: found.added ?? EMPTY_SET, modified: found.modified ?? EMPTY_SET, removed: found.removed ?? EMPTY_SET };
}

/** Specs known of each kind, and how long they may be; and of each with what else it came, by the fields of that. */
const SPECS_MAX = 16, SPEC_TEXT_MAX = 16_384, RESTS_MAX = 4;
interface KnownSpec { readonly spec: Readonly<Difference>; readonly wholes: ByText<Readonly<Difference>> }
const specs = new WeakMap<SchemaNode, ByText<KnownSpec>>();

/** Specs of one template add the same fields: a spec of the same text is not gone through again. Where the rest adds the same ones, too, the sets are the very same. */
function compareNew(schema: SchemaNode, before: JsonMap, after: JsonMap): Readonly<Difference> | undefined {
  const rest = compareValues(schema, before, { ...after, spec: before["spec"] });
  let known = specs.get(schema);
  if (!known) specs.set(schema, (known = new ByText(SPECS_MAX)));
  const text = textOf(after["spec"]!, SPEC_TEXT_MAX);
  const found = text === undefined ? undefined : known.get(text);
  const spec = found?.spec ?? compareValues(childNode(schema.map!, "spec") ?? ANYTHING_ATOMIC, before["spec"], after["spec"]);
  if (text === undefined || !spec) return withSpec(rest, spec);
  const { wholes } = known.put(text, found ?? { spec, wholes: new ByText(RESTS_MAX) });
  const fields = JSON.stringify(rest); // those alone, not their values
  return wholes.put(fields, wholes.get(fields) ?? withSpec(rest, spec)!);
}

function withSpec(rest: Readonly<Difference> | undefined, spec: Readonly<Difference> | undefined): Readonly<Difference> | undefined {
  const named = (set: FieldSet | undefined): FieldSet | undefined => set && { [fieldElement("spec")]: set };
  return both(rest, spec && { added: named(spec.added), modified: named(spec.modified), removed: named(spec.removed) });
}

const SAME: Comparison = { added: EMPTY_SET, modified: EMPTY_SET, removed: EMPTY_SET };

/** The differences below one element. A set that is LEAF means the element itself. */
interface Difference { added: FieldSet | undefined; modified: FieldSet | undefined; removed: FieldSet | undefined }

const ADDED: Readonly<Difference> = { added: LEAF, modified: undefined, removed: undefined };
const MODIFIED: Readonly<Difference> = { added: undefined, modified: LEAF, removed: undefined };
const REMOVED: Readonly<Difference> = { added: undefined, modified: undefined, removed: LEAF };

function compareValues(schema: SchemaNode, before: unknown, after: unknown): Readonly<Difference> | undefined {
  if (before === after) return undefined;
  const shape = shapeOf(schema, after === undefined ? before : after);
  if (before !== undefined && after !== undefined) {
    const shapeBefore = shapeOf(schema, before);
    if (shapeBefore !== shape) return both(compareAs(schema, shapeBefore, before, after), compareAs(schema, shape, before, after));
  }
  return compareAs(schema, shape, before, after);
}

function compareAs(schema: SchemaNode, shape: "map" | "scalar" | "list", before: unknown, after: unknown): Readonly<Difference> | undefined {
  switch (shape) {
    case "scalar": return compareWhole(before, after);
    case "map": return compareMaps(schema.map!, before, after);
    case "list": return compareLists(schema.list!, before, after);
  }
}

function compareWhole(before: unknown, after: unknown): Readonly<Difference> | undefined {
  if (before === undefined) return ADDED;
  if (after === undefined) return REMOVED;
  return equalJson(before, after) ? undefined : MODIFIED;
}

function compareMaps(schema: MapSchema, before: unknown, after: unknown): Readonly<Difference> | undefined {
  const left = isMap(before) && !isEmptyMap(before) ? before : undefined;
  const right = isMap(after) && !isEmptyMap(after) ? after : undefined;
  if (schema.atomic || (left === undefined && right === undefined)) return compareWhole(before, after);
  const found = new Found();
  if (left !== undefined) {
    for (const key in left) {
      const value = left[key];
      const other = right === undefined ? undefined : valueAt(right, key);
      if (value !== other && value !== undefined) found.add(fieldElement(key), compareValues(childNode(schema, key) ?? ANYTHING_ATOMIC, value, other));
    }
  }
  if (right !== undefined) {
    for (const key in right) {
      const value = right[key];
      if (value === undefined || (left !== undefined && valueAt(left, key) !== undefined)) continue;
      found.add(fieldElement(key), compareValues(childNode(schema, key) ?? ANYTHING_ATOMIC, undefined, value));
    }
  }
  return found.finish(before, after);
}

function compareLists(schema: ListSchema, before: unknown, after: unknown): Readonly<Difference> | undefined {
  const left = Array.isArray(before) && before.length > 0 ? before : undefined;
  const right = Array.isArray(after) && after.length > 0 ? after : undefined;
  if (schema.atomic || (left === undefined && right === undefined)) return compareWhole(before, after);
  if (left !== undefined && right !== undefined && equalJson(left, right)) return undefined; // as nearly always: then the items need no names
  const found = new Found();
  const lefts = groupItems(schema, left);
  const rights = groupItems(schema, right);
  for (const [element, items] of lefts) found.add(element, compareItems(schema.items, items, rights.get(element) ?? NONE));
  for (const [element, items] of rights) if (!lefts.has(element)) found.add(element, compareItems(schema.items, NONE, items));
  return found.finish(before, after);
}

const NONE: readonly unknown[] = [];

/** Items by what identifies them: usually one each. */
function groupItems(schema: ListSchema, list: readonly unknown[] | undefined): Map<PathElement, unknown[]> {
  const groups = new Map<PathElement, unknown[]>();
  for (const item of list ?? NONE) {
    const element = itemElement(schema, item);
    const group = groups.get(element);
    if (group) group.push(item);
    else groups.set(element, [item]);
  }
  return groups;
}

/** Items that occur more than once are owned together, as a whole. */
function compareItems(schema: SchemaNode, before: readonly unknown[], after: readonly unknown[]): Readonly<Difference> | undefined {
  if (before.length <= 1 && after.length <= 1) return compareValues(schema, before[0], after[0]);
  if (before.length >= 2 && after.length >= 2) return equalJson(before, after) ? undefined : MODIFIED;
  if (before.length >= 2) return both(after.length > 0 ? compareValues(schema, undefined, after[0]) : undefined, REMOVED);
  return both(before.length > 0 ? compareValues(schema, before[0], undefined) : undefined, ADDED);
}

function both(a: Readonly<Difference> | undefined, b: Readonly<Difference> | undefined): Readonly<Difference> | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return { added: unite(a.added, b.added), modified: unite(a.modified, b.modified), removed: unite(a.removed, b.removed) };
}

function unite(a: FieldSet | undefined, b: FieldSet | undefined): FieldSet | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return union({ node: a }, { node: b })["node"];
}

/** Collects the differences of the children of one value. */
class Found {
  #added: FieldSet | undefined;
  #modified: FieldSet | undefined;
  #removed: FieldSet | undefined;

  add(element: PathElement, difference: Readonly<Difference> | undefined): void {
    if (difference === undefined) return;
    if (difference.added !== undefined) (this.#added ??= {})[element] = difference.added;
    if (difference.modified !== undefined) (this.#modified ??= {})[element] = difference.modified;
    if (difference.removed !== undefined) (this.#removed ??= {})[element] = difference.removed;
  }

  /** With the value itself, if it is there on one side only. */
  finish(before: unknown, after: unknown): Readonly<Difference> | undefined {
    const added = before === undefined ? marked(this.#added) : this.#added;
    const removed = after === undefined ? marked(this.#removed) : this.#removed;
    if (added === undefined && removed === undefined && this.#modified === undefined) return undefined;
    return { added: added && sortKeys(added), modified: this.#modified && sortKeys(this.#modified), removed: removed && sortKeys(removed) };
  }
}

function marked(children: FieldSet | undefined): FieldSet { return children === undefined ? LEAF : { ".": LEAF, ...children }; }
