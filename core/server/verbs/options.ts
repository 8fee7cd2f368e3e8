/** The options of list, watch and delete, from the query. Wrong ones are refused as upstream does. */
import { parseFieldSelector } from "../../api/meta/field-selector.ts";
import { parseLabelSelector } from "../../api/meta/label-selector.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { badRequest } from "../../api/meta/status-error.ts";
import { canonical } from "../../api/schema/canonical.ts";
import { builtInFacts } from "../../api/schema/facts.ts";
import { type Selection, selectableFields } from "../../registry/generic/selection.ts";
import type { ServedResource } from "../../registry/registry.ts";
import type { Scope } from "../handler.ts";
import { isTrue } from "../request-info.ts";

/** Which objects the request is about. Throws 400 for a selector that cannot be read or names an unknown field. */
export function selectionOf({ request, served, info }: Scope): Selection {
  const labelText = request.query.get("labelSelector") ?? "";
  const fieldText = request.query.get("fieldSelector") ?? "";
  const labels = labelText === "" ? undefined : attempt("labelSelector", labelText, () => parseLabelSelector(labelText));
  const fields = fieldText === "" ? undefined : attempt("fieldSelector", fieldText, () => parseFieldSelector(fieldText));
  if (!labels && !fields) return { namespace: info.namespace };

  if (fields) {
    const known = Object.keys(fieldsOf(served, emptyOf(served)));
    for (const { field } of fields.requirements)
      if (!known.includes(field)) throw badRequest(`field label not supported: ${field}`);
  }
  const name = fields?.requirements.find(({ field, operator }) => field === "metadata.name" && operator === "=")?.value;
  return {
    namespace: info.namespace,
    name,
    matches: (object) => (labels?.matches(object.metadata.labels ?? {}) ?? true) && (fields?.matches(fieldsOf(served, object)) ?? true),
  };
}

/** An object of the resource before anything is set: what tells which fields can be selected by. */
function emptyOf({ row }: ServedResource): ApiObject {
  const type = builtInFacts.typeOf(row);
  const empty = { apiVersion: "", kind: "", metadata: { name: "", uid: "", resourceVersion: "", creationTimestamp: "" } };
  return type ? ({ ...canonical(type, {}).object, metadata: empty.metadata } as unknown as ApiObject) : empty;
}

function fieldsOf({ definition, row }: ServedResource, object: Readonly<ApiObject>): Record<string, string> {
  return selectableFields(definition, row.namespaced, object);
}


function attempt<T>(option: string, text: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw badRequest(`unable to parse requirement: ${error instanceof Error ? error.message : String(error)} (${option} ${JSON.stringify(text)})`, error);
  }
}

export type VersionMatch = "" | "Exact" | "NotOlderThan";

export interface ListOptions {
  readonly limit: number;
  readonly continue: string;
  /** "" for "the newest". */
  readonly resourceVersion: string;
  readonly versionMatch: VersionMatch;
}

export function listOptionsOf({ request: { query } }: Scope): ListOptions {
  const limit = integer(query, "limit") ?? 0;
  const resourceVersion = query.get("resourceVersion") ?? "";
  const versionMatch = query.get("resourceVersionMatch") ?? "";
  const continueToken = query.get("continue") ?? "";
  const errors: string[] = [];
  const watch = isTrue(query.get("watch"));
  const initialEvents = query.has("sendInitialEvents");
  if (initialEvents && !watch) errors.push("sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list");
  if (initialEvents && watch && versionMatch === "") errors.push('resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan');
  if (versionMatch !== "") {
    if (watch && !initialEvents) errors.push("resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
    if (!watch && resourceVersion === "") errors.push("resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided");
    if (continueToken !== "") errors.push("resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided");
    if (versionMatch !== "Exact" && versionMatch !== "NotOlderThan")
      errors.push(`resourceVersionMatch: Unsupported value: ${JSON.stringify(versionMatch)}: supported values: "Exact", "NotOlderThan", ""`);
    if (versionMatch === "Exact" && resourceVersion === "0")
      errors.push('resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"');
  }
  if (errors.length > 0) throw badRequest(errors.length > 1 ? `[${errors.join(", ")}]` : errors[0]!);
  if (resourceVersion !== "" && !/^\d+$/.test(resourceVersion)) throw badRequest(`resourceVersion: Invalid value: ${JSON.stringify(resourceVersion)}: strconv.ParseUint: parsing ${JSON.stringify(resourceVersion)}: invalid syntax`);
  if (continueToken !== "" && resourceVersion !== "" && resourceVersion !== "0") throw badRequest("specifying resource version is not allowed when using continue");
  return { limit, continue: continueToken, resourceVersion, versionMatch: versionMatch as VersionMatch };
}

export function integer(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === "") return undefined;
  const value = Number(text);
  if (!Number.isInteger(value)) throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`);
  return value;
}

export function isDryRun(query: URLSearchParams): boolean {
  const values = query.getAll("dryRun");
  for (const value of values) if (value !== "All") throw badRequest(`dryRun: Unsupported value: ${JSON.stringify(value)}: supported values: "All"`);
  return values.length > 0;
}
