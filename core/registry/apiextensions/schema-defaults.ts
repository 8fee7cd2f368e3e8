/**
 * Defaults of a schema must be values of it.
 *
 * What stands in metadata is looked at as a value, not as a part of metadata.
 *
 * Source: kubernetes v1.36 apiextensions-apiserver/pkg/apiserver/schema/defaulting/validation.go
 */
import type { JSONSchemaProps } from "../../api/gen/apiextensions.v1.ts";
import { child, type FieldError, invalid, key } from "../../api/meta/field-error.ts";
import { RUNTIME_COST_BUDGET } from "../../cel/kubernetes.ts";
import { validateResources } from "./custom/embedded.ts";
import { isMap, pruned } from "./custom/prune.ts";
import { type Structure, structureOf } from "./custom/structure.ts";
import { validateValue } from "./custom/validate-value.ts";
import { ruleTree } from "./rules/rule-tree.ts";

const META = new Set(["metadata", "apiVersion", "kind"]);

interface Round { budget: number }

export function defaultErrors(path: string, schema: Readonly<JSONSchemaProps>): FieldError[] {
  const structure = structureOf(schema);
  return structure.has.defaults ? [...below(path, structure, { insideMeta: false, isRoot: true }, { budget: RUNTIME_COST_BUDGET })] : [];
}

interface Place { readonly insideMeta: boolean; readonly isRoot: boolean }

function* below(path: string, structure: Structure, { insideMeta: inherited, isRoot }: Place, round: Round): Iterable<FieldError> {
  const insideMeta = inherited && !structure.embedded;
  if (structure.byDefault !== undefined) yield* ofDefault(child(path, "default"), structure, { insideMeta, isRoot: isRoot || structure.embedded }, round);
  if (round.budget < 0) return;
  if (structure.items) yield* below(child(path, "items"), structure.items, { insideMeta, isRoot: false }, round);
  for (const [name, property] of structure.properties) {
    if (round.budget < 0) return;
    yield* below(key(child(path, "properties"), name), property, { insideMeta: insideMeta || (structure.embedded && META.has(name)), isRoot: false }, round);
  }
}

function* ofDefault(path: string, structure: Structure, { insideMeta, isRoot }: Place, round: Round): Iterable<FieldError> {
  const { byDefault: value } = structure;
  if (!insideMeta && pruned(value, structure) !== value) yield invalid(path, inOrder(value), "must not have unknown fields");
  const errors = insideMeta ? [] : [...validateResources(value, structure, path)];
  if (errors.length === 0) errors.push(...validateValue(value, structureOf(withoutIntOrString(structure.schema)), { field: path }));
  yield* errors;
  const rules = errors.length === 0 ? ruleTree(structure, { root: isRoot }) : undefined;
  if (!rules) return;
  const asUpdate = rules.check(value, { old: value, path, budget: round.budget });
  const asCreate = asUpdate.errors.length === 0 ? rules.check(value, { old: undefined, path, budget: round.budget }) : asUpdate;
  yield* asCreate.errors;
  round.budget = Math.min(asUpdate.budget, asCreate.budget);
}

/** Whether a default is a number or a text is not looked at, unless the schema says so with anyOf. */
function withoutIntOrString({ "x-kubernetes-int-or-string": _, ...schema }: Readonly<JSONSchemaProps>): JSONSchemaProps {
  const { properties, items, additionalProperties } = schema;
  return {
    ...schema,
    ...(properties && { properties: Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, withoutIntOrString(property)])) }),
    ...(isMap(items) && { items: withoutIntOrString(items) }),
    ...(isMap(additionalProperties) && { additionalProperties: withoutIntOrString(additionalProperties) }),
  };
}

/** Members by name, as Go prints maps. */
function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (!isMap(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, below]) => [name, inOrder(below)]));
}
