/**
 * CustomResourceDefinition (apiextensions.k8s.io/v1): a resource of the user's own.
 *
 *   create   the storage version is recorded as one that objects may be stored in
 *   update   the storage version is added to that record; group and plural stay; once established, kind and scope stay too
 *   status   accepted names and conditions: a controller's
 *   delete   held until its objects are deleted too
 *
 * Messages speak of `spec.validation`, `spec.subresources` and so on when all versions have the same: that is how upstream sees them inside.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/extend-resources/custom-resource-definition-v1/
 * Source: kubernetes v1.36 apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go, pkg/apis/apiextensions/{v1/defaults,v1/conversion,validation/validation}.go
 */
import { child, type FieldError, index, invalid, required } from "../../api/meta/field-error.ts";
import { repeats } from "../../api/meta/linear.ts";
import type { CustomResourceDefinition, CustomResourceDefinitionSpec, CustomResourceDefinitionVersion, JSONSchemaProps } from "../../api/gen/apiextensions.v1.ts";
import { goQuote } from "../../api/meta/go-quote.ts";
import { dns1035Label, dns1123Subdomain } from "../../api/meta/names.ts";
import { caBundleProblem } from "../admissionregistration/webhook-client.ts";
import { immutable, oneOf } from "../core/checks/values.ts";
import { statusPart } from "../core/status-part.ts";
import { defineResource } from "../generic/resource.ts";
import { validateApproval } from "./approval.ts";
import { isTrue, statusOf, withCondition } from "./crd-status.ts";
import { areTooMany, hasKnownReviewVersion, validateColumn, validateConversion, validateNames, validateSelectableFields, validateSubresources } from "./parts.ts";
import { isKnownFormat } from "./custom/formats.ts";
import { type Excuse, inconvertible, schemasIn, validateSchema } from "./schema.ts";
import { shownVersions } from "./shown.ts";
import { excuseOf } from "./stored-faults.ts";

/** Holds a definition until its objects are gone. */
export const CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io";
const WEBHOOK_PORT = 443;
const WARNING_CHARACTERS_MAX = 256;

export const customResourceDefinitions = defineResource<CustomResourceDefinition>({
  group: "apiextensions.k8s.io", version: "v1", kind: "CustomResourceDefinition", plural: "customresourcedefinitions",
  unconditionalUpdate: false,
  anyFinalizer: true, finalizersOnDelete: [CLEANUP_FINALIZER],
  markDeleting(definition, nowMs) {
    definition.status = withCondition(statusOf(definition), {
      type: "Terminating", status: "True", reason: "InstanceDeletionPending",
      message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    }, nowMs);
  },

  defaults(definition) {
    defaultStoredVersions(definition);
    const { spec } = definition;
    const { names } = spec;
    if (names?.kind) {
      names.singular ||= names.kind.toLowerCase();
      names.listKind ||= `${names.kind}List`;
    }
    const conversion = (spec.conversion ??= { strategy: "None" });
    const service = conversion.webhook?.clientConfig?.service;
    if (service) service.port ??= WEBHOOK_PORT;
  },

  statusDefaults: defaultStoredVersions,

  prepareForCreate(definition) {
    definition.status = { conditions: null as never, acceptedNames: { plural: "", kind: "" }, storedVersions: null as never }; // null is how the first answer has it
    recordStorageVersion(definition);
  },
  prepareForUpdate: recordStorageVersion,

  *validate(definition, old) {
    const { metadata, spec, status } = definition;
    for (const field of ["generateName", "name"] as const)
      if (!old && metadata[field] && metadata[field] !== `${spec.names.plural}.${spec.group}`) yield invalid(`metadata.${field}`, metadata[field], `must be spec.names.plural+"."+spec.group`);
    yield* validateSpec("spec", spec, old);
    if (old) yield* validateChange(spec, old);
    if (status) yield* validateNames("status.acceptedNames", status.acceptedNames ?? {});
    yield* validateStored("status.storedVersions", status?.storedVersions, spec.versions ?? []);
    yield* validateApproval(definition, old);
    if (spec.preserveUnknownFields && !old?.spec.preserveUnknownFields)
      yield invalid("spec.preserveUnknownFields", true, "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead");
  },
  warnings({ spec }, old) {
    const known = new Set(old ? unknownFormats(old.spec) : []);
    return unknownFormats(spec).filter((format) => !known.has(format)).map((format) => `unrecognized format ${goQuote(format)}`);
  },

  subresources: {
    status: statusPart<CustomResourceDefinition>({ validate: ({ status }) => validateNames("status.acceptedNames", status?.acceptedNames ?? {}) }),
  },
});

