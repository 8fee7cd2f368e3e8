/**
 * A custom resource in one version, as the registry serves it: what its CustomResourceDefinition says, made into a definition like those of built-in kinds.
 *
 *   create   status is dropped if it is a subresource
 *   update   status stays if it is a subresource; what has not changed is not held against stricter rules
 *   status   only status is written, and only it is checked
 *   scale    replicas and selector, from where the definition says they are
 *
 * Source: kubernetes v1.36 apiextensions-apiserver/pkg/registry/customresource/{strategy,status_strategy,validator}.go
 */
import type { CustomResourceDefinitionSpec, CustomResourceDefinitionVersion } from "../../../api/gen/apiextensions.v1.ts";
import { type FieldError, invalid } from "../../../api/meta/field-error.ts";
import { goQuote } from "../../../api/meta/go-quote.ts";
import { formatApiVersion } from "../../../api/meta/gvk.ts";
import { qualifiedName } from "../../../api/meta/names.ts";
import type { ApiObject } from "../../../api/meta/object-meta.ts";
import type { JsonMap } from "../../../api/patch/json-value.ts";
import { once } from "../../../lifecycle/once.ts";
import { validateMeta } from "../../generic/object-meta.ts";
import type { Resource, Subresource } from "../../generic/resource.ts";
import { STATUS_PART } from "../../generic/status-part.ts";
import type { RuleMeter } from "../rules/rule-meter.ts";
import { ruleTree } from "../rules/rule-tree.ts";
import { Correlated } from "./correlate.ts";
import { validateEmbedded } from "./embedded.ts";
import { compileJsonPath, type JsonPath } from "./json-path.ts";
import { validateLists } from "./list-types.ts";
import { customScale, validateScaleSpec, validateScaleStatus } from "./scale.ts";
import type { Structure } from "./structure.ts";
import { validateValue } from "./validate-value.ts";

export interface CustomResourceOptions {
  readonly spec: Pick<CustomResourceDefinitionSpec, "group">;
  readonly names: { readonly plural: string; readonly kind: string };
  readonly version: CustomResourceDefinitionVersion;
  /** Asked for when the first object is checked. */
  readonly structure: () => Structure;
  readonly ruleMeter?: RuleMeter | undefined;
}

type Part = Extract<Subresource, { type: "part" }>;

/** Errors after which rules would be asked about values that are not what they seem. */
const BLOCKING: ReadonlySet<FieldError["type"]> = new Set<FieldError["type"]>(["FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"]);
const STANDARD_FINALIZERS = ["orphan", "foregroundDeletion", "kubernetes"];

function isBlocking({ type }: FieldError): boolean { return BLOCKING.has(type); }

