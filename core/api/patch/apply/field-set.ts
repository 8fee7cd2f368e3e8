/**
 * Sets of fields, in the form they are stored in: FieldsV1 trees.
 *
 *   { "f:spec": { "f:replicas": {}, "f:ports": { ".": {}, "k:{…}": { ".": {}, "f:port": {} } } } }
 *
 * A tree says of every node in it whether the node itself is in the set: a leaf `{}` is, a node with children is if it has the child ".".
 * The root stands for the whole object, which nobody owns: `{}` is the empty set. Sets are immutable; results share what they can, and an
 * operation that changes nothing returns its first argument. Keys are in upstream's order.
 *
 * Source: sigs.k8s.io/structured-merge-diff v6 fieldpath/{set,serialize}.go
 */
import type { FieldsV1 } from "../../meta/object-meta.ts";
import { isEmptyMap } from "../json-value.ts";
import { childNode, type SchemaNode } from "../schema.ts";
import { canonicalElement, compareElements, formatElement, type PathElement } from "./path-element.ts";

export type FieldSet = FieldsV1;

export const EMPTY_SET: FieldSet = Object.freeze({});
/** A node that is in the set and has nothing under it. */
export const LEAF: FieldSet = Object.freeze({});
const SELF = ".";

export function isEmptySet(set: FieldSet): boolean { return isEmptyMap(set); }

/** Nodes with more children than these are remembered: of those the engine lists all there are to tell whether there is one, once for each of thousands of managers. */
const CHILDREN_MANY = 64;
const withMany = new WeakSet<FieldSet>();

/** Two at least. */
function hasMany(node: FieldSet): boolean {
  if (withMany.has(node)) return true;
  let count = 0;
  for (const _ in node) {
    if (++count <= CHILDREN_MANY) continue;
    withMany.add(node);
    return true;
  }
  return false;
}

/** Of a node below the root. */
function isMember(node: FieldSet): boolean { return node[SELF] !== undefined || (!hasMany(node) && isEmptyMap(node)); }

function hasChildren(node: FieldSet): boolean {
  if (hasMany(node)) return true;
  for (const key in node) if (key !== SELF) return true;
  return false;
}

export function hasPath(set: FieldSet, path: readonly PathElement[]): boolean {
  let node: FieldSet | undefined = set;
  for (const element of path) if ((node = node[element]) === undefined) return false;
  return path.length > 0 && isMember(node);
}

/** Whether the element itself is in the set. */
export function hasElement(set: FieldSet, element: PathElement): boolean {
  const node = set[element];
  return node !== undefined && isMember(node);
}

export function setOf(...paths: readonly (readonly PathElement[])[]): FieldSet {
  return paths.reduce<FieldSet>((set, path) => union(set, path.reduceRight<FieldSet>((node, element) => ({ [element]: node }), LEAF)), EMPTY_SET);
}

export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b) return a;
  if (a === EMPTY_SET) return b;
  let out: FieldSet = a;
  let added = false;
  for (const key in b) {
    const left = a[key];
    const right = b[key]!;
    const both = left === undefined || key === SELF ? left ?? right : unionNode(left, right);
    if (both === left) continue;
    if (out === a) out = { ...a };
    out[key] = both;
    added ||= left === undefined;
  }
  return added ? sortKeys(out) : out;
}

/** Of any number, two by two: one after the other, each would be gone through with all that came before it. */
export function unionAll(sets: readonly FieldSet[]): FieldSet {
  if (sets.length < 2) return sets[0] ?? EMPTY_SET;
  const half = sets.length >> 1;
  return union(unionAll(sets.slice(0, half)), unionAll(sets.slice(half)));
}

function unionNode(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b) return a;
  const merged = union(a, b);
  return isEmptyMap(merged) || merged[SELF] !== undefined || !(isEmptyMap(a) || isEmptyMap(b)) ? merged : { [SELF]: LEAF, ...merged };
}

/** In `a` and not in `b`. What is under an element of `b` stays, and so does an element whose children are in `b`. */
export function difference(a: FieldSet, b: FieldSet): FieldSet { return subtract(a, b, false) ?? EMPTY_SET; }

/** Like difference, but what is under an element of `b` goes too. */
export function recursiveDifference(a: FieldSet, b: FieldSet): FieldSet { return subtract(a, b, true) ?? EMPTY_SET; }

function subtract(a: FieldSet, b: FieldSet, recursive: boolean): FieldSet | undefined {
  let out: FieldSet = a;
  for (const key in a) { // of which there may be thousands, one for each manager, with one `b`
    const right = b[key];
    if (key === SELF || right === undefined) continue;
    const left = a[key]!;
    const rest = subtractNode(left, right, recursive);
    if (rest === left) continue;
    if (out === a) out = { ...a };
    if (rest === undefined) delete out[key];
    else out[key] = rest;
  }
  return out;
}

