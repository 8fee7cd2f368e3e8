/**
 * Server-side apply: the configuration says which fields its applier wants and how; fields it no longer mentions, and nobody else wants, go.
 *
 *   const { object } = serverSideApply({ live, applied, manager: "kubectl", force: false, apiVersion: "apps/v1", kind: "Deployment", schema, nowMs })
 *
 * The result is not defaulted and not in canonical form: that is the caller's next step, as after any decode. Without a live object it is the
 * configuration itself with managedFields. Throws a StatusError: 409 with one cause for each field that another manager owns with another
 * value, 400 for a configuration of the wrong kind, 500 where the object cannot be had in the version of another manager; a plain Error (a 500,
 * as upstream answers) for one that does not fit the schema.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/util/managedfields/internal/*.go, sigs.k8s.io/structured-merge-diff v6 merge/update.go
 */
import { formatGvk, gvkOf } from "../../meta/gvk.ts";
import { badRequest, statusError } from "../../meta/status-error.ts";
import { equalJson, isMap, type JsonMap, jsonKindOf } from "../json-value.ts";
import { type Conflict, ConflictError, conflictsBeyond, conflictStatus } from "./conflict.ts";
import { isEmptySet } from "./field-set.ts";
import { allowedByLastApplied, withLastApplied } from "./last-applied.ts";
import { BEFORE_FIRST_APPLY, capUpdateManagers, encodeManagers, identifierOf, type Manager, type Managers, managersStored } from "./managers.ts";
import { mergeTyped } from "./merge-typed.ts";
import { ConversionError, converting, reconcileManagers, type Versions, viewsOf, withoutSystemFields, yieldOwnership } from "./ownership.ts";
import { pruneUnapplied } from "./prune.ts";
import { fieldSetOf } from "./to-set.ts";
import { TypedError } from "./typed-error.ts";
import { followUpdate, managedFieldsOf, type Update, withManagedFields, withoutManagedFields } from "./update.ts";
import { validateTyped } from "./validate-typed.ts";
import { timestamp } from "../../../lifecycle/clock.ts";

export interface Apply<T extends object> extends Omit<Update<T>, "updated"> {
  /** The configuration as decoded: fields that are absent are not mentioned, null is a value. */
  readonly applied: unknown;
  readonly kind: string;
  /** Take fields from other managers. */
  readonly force: boolean;
}

export interface Applied<T> {
  readonly object: T;
  /** False if the configuration asks for nothing that is not there already; its manager may still own more than before. */
  readonly changed: boolean;
}

/** kubectl, when it applies on the server, may take what an earlier client-side apply of its own set. */
const KUBECTL = "kubectl";

export function serverSideApply<T extends object>(request: Apply<T>): Applied<T> {
  const applied = checkConfiguration(request);
  try {
    return applyChecked(request, applied);
  } catch (error) {
    if (error instanceof ConflictError) throw conflictStatus(error.conflicts);
    if (error instanceof ConversionError) throw statusError({ code: 500, reason: "", message: error.message, cause: error });
    throw error;
  }
}

function checkConfiguration<T extends object>({ applied: given, apiVersion, kind, schema }: Apply<T>): JsonMap {
  const applied = given ?? {}; // an empty document
  if (!isMap(applied)) throw badRequest(`error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal ${jsonKindOf(applied)} into Go value of type map[string]interface {}`);
  const named = { apiVersion: textAt(applied, "apiVersion"), kind: textAt(applied, "kind") };
  if (named.apiVersion !== apiVersion || named.kind !== kind) throw badRequest(`invalid object type: ${formatGvk(gvkOf(named))}`);
  if (managedFieldsOf(applied) !== undefined) throw badRequest("metadata.managedFields must be nil");
  try {
    validateTyped(schema.root, applied);
  } catch (error) {
    if (!(error instanceof TypedError)) throw error;
    throw statusError({ code: 500, reason: "", message: `failed to create typed patch object (${nameOf(applied)}): ${error.message}`, cause: error });
  }
  return applied;
}

/** What is no text counts as none: it may be anything, and not even printable. */
function textAt(object: JsonMap, field: string): string {
  const value = object[field];
  return typeof value === "string" ? value : "";
}

/** `ns/name; apps/v1, Kind=Deployment` */
function nameOf(object: JsonMap): string {
  const metadata = isMap(object["metadata"]) ? object["metadata"] : {};
  const gvk = gvkOf({ apiVersion: textAt(object, "apiVersion"), kind: textAt(object, "kind") });
  return `${textAt(metadata, "namespace")}/${textAt(metadata, "name")}; ${formatGvk(gvk)}`;
}

