/** The options of list, watch and delete, from the query. Wrong ones are refused as upstream does. */
import { errorText } from "../../api/meta/error-text.ts";
import { type FieldError, forbidden, formatFieldError, invalid as invalidField, notSupported } from "../../api/meta/field-error.ts";
import { checkFieldsSupported, parseFieldSelector } from "../../api/meta/field-selector.ts";
import { parseLabelSelector } from "../../api/meta/label-selector.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { badRequest, invalid, type StatusError, statusError } from "../../api/meta/status-error.ts";
import { isTrue } from "../../api/request/query.ts";
import { canonical } from "../../api/schema/canonical.ts";
import { builtInFacts } from "../../api/schema/facts.ts";
import { type Selection, selectableFields } from "../../registry/generic/selection.ts";
import type { ServedResource } from "../../registry/registry.ts";
import type { Scope } from "../scope.ts";

export interface Listing {
  readonly options: ListOptions;
  readonly selection: Selection;
  /** It can be about one object only. */
  readonly isOne: boolean;
}

/** What a list or a watch asks for. Numbers and selectors are read first, then it is seen what goes together, then which fields are known; the version and where to go on come last. Throws 400, 422. */
export function listingOf(scope: Scope): Listing {
  const { request: { query }, info, served: { row } } = scope;
  integer(query, "timeoutSeconds"); // a list has no use for it, and is refused all the same
  const limit = integer(query, "limit") ?? 0;
  const selectors = selectorsOf(query);
  const errors = isTrue(query.get("watch")) ? watchErrors(query) : listErrors(query);
  if (errors.length > 0) throw invalid({ group: "meta.k8s.io", kind: "ListOptions" }, "", errors);
  const selection = selectionBy(scope, selectors);
  const isPlaced = !row.namespaced || selection.namespace !== "" || selectors.fields?.exactMatch("metadata.namespace") !== undefined;
  const isOne = selection.name !== undefined && isPlaced;
  const resourceVersion = query.get("resourceVersion") ?? "";
  const wrong = versionError(resourceVersion);
  if (wrong && info.verb === "watch") throw badVersion(wrong);
  const continueToken = query.get("continue") ?? "";
  if (wrong && continueToken === "") throw badRequest(`invalid resource version: ${formatFieldError(wrong)}`);
  return { options: { limit, continue: continueToken, resourceVersion, versionMatch: (query.get(MATCH) ?? "") as VersionMatch }, selection, isOne };
}

/** Which objects the request is about. Throws 400 for a selector that cannot be read or names an unknown field. */
export function selectionOf(scope: Scope): Selection { return selectionBy(scope, selectorsOf(scope.request.query)); }

interface Selectors { readonly labels: ReturnType<typeof parseLabelSelector> | undefined; readonly fields: ReturnType<typeof parseFieldSelector> | undefined }

function selectorsOf(query: URLSearchParams): Selectors {
  const labelText = query.get("labelSelector") ?? "";
  const fieldText = query.get("fieldSelector") ?? "";
  return { labels: labelText === "" ? undefined : attempt(() => parseLabelSelector(labelText)), fields: fieldText === "" ? undefined : attempt(() => parseFieldSelector(fieldText)) };
}

function selectionBy({ served, info }: Scope, { labels, fields }: Selectors): Selection {
  const namespace = served.row.namespaced ? info.namespace : "";
  const name = info.name || undefined; // of a path that names one object, or of the only field asked for
  if (fields) checkFieldsSupported(fields, served.definition.fields || served.custom ? Object.keys(fieldsOf(served, emptyOf(served))) : undefined, served.row.kind);
  const selected = fields?.exactMatch("metadata.name");
  if (name !== undefined && fields && selected !== name) throw badRequest("fieldSelector metadata.name doesn't match requested name");
  if (!labels && (fields?.requirements.length ?? 0) === (selected === undefined ? 0 : 1)) return { namespace, name: selected ?? name };
  const nodeName = served.custom ? undefined : fields?.exactMatch("spec.nodeName"), label = served.custom ? undefined : labels?.exactLabel(); // a conversion may change labels
  return {
    namespace,
    name: selected ?? name,
    nodeName,
    label,
    isFound: (nodeName ?? label) !== undefined && (fields?.requirements.length ?? 0) + (labels?.requirements.length ?? 0) === 1,
    matches(stored) {
      const object = served.custom ? served.fromStorage(stored) : stored;
      return (labels?.matches(object.metadata.labels ?? {}) ?? true) && (fields?.matches(fieldsOf(served, object)) ?? true);
    },
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

function attempt<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw badRequest(errorText(error), error);
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

const MATCH = "resourceVersionMatch";

function listErrors(query: URLSearchParams): FieldError[] {
  const match = query.get(MATCH) ?? "";
  const version = query.get("resourceVersion") ?? "";
  const errors: FieldError[] = [];
  if (match !== "") {
    if (version === "") errors.push(forbidden(MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided"));
    if (query.get("continue")) errors.push(forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided"));
    if (match !== "Exact" && match !== "NotOlderThan") errors.push(notSupported(MATCH, match, ["Exact", "NotOlderThan", ""]));
    if (match === "Exact" && version === "0") errors.push(forbidden(MATCH, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'));
  }
  if (query.has("sendInitialEvents")) errors.push(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
  return errors;
}

function watchErrors(query: URLSearchParams): FieldError[] {
  const match = query.get(MATCH) ?? "";
  const initial = query.has("sendInitialEvents");
  const errors: FieldError[] = [];
  if (initial && match !== "NotOlderThan") errors.push(forbidden(MATCH, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
  const isLegacy = !initial && match === "" && ["", "0"].includes(query.get("resourceVersion") ?? ""); // upstream takes it for one that asks for the initial events
  if (isLegacy && query.get("continue")) errors.push(forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided"));
  if (match === "") return errors;
  if (!initial) errors.push(forbidden(MATCH, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"));
  if (match !== "NotOlderThan") errors.push(notSupported(MATCH, match, ["NotOlderThan"]));
  if (query.get("continue")) errors.push(forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided"));
  return errors;
}

const UINT64_MAX = 2n ** 64n - 1n;

/** What is wrong with a resourceVersion that is asked for; "" is any. */
export function versionError(text: string): FieldError | undefined {
  const why = !/^\d*$/.test(text) ? "invalid syntax" : text.length > 19 && BigInt(text) > UINT64_MAX ? "value out of range" : undefined;
  return why === undefined ? undefined : invalidField("resourceVersion", text, `strconv.ParseUint: parsing ${JSON.stringify(text)}: ${why}`);
}

/** Of a get and of a watch: upstream's store has no Status for it. */
export function badVersion(error: FieldError): StatusError { return statusError({ code: 500, reason: "", message: formatFieldError(error) }); }

export function integer(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const value = Number(text);
  const why = !/^[+-]?\d+$/.test(text) ? "invalid syntax" : BigInt.asIntN(64, BigInt(text)) !== BigInt(text) ? "value out of range" : undefined;
  if (why !== undefined) throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: ${why}`);
  return value;
}