export function customResource({ spec: { group }, names: { plural, kind }, version, structure: structureOf, ruleMeter }: CustomResourceOptions): Resource {
  const apiVersion = formatApiVersion({ group, version: version.name });
  const { status: hasStatus, scale } = version.subresources ?? {};
  const rulesOf = once(() => ruleTree(structureOf(), ruleMeter && { meter: ruleMeter }));
  /** Of rules that what has not changed does not keep. */
  const excused = new WeakMap<object, string[]>();
  const selectable = (version.selectableFields ?? []).map(({ jsonPath }) => ({ name: jsonPath.replace(/^\./, ""), path: compileJsonPath(jsonPath) }));

  function* validateType(object: Readonly<ApiObject>): Iterable<FieldError> {
    if (object.kind !== kind) yield invalid("kind", object.kind, `must be ${kind}`);
    if (object.apiVersion !== apiVersion) yield invalid("apiVersion", object.apiVersion, `must be ${apiVersion}`);
  }

  function validate(next: Readonly<ApiObject>, old: Readonly<ApiObject> | undefined): FieldError[] {
    const wrongType = [...validateType(next)];
    if (wrongType.length > 0) return wrongType;
    const [object, structure] = [next as unknown as JsonMap, structureOf()];
    const comparisons = old && ruleMeter?.comparisons();
    const correlated = old && new Correlated(object, old, structure, comparisons?.timed);
    const errors = [
      ...validateValue(object, structure, { correlated }),
      ...(scale ? [...validateScaleSpec(object, scale), ...validateScaleStatus(object, scale)] : []),
      ...validateEmbedded(object, structure),
      ...lists(object, old),
    ];
    errors.push(...checkRules(object, correlated, errors));
    comparisons?.done();
    return errors;
  }

  function* validateStatus(next: Readonly<ApiObject>, old: Readonly<ApiObject>): Iterable<FieldError> {
    const wrongType = [...validateType(next)];
    const [object, structure] = [next as unknown as JsonMap, structureOf()];
    const comparisons = ruleMeter?.comparisons();
    const correlated = new Correlated(object, old, structure, comparisons?.timed);
    const status = structure.properties.get("status");
    const errors = wrongType.length > 0 ? wrongType : [
      ...(status && (object["status"] ?? undefined) !== undefined ? validateValue(object["status"], status, { field: "status", correlated: correlated.field("status") }) : []),
      ...(scale ? validateScaleStatus(object, scale) : []),
    ];
    errors.push(...lists(object, old));
    errors.push(...checkRules(object, correlated, errors));
    comparisons?.done();
    yield* errors;
  }

  /** Lists that had duplicates may keep them. */
  function lists(object: JsonMap, old: Readonly<ApiObject> | undefined): FieldError[] {
    const structure = structureOf();
    const errors = [...validateLists(object, structure, "")];
    return errors.length > 0 && old && [...validateLists(old, structure, "")].length > 0 ? [] : errors;
  }

  function checkRules(object: JsonMap, correlated: Correlated | undefined, errors: readonly FieldError[]): Iterable<FieldError> {
    const rules = rulesOf();
    if (!rules) return [];
    if (errors.some(isBlocking) || Iterator.from(validateMeta(object as unknown as ApiObject, false, () => [], { anyFinalizer: true })).some(isBlocking))
      return [invalid("<nil>", null, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation")];
    const warnings: string[] = [];
    excused.set(object, warnings);
    return rules.check(object, { old: correlated?.old, correlated, warn: (warning) => warnings.push(warning) }).errors;
  }

  const statusPart: Part = { ...STATUS_PART, validate: validateStatus, warnings: (next) => excused.get(next) ?? [] };
  return {
    group, version: version.name, kind, plural,
    unconditionalUpdate: false,
    anyFinalizer: true,
    validate,
    *warnings(next, old) {
      yield* excused.get(next) ?? [];
      yield* finalizerWarnings(next, old);
    },
    generation: hasStatus ? changesAnythingElse : changesAnything,
    ...(selectable.length > 0 ? { fields: (object: Readonly<ApiObject>) => Object.fromEntries(selectable.map(({ name, path }) => [name, fieldText(path, object)])) } : {}),
    subresources: { ...(hasStatus ? { status: statusPart } : {}), ...(scale ? { scale: customScale(scale) } : {}) },
  };
}

/** Where it has a status, that is not what is wanted. A null or an empty list, where nothing was, is something. */
function changesAnythingElse(next: Readonly<ApiObject>, old: Readonly<ApiObject>): boolean { return changesAnything({ ...next, status: undefined } as ApiObject, { ...old, status: undefined } as ApiObject); }

/** Without a status of its own, everything but metadata is what is wanted. */
function changesAnything(next: Readonly<ApiObject>, old: Readonly<ApiObject>): boolean {
  const { metadata: _, ...wanted } = next;
  const { metadata: __, ...before } = old;
  return !Bun.deepEquals(wanted, before);
}

function* finalizerWarnings(next: Readonly<ApiObject>, old: Readonly<ApiObject> | undefined): Iterable<string> {
  const before = new Set(old?.metadata.finalizers ?? []);
  for (const finalizer of [...new Set(next.metadata.finalizers ?? [])].sort()) {
    if (before.has(finalizer)) continue;
    const subject = `metadata.finalizers: ${goQuote(finalizer)}`;
    for (const problem of qualifiedName(finalizer)) yield `${subject}: ${problem}`;
    if (finalizer.includes("/") || STANDARD_FINALIZERS.includes(finalizer)) continue;
    const form = finalizer.includes(".") ? "a domain-qualified finalizer name including a path (/)" : "a domain-qualified finalizer name";
    yield `${subject}: prefer ${form} to avoid accidental conflicts with other finalizer writers`;
  }
}

function fieldText(path: JsonPath, object: unknown): string {
  const [value] = path.find(object);
  return value === undefined || value === null || typeof value === "object" ? "" : String(value);
}

