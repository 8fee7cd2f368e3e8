/**
 * Defaults of a schema must be values of it. One of metadata, or of a part of it, must be what a resource that has nothing else may have there.
 *
 * Source: kubernetes v1.36 apiextensions-apiserver/pkg/apiserver/schema/defaulting/validation.go
 */
import { inKeyOrder } from "../../api/codec/json-document.ts";
import type { JSONSchemaProps } from "../../api/gen/apiextensions.v1.ts";
import { child, type FieldError, formatFieldErrors, invalid, key } from "../../api/meta/field-error.ts";
import { isMap, type JsonMap } from "../../api/patch/json-value.ts";
import { RUNTIME_COST_BUDGET } from "../../cel/kubernetes.ts";
import { inForm, validateResources } from "./custom/embedded.ts";
import { pruned } from "./custom/prune.ts";
import { type Structure, structureOf } from "./custom/structure.ts";
import { validateValue } from "./custom/validate-value.ts";
import { ruleTree } from "./rules/rule-tree.ts";

const META = new Set(["metadata", "apiVersion", "kind"]);

interface Round {
  budget: number;
  /** Whether defaults may have fields that the schema does not know. Asked for when there are some. */
  readonly unknownFields: () => boolean;
}

export function defaultErrors(path: string, schema: Readonly<JSONSchemaProps>, { unknownFields }: Pick<Round, "unknownFields">): FieldError[] {
  const structure = structureOf(schema);
  return structure.has.defaults ? [...below(path, structure, rootOf(structure), { budget: RUNTIME_COST_BUDGET, unknownFields })] : [];
}

interface Place {
  readonly insideMeta: boolean;
  readonly isRoot: boolean;
  /** The resource it is in. */
  readonly root: Structure;
  /** That resource with nothing but `value` at the place. */
  around(value: unknown): JsonMap;
}

function rootOf(root: Structure): Place { return { insideMeta: false, isRoot: true, root, around: (value) => ({ apiVersion: "validation/v1", kind: "Validation", ...(value as JsonMap) }) }; }

function* below(path: string, structure: Structure, inherited: Place, round: Round): Iterable<FieldError> {
  const place = structure.embedded ? rootOf(structure) : inherited;
  const { root, around } = place;
  if (structure.byDefault !== undefined) yield* ofDefault(child(path, "default"), structure, place, round);
  if (round.budget < 0) return;
  if (structure.items) yield* below(child(path, "items"), structure.items, { insideMeta: place.insideMeta, isRoot: false, root, around: (value) => around([value]) }, round);
  for (const [name, property] of structure.properties) {
    if (round.budget < 0) return;
    const insideMeta = place.insideMeta || (structure.embedded && META.has(name));
    yield* below(key(child(path, "properties"), name), property, { insideMeta, isRoot: false, root, around: (value) => around({ [name]: value }) }, round);
  }
}

function* ofDefault(path: string, structure: Structure, place: Place, round: Round): Iterable<FieldError> {
  const { byDefault } = structure, { insideMeta, isRoot } = place;
  const { value, error } = insideMeta ? { value: byDefault } : inForm(byDefault, structure, path);
  if (!insideMeta && pruned(byDefault, structure) !== byDefault && !round.unknownFields()) yield invalid(path, inKeyOrder(value), "must not have unknown fields"); // told as it has become meanwhile
  const errors = insideMeta ? metaErrors(path, value, place) : error ? [error] : [...validateResources(value, structure, path)];
  if (errors.length === 0) errors.push(...validateValue(value, structureOf(withoutIntOrString(structure.schema)), { field: path }));
  yield* errors;
  const rules = errors.length === 0 ? ruleTree(structure, { root: isRoot }) : undefined;
  if (!rules) return;
  const asUpdate = rules.check(value, { old: value, path, budget: round.budget });
  const asCreate = asUpdate.errors.length === 0 ? rules.check(value, { old: undefined, path, budget: round.budget }) : asUpdate;
  yield* asCreate.errors;
  round.budget = Math.min(asUpdate.budget, asCreate.budget);
}

function metaErrors(path: string, value: unknown, { root, around }: Place): FieldError[] {
  const { value: resource, error } = inForm(around(value), root, "");
  const errors = error ? [error] : [...validateResources(resource, root, "")];
  return errors.length === 0 ? [] : [invalid(path, inKeyOrder(value), `must result in valid metadata: ${formatFieldErrors(errors)}`)];
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
