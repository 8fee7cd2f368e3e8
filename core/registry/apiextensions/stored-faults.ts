/**
 * What a stored definition may go on having wrong: rules that came after it was written are not held against those who change something else.
 *
 *   const excused = excuseOf(old.spec);
 *   excused("types")                           whether a schema of the old definition has an unknown type already
 *
 * The old definition is looked at only for what was found in the new one.
 *
 * Source: kubernetes v1.36 apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go ValidateCustomResourceDefinitionUpdate
 */
import type { CustomResourceDefinitionSpec, JSONSchemaProps } from "../../api/gen/apiextensions.v1.ts";
import { inForm } from "./custom/embedded.ts";
import { pruned } from "./custom/prune.ts";
import { type Structure, structureOf } from "./custom/structure.ts";
import { type Excuse, type Fault, inconvertible, isKnownType, keyedItems, schemasIn, setItems } from "./schema.ts";
import { structuralErrors } from "./structural.ts";

type Schema = Readonly<JSONSchemaProps>;

const HAS: Readonly<Record<Fault, (schema: Schema) => boolean>> = {
  types: (schema) => some(schema, ({ type }) => !isKnownType(type)),
  structure: isUnstructured,
  defaults: (schema) => !isUnstructured(schema) && hasUnknownInDefaults(structureOf(schema)),
  sets: (schema) => some(schema, (part) => !Iterator.from(setItems("", part)).next().done),
  keys: (schema) => some(schema, (part) => !Iterator.from(keyedItems("", part)).next().done),
};

export function excuseOf(old: Readonly<CustomResourceDefinitionSpec> | undefined): Excuse {
  const schemas = (old?.versions ?? []).flatMap(({ schema }) => schema?.openAPIV3Schema ?? []);
  const known = new Map<Fault, boolean>();
  return (fault) => {
    let found = known.get(fault);
    if (found === undefined) known.set(fault, (found = schemas.some(HAS[fault])));
    return found;
  };
}

function some(schema: Schema, is: (part: Schema) => boolean): boolean { return Iterator.from(schemasIn(schema)).some(is); }

function isUnstructured(schema: Schema): boolean { return inconvertible(schema) !== undefined || structuralErrors("", schema).length > 0; }

function hasUnknownInDefaults(structure: Structure): boolean {
  const { byDefault, items, additional, properties } = structure;
  if (byDefault !== undefined && (pruned(byDefault, structure) !== byDefault || !isInForm(byDefault, structure))) return true;
  return [items, additional, ...properties.values()].some((below) => below?.has.defaults && hasUnknownInDefaults(below));
}

function isInForm(value: unknown, structure: Structure): boolean {
  const read = inForm(value, structure, "");
  return read.error === undefined && read.value === value;
}
