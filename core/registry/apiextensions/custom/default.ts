/**
 * The defaults of a custom resource's schema. Nothing is changed in place; an object that needs none is returned as it is.
 *
 * Source: kubernetes v1.36 apiextensions-apiserver/pkg/apiserver/schema/defaulting/algorithm.go
 */
import { isMap } from "../../../api/patch/json-value.ts";
import { mapEntries, mapItems } from "./prune.ts";
import type { Structure } from "./structure.ts";

export function defaulted<T>(value: T, structure: Structure | undefined): T { return fill(value, structure) as T; }

function fill(value: unknown, structure: Structure | undefined): unknown {
  if (!structure?.has.defaults) return value;
  if (Array.isArray(value)) return mapItems(value, (item) => fill(orDefault(item, structure.items), structure.items));
  if (!isMap(value)) return value;
  const missing = structure.defaulted.filter(([name]) => !Object.hasOwn(value, name));
  const whole = missing.length === 0 ? value : { ...value, ...Object.fromEntries(missing.map(([name, { byDefault }]) => [name, structuredClone(byDefault)])) };
  return mapEntries(whole, (name, field) => {
    const below = structure.at(name);
    return fill(orDefault(field, below), below);
  });
}

/** A null that is not allowed stands for the default. */
function orDefault(value: unknown, structure: Structure | undefined): unknown {
  return value === null && structure && !structure.nullable && structure.byDefault !== undefined ? structuredClone(structure.byDefault) : value;
}
