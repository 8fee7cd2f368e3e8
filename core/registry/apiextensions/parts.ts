/** The parts of a CustomResourceDefinition that are no schema: names, columns, subresources, conversion. Source: kubernetes v1.36 apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go */
import { child, duplicate, type FieldError, forbidden, index, invalid, notSupported, required, tooMany } from "../../api/meta/field-error.ts";
import type {
  CustomResourceColumnDefinition, CustomResourceConversion, CustomResourceDefinitionNames, CustomResourceSubresources, JSONSchemaProps, SelectableField,
} from "../../api/gen/apiextensions.v1.ts";
import { dns1035Label } from "../../api/meta/names.ts";
import type { JsonSchema } from "../../cel/schema/declared-type.ts";
import { caBundleProblem, webhookService, webhookUrl } from "../admissionregistration/webhook-client.ts";
import { fieldPath, FieldPathError } from "./rules/field-path.ts";
import { repeats } from "../../api/meta/linear.ts";

const COLUMN_TYPES = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
const SELECTABLE_FIELDS_MAX = 8;
const REVIEW_VERSIONS = ["v1", "v1beta1"];

export function* validateNames(path: string, names: Partial<CustomResourceDefinitionNames>): Iterable<FieldError> {
  const { kind = "", listKind = "", shortNames, categories } = names;
  for (const name of ["plural", "singular"] as const) if (names[name]) yield* label(child(path, name), names[name]);
  for (const name of ["kind", "listKind"] as const) {
    const problems = dns1035Label((names[name] ?? "").toLowerCase());
    if (names[name] && problems.length > 0) yield invalid(child(path, name), names[name], `may have mixed case, but should otherwise match: ${problems.join(",")}`);
  }
  for (const [i, name] of (shortNames ?? []).entries()) yield* label(index(child(path, "shortNames"), i), name);
  if (kind !== "" && kind === listKind) yield invalid(child(path, "listKind"), listKind, "kind and listKind may not be the same");
  for (const [i, name] of (categories ?? []).entries()) yield* label(index(child(path, "categories"), i), name);
}

function* label(path: string, name: string): Iterable<FieldError> {
  const problems = dns1035Label(name);
  if (problems.length > 0) yield invalid(path, name, problems.join(","));
}

export function* validateColumn(path: string, { name, type, format, jsonPath }: CustomResourceColumnDefinition): Iterable<FieldError> {
  const types = `must be one of ${COLUMN_TYPES.join(",")}`;
  if (!name) yield required(child(path, "name"));
  if (!type) yield required(child(path, "type"), types);
  else if (!COLUMN_TYPES.includes(type)) yield invalid(child(path, "type"), type, types);
  if (format && !COLUMN_FORMATS.includes(format)) yield invalid(child(path, "format"), format, `must be one of ${COLUMN_FORMATS.join(",")}`);
  if (!jsonPath) yield required(child(path, "JSONPath"));
  else yield* simplePath(child(path, "JSONPath"), jsonPath);
}

function* simplePath(path: string, text: string): Iterable<FieldError> {
  if (!text.startsWith(".")) yield invalid(path, text, "must be a simple json path starting with .");
}

export function* validateSubresources(path: string, { scale }: CustomResourceSubresources): Iterable<FieldError> {
  if (!scale) return;
  for (const [name, under] of [["specReplicasPath", ".spec"], ["statusReplicasPath", ".status"]] as const) {
    const at = child(path, `scale.${name}`);
    if (!scale[name]) yield required(at);
    else yield* pathUnder(at, scale[name], [under], `should be a json path under ${under}`);
  }
  if (scale.labelSelectorPath) yield* pathUnder(child(path, "scale.labelSelectorPath"), scale.labelSelectorPath, [".spec", ".status"], "should be a json path under either .spec or .status");
}

function* pathUnder(path: string, text: string, roots: readonly string[], detail: string): Iterable<FieldError> {
  if (!text.startsWith(".")) yield* simplePath(path, text);
  else if (!roots.some((root) => text.startsWith(`${root}.`))) yield invalid(path, text, detail);
}

