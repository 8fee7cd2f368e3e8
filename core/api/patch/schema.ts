/**
 * What patches must know of a type: which parts merge, which are replaced as a whole, and what identifies the items of a list.
 *
 * A node says what a value may be: a scalar, a list, a map, or several of them (int-or-string is one scalar; a field that preserves
 * unknown fields may be anything). Structs are maps with fields. Built-in types come from the facts (facts-schema.ts), custom resources from
 * their OpenAPI (openapi-schema.ts). Nodes are shared and may be cyclic: fields are looked up, not listed.
 *
 * Source: sigs.k8s.io/structured-merge-diff v6 schema/elements.go, typed/helpers.go
 */
import { isScalar } from "./json-value.ts";

export type ScalarKind = "string" | "numeric" | "boolean" | "untyped";

export interface SchemaNode {
  readonly scalar: ScalarKind | undefined;
  readonly list: ListSchema | undefined;
  readonly map: MapSchema | undefined;
}

export interface ListSchema {
  /** Owned and replaced as a whole. */
  readonly atomic: boolean;
  /** What identifies an item, sorted; none in a list that is not atomic: a set of scalars. */
  readonly keys: readonly string[];
  /** The keys in the definition's order, for errors; absent if that is the sorted one. */
  readonly keysAsDefined?: readonly string[];
  readonly items: SchemaNode;
}

export interface MapSchema {
  readonly atomic: boolean;
  field(name: string): FieldSchema | undefined;
  /** Of keys that are no field; undefined: there are no others. */
  readonly element: SchemaNode | undefined;
  /** What Go calls the kind of the type, for errors: "struct" or "map". */
  readonly goKind: "struct" | "map";
  readonly name: string;
}

export interface FieldSchema {
  readonly node: SchemaNode;
  /** What an absent value counts as when it is a key of a list item; undefined: nothing. */
  readonly default: unknown;
  /** For strategic merge: "merge" or "replace", undefined if unmarked. */
  readonly patchStrategy: "merge" | "replace" | undefined;
  readonly patchMergeKey: string | undefined;
}

export interface ObjectSchema {
  readonly root: SchemaNode;
  /** An object of the type before anything is set: what a create is compared with to see what it set. */
  readonly empty: Readonly<Record<string, unknown>>;
  /** Strategic merge patches are possible: built-in types only. */
  readonly strategic: boolean;
  /** The schema may change under stored objects: custom resources. */
  readonly changeable: boolean;
}

export function scalarNode(scalar: ScalarKind): SchemaNode { return { scalar, list: undefined, map: undefined }; }
export function listNode(list: ListSchema): SchemaNode { return { scalar: undefined, list, map: undefined }; }
export function mapNode(map: MapSchema): SchemaNode { return { scalar: undefined, list: undefined, map }; }

/** A map from any string to `element`. */
export function stringMap(element: SchemaNode, { atomic = false }: { readonly atomic?: boolean } = {}): MapSchema {
  return { atomic, field: () => undefined, element, goKind: "map", name: "" };
}

function selfContained(atomic: boolean, listItems?: SchemaNode): SchemaNode {
  const node: { scalar: ScalarKind; list: ListSchema | undefined; map: MapSchema | undefined } = { scalar: "untyped", list: undefined, map: undefined };
  node.list = { atomic: true, keys: [], items: listItems ?? node };
  node.map = stringMap(node, { atomic });
  return node;
}

/** Anything, owned as a whole. */
export const ANYTHING_ATOMIC: SchemaNode = selfContained(true);
/** Anything; maps in it merge, lists do not. */
export const ANYTHING: SchemaNode = selfContained(false, ANYTHING_ATOMIC);

export type Shape = "map" | "scalar" | "list";

/** Which of its possibilities a node takes for a value; for null, absent and misfits the first it has. */
export function shapeOf(node: SchemaNode, value: unknown): Shape {
  if (value !== null && value !== undefined) {
    if (isScalar(value)) { if (node.scalar !== undefined) return "scalar"; }
    else if (Array.isArray(value)) { if (node.list !== undefined) return "list"; }
    else if (node.map !== undefined) return "map";
  }
  if (node.map !== undefined) return "map";
  return node.scalar !== undefined ? "scalar" : "list";
}

/** The node of a key of a map, undefined if the schema does not know it. */
export function childNode(map: MapSchema, key: string): SchemaNode | undefined { return map.field(key)?.node ?? map.element; }