function applyChecked<T extends object>(request: Apply<T>, applied: JsonMap): Applied<T> {
  const { live, manager, force, schema } = request;
  const stored = managedFieldsOf(live);
  const before = live === undefined ? undefined : withoutManagedFields(live);
  const versions = viewsOf(schema, request.apiVersion, request.versions);
  const known = managersBefore(request);
  if (before !== undefined) refuseMisfit(request, before, (name) => `failed to create typed live object (${name})`);
  const managers = reconcileManagers(known, before ?? schema.empty, versions);
  let result: Merged;
  try {
    result = mergeAndOwn(request, { before, applied, managers, versions, force });
  } catch (error) {
    if (!(error instanceof ConflictError) || manager !== KUBECTL || before === undefined) throw error;
    const allowed = allowedByLastApplied(schema.root, before, request);
    if (allowed === undefined) throw error;
    const beyond: readonly Conflict[] = conflictsBeyond(error.conflicts, allowed);
    if (beyond.length > 0) throw new ConflictError(beyond);
    result = mergeAndOwn(request, { before, applied, managers, versions, force: true });
  }
  const object = manager === KUBECTL ? withLastApplied(result.object, applied) : result.object;
  return { object: withManagedFields(object, encodeManagers(result.managers, stored)) as unknown as T, changed: result.changed };
}

/** Fields of an object nobody followed so far are those of `before-first-apply`. */
function managersBefore<T extends object>(request: Apply<T>): Managers {
  const { live } = request;
  const managers = managersStored(managedFieldsOf(live));
  if (managers.size > 0 || live === undefined) return managers;
  refuseMisfit(request, live as JsonMap, (name) => `failed to create manager for existing fields: failed to convert new object (${name}) to smd typed`);
  return capUpdateManagers(followUpdate<object>(managers, { ...request, live: undefined, updated: live, manager: BEFORE_FIRST_APPLY }));
}

/** Of before the schema became what it is, or of before somebody checked: nobody can tell what to merge with. */
function refuseMisfit<T extends object>({ schema }: Apply<T>, live: JsonMap, what: (name: string) => string): void {
  try {
    validateTyped(schema.root, live, { duplicates: true });
  } catch (error) {
    if (!(error instanceof TypedError)) throw error;
    throw statusError({ code: 500, reason: "", message: `${what(nameOf(live))}: ${error.message}`, cause: error });
  }
}

interface Merged { readonly object: JsonMap; readonly managers: Managers; readonly changed: boolean }
interface Input { readonly before: JsonMap | undefined; readonly applied: JsonMap; readonly managers: Managers; readonly versions: Versions; readonly force: boolean }

function mergeAndOwn<T extends object>(request: Apply<T>, { before, applied, managers, versions, force }: Input): Merged {
  const { schema, apiVersion, subresource = "", filter, nowMs } = request;
  const identity = { name: request.manager, operation: "Apply", apiVersion, subresource } as const;
  const id = identifierOf(identity);
  const last = managers.get(id);
  const merged = before === undefined ? applied : mergeTyped(schema.root, before, applied);
  const mentioned = fieldSetOf(schema.root, applied);
  const own: Manager = { ...identity, set: filter ? filter(mentioned) : mentioned, time: last?.time, entry: undefined };
  const claimed = new Map(managers).set(id, own);
  const object = converting("failed to prune fields", () => pruneUnapplied({ merged, last, claimed, versions }));
  const { managers: left } = yieldOwnership(claimed, id, { apiVersion, before: before ?? schema.empty, after: object, filter, versions }, { force });
  const changed = before === undefined || !equalJson(before, object);
  return { object: changed || before === undefined ? object : before, changed, managers: settle(left, id, { last, time: changed ? timestamp(nowMs) : last?.time }) };
}

/** The applier's own entry without system fields; as it was, if it claims what it claimed before and nothing changed. */
function settle(managers: Managers, id: string, { last, time }: { readonly last: Manager | undefined; readonly time: string | undefined }): Managers {
  const own = managers.get(id)!;
  const set = withoutSystemFields(own.set);
  const settled = new Map(managers);
  if (isEmptySet(set)) settled.delete(id);
  else settled.set(id, last !== undefined && last.time === time && last.apiVersion === own.apiVersion && equalJson(last.set, set) ? last : { ...own, set, time });
  return settled;
}
