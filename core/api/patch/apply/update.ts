/**
 * Ownership after a plain write: create, update, and every patch but apply.
 *
 *   updateManagedFields({ live, updated, manager: "kubectl-edit", apiVersion: "apps/v1", schema, nowMs })
 *
 * returns `updated` with its managedFields. Whatever the write changed is the writer's from now on. Objects that carry no managedFields are not
 * followed until somebody applies; a write that sends an empty list stops following. Never fails: an object whose
 * ownership cannot be worked out is stored without.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/util/managedfields/internal/{fieldmanager,managedfieldsupdater,skipnonapplied}.go
 */
import type { ManagedFieldsEntry } from "../../meta/object-meta.ts";
import { equalJson, isMap, type JsonMap } from "../json-value.ts";
import type { ObjectSchema } from "../schema.ts";
import type { FieldFilter } from "./field-filter.ts";
import { EMPTY_SET, isEmptySet, union } from "./field-set.ts";
import { asksToForget, capUpdateManagers, encodeManagers, identifierOf, type Manager, type Managers, managersSent, managersStored } from "./managers.ts";
import { type Change, ConversionError, reconcileManagers, type Versions, viewsOf, withoutSystemFields, yieldOwnership } from "./ownership.ts";
import { TypedError } from "./typed-error.ts";
import { timestamp } from "../../../lifecycle/clock.ts";

export interface Update<T extends object> {
  /** As stored; undefined for a create. */
  readonly live: Readonly<T> | undefined;
  /** As it is to be stored, in the same version. */
  readonly updated: Readonly<T>;
  /** `managerName(…)` of the request; "" is told as "unknown". */
  readonly manager: string;
  readonly apiVersion: string;
  readonly subresource?: string | undefined;
  readonly schema: ObjectSchema;
  readonly nowMs: number;
  /** What the registry resets is nobody's. */
  readonly filter?: FieldFilter | undefined;
  /** For kinds with several versions; absent: all sets are taken to be in this one. */
  readonly versions?: Versions | undefined;
  /** What in lists of `updated` was sent otherwise than it is stored: such a list is not what it was. See Canonical. */
  readonly respelled?: ReadonlySet<object> | undefined;
}

export function updateManagedFields<T extends object>(update: Update<T>): T {
  const { live, updated, subresource = "" } = update;
  const stored = managedFieldsOf(live);
  try {
    const managers = managersOf(stored, managedFieldsOf(updated), subresource);
    if (managers.size === 0 && hasUid(live)) return withManagedFields(updated, undefined);
    const next = capUpdateManagers(followUpdate(managers, update));
    return withManagedFields(updated, encodeManagers(next, stored));
  } catch (error) {
    if (!(error instanceof TypedError || error instanceof ConversionError)) throw error;
    return withManagedFields(updated, undefined); // lists whose items cannot be told apart, which validation has let through before; or a version it cannot be converted to
  }
}

/** Managers after the write, before the cap. Also how the fields of an object nobody followed become those of `before-first-apply`. */
export function followUpdate<T extends object>(managers: Managers, { live, updated, manager, apiVersion, subresource = "", schema, nowMs, filter, versions, respelled }: Update<T>): Managers {
  const change: Change = {
    apiVersion, filter, versions: viewsOf(schema, apiVersion, versions),
    before: withoutManagedFields(live ?? schema.empty), after: withoutManagedFields(updated), isNew: live === undefined, respelled,
  };
  const current = schema.changeable ? reconcileManagers(managers, change.before, change.versions) : managers;
  const { managers: left, comparison } = yieldOwnership(current, undefined, change, { force: true });
  const changed = union(comparison.modified, comparison.added);
  const set = withoutSystemFields(filter ? filter(changed) : changed);
  if (isEmptySet(set)) return left;
  const identity = { name: manager === "" ? "unknown" : manager, operation: "Update", apiVersion, subresource } as const;
  const id = identifierOf(identity);
  const next = new Map(left);
  next.set(id, { ...identity, set: union(set, left.get(id)?.set ?? EMPTY_SET), time: timestamp(nowMs), entry: undefined });
  return next;
}

/** What the client sends counts, if it can be read; a subresource cannot change ownership but by writing. */
function managersOf(stored: readonly ManagedFieldsEntry[] | undefined, sent: readonly ManagedFieldsEntry[] | undefined, subresource: string): Managers {
  if (subresource !== "" || sent === undefined || sent === stored) return managersStored(stored);
  if (asksToForget(sent)) return new Map<string, Manager>();
  if (equalJson(sent, stored)) return managersStored(stored);
  try {
    return managersSent(sent);
  } catch {
    return managersStored(stored); // what cannot be read is as if it had not been sent
  }
}

export function managedFieldsOf(object: object | undefined): readonly ManagedFieldsEntry[] | undefined {
  const metadata = (object as { readonly metadata?: unknown } | undefined)?.metadata;
  const entries = isMap(metadata) ? metadata["managedFields"] : undefined;
  return Array.isArray(entries) ? (entries as ManagedFieldsEntry[]) : undefined;
}

function hasUid(object: object | undefined): boolean {
  const metadata = (object as { readonly metadata?: unknown } | undefined)?.metadata;
  return isMap(metadata) && typeof metadata["uid"] === "string" && metadata["uid"] !== "";
}

export function withoutManagedFields(object: object): JsonMap {
  const map = object as JsonMap;
  const metadata = map["metadata"];
  if (!isMap(metadata) || metadata["managedFields"] === undefined) return map;
  const { managedFields: _, ...rest } = metadata;
  return { ...map, metadata: rest };
}

export function withManagedFields<T extends object>(object: T, entries: readonly ManagedFieldsEntry[] | undefined): T {
  const metadata = ((object as JsonMap)["metadata"] ?? {}) as JsonMap;
  if (metadata["managedFields"] === entries) return object;
  if (entries === undefined) return withoutManagedFields(object) as T;
  return { ...object, metadata: { ...metadata, managedFields: entries } };
}