function subtractNode(a: FieldSet, b: FieldSet, recursive: boolean): FieldSet | undefined {
  const gone = isMember(b);
  if (gone && recursive) return undefined;
  const member = isMember(a) && !gone;
  const children = subtract(a, b, recursive)!;
  if (children === a && isMember(a) === member) return a;
  return node(member, children);
}

/** `children` may carry a mark of its own, which `member` overrules. */
function node(member: boolean, children: FieldSet): FieldSet | undefined {
  if (!hasChildren(children)) return member ? LEAF : undefined;
  if (member === (children[SELF] !== undefined)) return children;
  if (member) return { [SELF]: LEAF, ...children };
  const { [SELF]: _, ...rest } = children;
  return rest;
}

/** In both; of elements with children, those children that are in both. */
export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b) return a;
  const out: FieldSet = {};
  for (const key in a) {
    const right = b[key];
    if (key === SELF || right === undefined) continue;
    const left = a[key]!;
    const common = node(isMember(left) && isMember(right), withoutSelf(intersection(left, right)));
    if (common !== undefined) out[key] = common;
  }
  return out;
}

function withoutSelf(set: FieldSet): FieldSet {
  if (set[SELF] === undefined) return set;
  const { [SELF]: _, ...rest } = set;
  return rest;
}

export function equalSets(a: FieldSet, b: FieldSet): boolean {
  if (a === b) return true;
  for (const key in a) {
    const right = b[key];
    if (right === undefined || !equalSets(a[key]!, right)) return false;
  }
  for (const key in b) if (a[key] === undefined) return false;
  return true;
}

/** Every path in the set; of siblings first those that are in it, then what is below them. */
export function* pathsOf(set: FieldSet, prefix: readonly PathElement[] = []): Generator<readonly PathElement[]> {
  for (const key in set) if (key !== SELF && isMember(set[key]!)) yield [...prefix, key];
  for (const key in set) if (key !== SELF && !isEmptyMap(set[key]!)) yield* pathsOf(set[key]!, [...prefix, key]);
}

export function formatPath(path: readonly PathElement[]): string { return path.map(formatElement).join(""); }

/** The set with every struct field on the way to a member a member too; keys of maps are not. */
export function withNamedFields(set: FieldSet, schema: SchemaNode | undefined): FieldSet {
  let out: FieldSet = set;
  for (const key in set) {
    const child = set[key]!;
    if (key === SELF || isEmptyMap(child)) continue;
    const deep = withNamedFields(child, schemaBelow(schema, key));
    const named = key.startsWith("f:") && schema?.map?.field(key.slice(2)) !== undefined;
    const marked = named && deep[SELF] === undefined ? { [SELF]: LEAF, ...deep } : deep;
    if (marked === child) continue;
    if (out === set) out = { ...set };
    out[key] = marked;
  }
  return out;
}

export function schemaBelow(schema: SchemaNode | undefined, element: PathElement): SchemaNode | undefined {
  if (element.startsWith("f:")) return schema?.map && childNode(schema.map, element.slice(2));
  return schema?.list?.items;
}

/** A tree whose keys were added as they came, in order. */
export function sortKeys(set: FieldSet): FieldSet {
  const keys = Object.keys(set);
  let ordered = true;
  for (let i = 1; ordered && i < keys.length; i++) ordered = compareElements(keys[i - 1]!, keys[i]!) < 0;
  if (ordered) return set;
  const out: FieldSet = {};
  for (const key of keys.sort(compareElements)) out[key] = set[key]!;
  return out;
}

/** A set as a client wrote it; null is nothing, and that the whole object is in it says nothing. Throws for what is none. */
export function parseFieldSet(written: unknown): FieldSet { return withoutSelf(parseNode(written)); }

function parseNode(written: unknown): FieldSet {
  if (written === null) return LEAF;
  if (typeof written !== "object" || Array.isArray(written)) throw new Error("not a set of fields");
  const out: FieldSet = {};
  const spelled = new Map<PathElement, FieldSet[]>(); // what is written in several ways, as i:1 and i:01
  for (const [key, child] of Object.entries(written)) {
    const element = key === SELF ? SELF : canonicalElement(key);
    if (element === undefined) continue;
    const parsed = element === SELF ? LEAF : parseNode(child);
    const before = out[element];
    if (before === undefined) { out[element] = parsed; continue; }
    const sets = spelled.get(element);
    if (sets) sets.push({ [element]: parsed });
    else spelled.set(element, [{ [element]: before }, { [element]: parsed }]);
  }
  for (const [element, sets] of spelled) out[element] = unionAll(sets)[element]!;
  return hasChildren(out) ? sortKeys(out) : LEAF;
}