export function* validateSelectableFields(path: string, fields: readonly SelectableField[], schema: JSONSchemaProps, { anyNumber }: { readonly anyNumber: boolean }): Iterable<FieldError> {
  const seen = new Set<string>();
  for (const [i, { jsonPath }] of fields.entries()) {
    const at = child(index(path, i), "jsonPath");
    if (!jsonPath) { yield required(at); continue; }
    const found = schemaAt(jsonPath, schema);
    if (typeof found === "string") { yield invalid(at, jsonPath, `is an invalid path: ${found}`); continue; }
    if (/^\.metadata(\.|$)/.test(jsonPath)) yield invalid(at, jsonPath, "must not point to fields in metadata");
    if (!["string", "boolean", "integer"].includes(found.type ?? "")) yield invalid(at, jsonPath, "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.");
    if (seen.has(jsonPath)) yield duplicate(at, jsonPath);
    seen.add(jsonPath);
  }
  if (seen.size > SELECTABLE_FIELDS_MAX && !anyNumber) yield tooMany(path, seen.size, SELECTABLE_FIELDS_MAX);
}

/** Whether there are more than there may be. */
export function areTooMany(fields: readonly SelectableField[] | undefined): boolean { return (fields ?? []).length > SELECTABLE_FIELDS_MAX; }

/** What a path like `.spec.color` leads to, or why it leads nowhere. */
function schemaAt(jsonPath: string, root: JSONSchemaProps): JsonSchema | string {
  try {
    return fieldPath(jsonPath, root, { brackets: false }).schema;
  } catch (error) {
    if (error instanceof FieldPathError) return error.message;
    throw error;
  }
}

/** `knownVersion`, `readableCa`: whether that is asked for. */
export function* validateConversion(path: string, { strategy, webhook }: CustomResourceConversion, { knownVersion, readableCa }: { readonly knownVersion: boolean; readonly readableCa: boolean }): Iterable<FieldError> {
  const at = child(path, "webhookClientConfig");
  const versionsAt = child(path, "conversionReviewVersions");
  const strategies = ["None", "Webhook"];
  if (!strategy) yield required(child(path, "strategy"));
  else if (!strategies.includes(strategy)) yield notSupported(child(path, "strategy"), strategy, strategies);
  if (strategy !== "Webhook") {
    if (webhook?.clientConfig) yield forbidden(at, "should not be set when strategy is not set to Webhook");
    if (webhook?.conversionReviewVersions?.length) yield forbidden(versionsAt, "should not be set when strategy is not set to Webhook");
    return;
  }
  const config = webhook?.clientConfig;
  if (!config) yield required(at, "required when strategy is set to Webhook");
  else if ((config.url === undefined) === (config.service === undefined)) yield required(at, "exactly one of url or service is required");
  else if (config.url !== undefined) yield* webhookUrl(child(at, "url"), config.url);
  else yield* webhookService(child(at, "service"), config.service!);
  const caProblem = readableCa ? caBundleProblem(config?.caBundle) : undefined;
  if (caProblem !== undefined) yield invalid(child(at, "caBundle"), config?.caBundle, caProblem);
  yield* reviewVersions(versionsAt, webhook?.conversionReviewVersions ?? [], knownVersion);
}

function* reviewVersions(path: string, versions: readonly string[], requireKnown: boolean): Iterable<FieldError> {
  if (versions.length === 0) { yield required(path); return; }
  const cameBefore = repeats<string>();
  for (const [i, version] of versions.entries()) {
    if (cameBefore(version)) yield invalid(index(path, i), version, "duplicate version");
    else for (const problem of dns1035Label(version)) yield invalid(index(path, i), version, problem);
  }
  if (requireKnown && !hasKnownReviewVersion(versions)) yield invalid(path, versions, `must include at least one of ${REVIEW_VERSIONS.join(", ")}`);
}

export function hasKnownReviewVersion(versions: readonly string[]): boolean { return versions.some((version) => REVIEW_VERSIONS.includes(version)); }