function* validateChange(spec: Readonly<CustomResourceDefinitionSpec>, { spec: before, status }: Readonly<CustomResourceDefinition>): Iterable<FieldError> {
  if (isTrue(status, "Established")) {
    yield* immutable("spec.scope", spec.scope, before.scope);
    yield* immutable("spec.names.kind", spec.names.kind, before.names.kind);
  }
  yield* immutable("spec.group", spec.group, before.group);
  yield* immutable("spec.names.plural", spec.names.plural, before.names.plural);
}

/** Formats that nobody checks, each as often as it is written; what all versions share is written once. */
function unknownFormats(spec: Readonly<CustomResourceDefinitionSpec>): readonly string[] {
  return schemasOf(spec).flatMap(({ type, format }) => (format && !isKnownFormat(type ?? "", format) ? [format] : []));
}

/** All versions', with all within them; once, if they share it. */
function schemasOf({ versions: given }: Readonly<CustomResourceDefinitionSpec>): JSONSchemaProps[] {
  const versions = given ?? [];
  return (isShared(versions, "schema") ? versions.slice(0, 1) : versions).flatMap(({ schema }) => (schema?.openAPIV3Schema ? [...schemasIn(schema.openAPIV3Schema)] : []));
}

/** Who says that objects are stored in no version means the storage version. */
function defaultStoredVersions({ spec, status }: CustomResourceDefinition): void {
  const storage = (spec.versions ?? []).find((version) => version.storage);
  if (status && storage && !status.storedVersions?.length) status.storedVersions = [storage.name];
}

function recordStorageVersion(definition: CustomResourceDefinition): void {
  const storage = (definition.spec.versions ?? []).find((version) => version.storage);
  const status = definition.status ?? { conditions: [], acceptedNames: { plural: "", kind: "" }, storedVersions: [] };
  const stored = status.storedVersions ?? [];
  definition.status = storage && !stored.includes(storage.name) ? { ...status, storedVersions: [...stored, storage.name] } : status;
}

/** Whether all versions have the same, so that messages name it once, at the top. */
function isShared(versions: readonly CustomResourceDefinitionVersion[], part: keyof CustomResourceDefinitionVersion): boolean {
  return versions.every((version) => Bun.deepEquals(version[part], versions[0]![part]));
}

function* validateSpec(path: string, spec: Readonly<CustomResourceDefinitionSpec>, before: Readonly<CustomResourceDefinition> | undefined): Iterable<FieldError> {
  const old = before?.spec;
  const versions = spec.versions ?? [];
  yield* validateGroup(child(path, "group"), spec.group);
  yield* oneOf(child(path, "scope"), spec.scope, ["Cluster", "Namespaced"]);
  const hadSchemas = old === undefined || (old.versions ?? []).every(({ schema }) => schema?.openAPIV3Schema);
  for (const [i, { schema, served }] of versions.entries()) {
    const at = child(index(child(path, "versions"), i), "schema", "openAPIV3Schema");
    if (schema?.openAPIV3Schema) continue;
    if (hadSchemas) yield required(at);
    else if (served && !spec.preserveUnknownFields) yield required(at, "because otherwise all fields are pruned");
  }
  if (spec.preserveUnknownFields && schemasOf(spec).some((schema) => schema.default !== undefined)) yield invalid(child(path, "preserveUnknownFields"), true, "must be false in order to use defaults in the schema");
  const leave = leaveOf(spec, old);
  yield* validateVersions(path, spec.versions, leave);
  for (const name of ["plural", "singular", "kind", "listKind"] as const) if (!spec.names[name]) yield required(child(path, "names", name));
  yield* validateNames(child(path, "names"), spec.names);
  const first = versions[0];
  if (first) yield* validateShared(path, versions, first, leave);
  const { conversion } = spec;
  if (!conversion) return;
  const at = child(path, "conversion");
  if (conversion.strategy !== "None" && spec.preserveUnknownFields) yield invalid(child(at, "strategy"), conversion.strategy, "must be None if spec.preserveUnknownFields is true");
  const { conversionReviewVersions: reviewed, clientConfig } = old?.conversion?.webhook ?? {};
  yield* validateConversion(at, conversion, {
    knownVersion: !reviewed?.length || hasKnownReviewVersion(reviewed),
    readableCa: isTrue(before?.status, "Established") && caBundleProblem(clientConfig?.caBundle) === undefined,
  });
}

