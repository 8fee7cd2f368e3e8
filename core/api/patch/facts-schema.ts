/**
 * Schemas of the built-in types, from the facts table.
 *
 *   builtInSchemas.schemaOf({ group: "apps", version: "v1", kind: "Deployment" })
 *
 * Agrees with what upstream derives from its OpenAPI; facts-schema.test.ts pins the parts that are easy to get wrong.
 */
import { canonical } from "../schema/canonical.ts";
import { builtInFacts, type FieldInfo, type Facts, type Scalar, type Special, type StructType, type Type } from "../schema/facts.ts";
import type { GroupVersionKind } from "../meta/gvk.ts";
import { ANYTHING, ANYTHING_ATOMIC, type FieldSchema, listNode, type MapSchema, mapNode, type ObjectSchema, scalarNode, type SchemaNode, stringMap } from "./schema.ts";

const SCALARS: Readonly<Record<Scalar, SchemaNode>> = {
  string: scalarNode("string"), bytes: scalarNode("string"), bool: scalarNode("boolean"),
  int32: scalarNode("numeric"), int64: scalarNode("numeric"), float64: scalarNode("numeric"),
};
const UNTYPED = scalarNode("untyped");
const ANY_OBJECT = mapNode(stringMap(ANYTHING));
/** Anything; in Go a struct without fields of its own, which a strategic merge finds out. */
const RAW_EXTENSION: SchemaNode = { ...ANYTHING_ATOMIC, map: { ...stringMap(ANYTHING_ATOMIC, { atomic: true }), goKind: "struct", name: "RawExtension" } };
const SPECIALS: Readonly<Record<Special, SchemaNode>> = {
  time: UNTYPED, microTime: UNTYPED, quantity: UNTYPED, intOrString: ANYTHING_ATOMIC, duration: scalarNode("string"), rawExtension: RAW_EXTENSION, fieldsV1: ANY_OBJECT,
  json: ANYTHING_ATOMIC, any: ANYTHING_ATOMIC, schemaOrBool: ANYTHING_ATOMIC, schemaOrArray: ANYTHING_ATOMIC, schemaOrStringArray: ANYTHING_ATOMIC,
};
const ZERO: Readonly<Record<Scalar, unknown>> = { string: "", bytes: undefined, bool: false, int32: 0, int64: 0, float64: 0 };

export class FactsSchemas {
  readonly #facts: Facts;
  readonly #objects = new Map<StructType, ObjectSchema>();
  readonly #granular = new Map<StructType, SchemaNode>();
  readonly #atomic = new Map<StructType, SchemaNode>();

  constructor(facts: Facts) { this.#facts = facts; }

  schemaOf(gvk: GroupVersionKind): ObjectSchema | undefined {
    const type = this.#facts.typeOf(gvk);
    return type && this.schemaOfType(type);
  }

  schemaOfType(type: StructType): ObjectSchema {
    const known = this.#objects.get(type);
    if (known) return known;
    const schema: ObjectSchema = { root: this.structNode(type, type.atomic), empty: Object.freeze(canonical(type, {}).object), strategic: true, changeable: false };
    this.#objects.set(type, schema);
    return schema;
  }

  /** metadata of any object, custom ones included. */
  objectMeta(): SchemaNode {
    const type = this.#facts.structNamed("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    if (!type) throw new Error("facts without ObjectMeta");
    return this.structNode(type, false);
  }

  structNode(type: StructType, atomic: boolean): SchemaNode {
    const cache = atomic ? this.#atomic : this.#granular;
    const known = cache.get(type);
    if (known) return known;
    const fields = new Map<string, FieldSchema | undefined>();
    const map: MapSchema = {
      atomic, goKind: "struct", name: type.goName,
      element: type.fields.length === 0 ? ANYTHING : undefined, // OpenAPI cannot tell a struct without fields from any object
      field: (name) => {
        if (fields.has(name)) return fields.get(name);
        const info = type.field(name);
        if (!info) return undefined; // not remembered: clients could fill the cache with names of their own
        const field = this.#fieldSchema(info);
        fields.set(name, field);
        return field;
      },
    };
    const node = mapNode(map);
    cache.set(type, node);
    return node;
  }

  #fieldSchema(info: FieldInfo): FieldSchema {
    const strategy = info.patchStrategy.find((strategy) => strategy !== "retainKeys");
    return {
      node: this.#fieldNode(info), default: info.default ?? zeroOf(info),
      patchStrategy: strategy === "merge" || strategy === "replace" ? strategy : undefined, patchMergeKey: info.patchMergeKey,
    };
  }

  #fieldNode(info: FieldInfo): SchemaNode {
    const { type } = info;
    switch (type.kind) {
      case "list": {
        const merges = info.listType === "map" || info.listType === "set";
        return listNode({ atomic: !merges, keys: info.listType === "map" ? info.listMapKeys.toSorted() : [], items: this.#node(type.items) });
      }
      case "map": return mapNode(stringMap(this.#node(type.values), { atomic: info.mapType === "atomic" }));
      case "struct": return this.structNode(type, info.mapType === undefined ? type.atomic : info.mapType === "atomic");
      default: return this.#node(type);
    }
  }

  #node(type: Type): SchemaNode {
    switch (type.kind) {
      case "scalar": return SCALARS[type.scalar];
      case "special": return SPECIALS[type.special];
      case "list": return listNode({ atomic: true, keys: [], items: this.#node(type.items) });
      case "map": return mapNode(stringMap(this.#node(type.values)));
      case "struct": return this.structNode(type, type.atomic);
    }
  }
}

/** A scalar that Go always writes defaults to its zero value. */
function zeroOf({ type, pointer, omitEmpty, omitZero }: FieldInfo): unknown {
  return type.kind === "scalar" && !pointer && !omitEmpty && !omitZero ? ZERO[type.scalar] : undefined;
}

/** The built-in API, v1.36. */
export const builtInSchemas: FactsSchemas = new FactsSchemas(builtInFacts);