function* validateGroup(path: string, group: string): Iterable<FieldError> {
  const problems = dns1123Subdomain(group ?? "");
  if (!group) yield required(path);
  else if (problems.length > 0) yield invalid(path, group, problems.join(","));
  else if (!group.includes(".")) yield invalid(path, group, "should be a domain with at least one dot");
}

/** What an update may leave as it is. */
interface Leave {
  readonly old: readonly CustomResourceDefinitionVersion[];
  readonly excused: Excuse;
  /** Schemas need not be structural: none was, and nothing in them asks for it. */
  readonly isFree: boolean;
}

function leaveOf(spec: Readonly<CustomResourceDefinitionSpec>, old: Readonly<CustomResourceDefinitionSpec> | undefined): Leave {
  const excused = excuseOf(old);
  return { old: old?.versions ?? [], excused, isFree: spec.preserveUnknownFields === true && excused("structure") && !schemasOf(spec).some(needsStructure) };
}

function needsStructure(schema: Readonly<JSONSchemaProps>): boolean {
  return schema.default !== undefined || schema["x-kubernetes-preserve-unknown-fields"] !== undefined || schema["x-kubernetes-list-type"] !== undefined
    || schema["x-kubernetes-embedded-resource"] === true || schema["x-kubernetes-int-or-string"] === true
    || [schema["x-kubernetes-list-map-keys"], schema["x-kubernetes-validations"]].some((list) => (list ?? []).length > 0);
}

function* validateVersions(path: string, given: readonly CustomResourceDefinitionVersion[] | undefined, leave: Leave): Iterable<FieldError> {
  const versions = given ?? [];
  const known = new Map<keyof CustomResourceDefinitionVersion, boolean>();
  const own = (part: keyof CustomResourceDefinitionVersion): boolean => {
    const is = known.get(part) ?? !isShared(versions, part);
    known.set(part, is);
    return is;
  };
  const olds = new Map(leave.old.toReversed().map((version) => [version.name, version])), hadOwnFields = !isShared(leave.old, "selectableFields");
  const [schemas, subresources, columns, selectable] = [own("schema"), own("subresources"), own("additionalPrinterColumns"), own("selectableFields")];
  for (const [i, version] of versions.entries()) {
    const at = index(child(path, "versions"), i);
    const problems = dns1035Label(version.name);
    if (problems.length > 0) yield invalid(child(at, "name"), version.name, problems.join(","));
    yield* validateDeprecation(child(at, "deprecationWarning"), version);
    if (schemas) yield* validateSchema(child(at, "schema"), version.schema?.openAPIV3Schema, { ...leave, hasStatus: version.subresources?.status !== undefined, isUnchanged: hasSameSchema(version, leave) });
    if (subresources && version.subresources) yield* validateSubresources(child(at, "subresources"), version.subresources);
    if (columns) for (const [j, column] of (version.additionalPrinterColumns ?? []).entries()) yield* validateColumn(index(child(at, "additionalPrinterColumns"), j), column);
    if (selectable && version.selectableFields?.length) {
      if (schemas && version.schema?.openAPIV3Schema) yield* validateSelectable(at, version, keepsFields(olds.get(version.name), version, hadOwnFields));
      else yield invalid(child(at, "selectableFields"), "", "may only be set when `version.schema.openAPIV3Schema` is not included");
    }
  }
  const at = child(path, "versions");
  const shown = (): unknown => given ? shownVersions(given, (part) => !own(part)) : null;
  if (new Set(versions.map(({ name }) => name)).size !== versions.length) yield invalid(at, shown(), "must contain unique version names");
  if (versions.filter(({ storage }) => storage).length !== 1) yield invalid(at, shown(), "must have exactly one version marked as storage version");
  const first = versions[0]?.name; // is, inside, spec.version too
  if (first && dns1035Label(first).length > 0) yield invalid(child(path, "version"), first, dns1035Label(first).join(","));
}

function* validateShared(path: string, versions: readonly CustomResourceDefinitionVersion[], first: CustomResourceDefinitionVersion, leave: Leave): Iterable<FieldError> {
  const hasStatus = versions.some(({ subresources }) => subresources?.status !== undefined);
  if (isShared(versions, "schema")) yield* validateSchema(child(path, "validation"), first.schema?.openAPIV3Schema, { ...leave, hasStatus, isUnchanged: hasSameSchema(first, leave) });
  if (isShared(versions, "subresources") && first.subresources) yield* validateSubresources(child(path, "subresources"), first.subresources);
  if (isShared(versions, "additionalPrinterColumns"))
    for (const [i, column] of (first.additionalPrinterColumns ?? []).entries()) yield* validateColumn(index(child(path, "additionalPrinterColumns"), i), column);
  if (isShared(versions, "selectableFields") && first.selectableFields?.length) {
    if (isShared(versions, "schema") && first.schema) yield* validateSelectable(path, first, keepsFields(leave.old[0], first, isShared(leave.old, "selectableFields")));
    else yield invalid(child(path, "selectableFields"), "", "may only be set when validations.schema is included");
  }
}

/** What all old versions share is that of a new version, too. */
function hasSameSchema({ name, schema }: CustomResourceDefinitionVersion, { old }: Leave): boolean {
  const before = isShared(old, "schema") ? old[0] : old.find((version) => version.name === name);
  return before !== undefined && Bun.deepEquals(before.schema, schema);
}

/** More fields to select by than there may be stay where they were, and all versions shared them or none did. */
function keepsFields(before: CustomResourceDefinitionVersion | undefined, { selectableFields }: CustomResourceDefinitionVersion, sameForm: boolean): boolean {
  return sameForm && areTooMany(before?.selectableFields) && Bun.deepEquals(before?.selectableFields, selectableFields);
}

/** Fields that the version's schema does not lead to. Of a schema that cannot be looked at, that is told here, too. */
function* validateSelectable(path: string, { selectableFields = [], schema: { openAPIV3Schema: schema } = {} }: CustomResourceDefinitionVersion, anyNumber: boolean): Iterable<FieldError> {
  const unreadable = schema && inconvertible(schema);
  if (unreadable !== undefined) yield invalid(child(path, "schema", "openAPIV3Schema"), "", unreadable);
  yield* validateSelectableFields(child(path, "selectableFields"), selectableFields, unreadable === undefined ? schema ?? {} : {}, { anyNumber });
}

function* validateDeprecation(path: string, { deprecated, deprecationWarning: text }: CustomResourceDefinitionVersion): Iterable<FieldError> {
  if (text === undefined) return;
  if (!deprecated) { yield invalid(path, text, "can only be set for deprecated versions"); return; }
  if (Buffer.byteLength(text) > WARNING_CHARACTERS_MAX) yield invalid(path, text, `must be <= ${WARNING_CHARACTERS_MAX} characters long`);
  if (text === "") yield invalid(path, text, "must not be an empty string");
  const at = [...text].findIndex((char) => goQuote(char).length !== char.length + 2 && char !== '"' && char !== "\\");
  if (at >= 0) yield invalid(path, text, `must only contain printable UTF-8 characters; non-printable character found at index ${Buffer.byteLength([...text].slice(0, at).join(""))}`);
}

function* validateStored(path: string, stored: readonly string[] | undefined, versions: readonly CustomResourceDefinitionVersion[]): Iterable<FieldError> {
  if (!stored?.length) { yield invalid(path, stored ?? null, "must have at least one stored version"); return; }
  const known = new Set(stored), cameBefore = repeats<string>(), last = new Map(stored.map((name, i) => [name, i]));
  for (const { name, storage } of versions) {
    const isRepeated = cameBefore(name); // a name that is there twice is found once
    if (storage && (!known.has(name) || isRepeated)) yield invalid(path, stored, `must have the storage version ${name}`);
  }
  const names = new Set(versions.map(({ name }) => name));
  for (const [i, name] of stored.entries())
    if (last.get(name) === i && !names.has(name))
      yield invalid(
        index(path, i), name,
        `missing from spec.versions; ${name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${name} and removes ${name} from status.storedVersions`,
      );
}
