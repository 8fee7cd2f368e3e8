/**
 * How ownership moves when an object changes: whoever changes a field owns it, and nobody owns what is gone.
 *
 * Source: sigs.k8s.io/structured-merge-diff v6 merge/update.go, typed/reconcile_schema.go
 */
import { isEmptyMap, type JsonMap } from "../json-value.ts";
import { ANYTHING, type ObjectSchema, type SchemaNode } from "../schema.ts";
import { type Comparison, compareObjects } from "./compare.ts";
import { type Conflict, ConflictError } from "./conflict.ts";
import { type FieldFilter, remembered } from "./field-filter.ts";
import { difference, EMPTY_SET, type FieldSet, intersection, isEmptySet, LEAF, schemaBelow, setOf, union } from "./field-set.ts";
import { type Manager, type Managers, withSet } from "./managers.ts";
import { respelledFields } from "./respelled.ts";

/** Another version of the kind, for managers that wrote in it. Conversions throw ConversionError. */
export interface VersionView {
  readonly schema: ObjectSchema;
  to(object: JsonMap): JsonMap;
  from(object: JsonMap): JsonMap;
  /** What the registry resets in it whatever is sent: nobody loses that. */
  readonly filter?: FieldFilter | undefined;
}

/** An object cannot be had in a version. */
export class ConversionError extends Error { override readonly name = "ConversionError"; }

/** What cannot be converted is told with what it is needed for. */
export function converting<T>(what: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof ConversionError ? new ConversionError(`${what}: ${error.message}`, { cause: error }) : error;
  }
}

/** The version a manager's set is in; undefined for one that there is no longer: its managers are forgotten. */
export type Versions = (apiVersion: string) => VersionView | undefined;

/** One view for each version; without `versions`, all sets are taken to be in the version of the write. */
export function viewsOf(schema: ObjectSchema, apiVersion: string, versions: Versions | undefined): Versions {
  const here: VersionView = { schema, to: (object) => object, from: (object) => object };
  const views = new Map<string, VersionView | undefined>([[apiVersion, here]]);
  return (version) => {
    if (versions === undefined) return here;
    if (!views.has(version)) views.set(version, versions(version));
    return views.get(version);
  };
}

export interface Change {
  readonly apiVersion: string;
  readonly before: JsonMap;
  readonly after: JsonMap;
  /** `before` is the schema's empty object. */
  readonly isNew?: boolean;
  readonly respelled?: ReadonlySet<object> | undefined;
  readonly filter: FieldFilter | undefined;
  readonly versions: Versions;
}

/** System fields: the server's, whoever sends them. kubernetes v1.36 internal/stripmeta.go */
const SYSTEM_FIELDS: FieldSet = setOf(
  ["f:apiVersion"], ["f:kind"], ["f:metadata"],
  ...["name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields", "resourceVersion"].map((name) => ["f:metadata", `f:${name}`]),
);

export const withoutSystemFields: FieldFilter = remembered((set) => difference(set, SYSTEM_FIELDS));

/**
 * What is left to everyone but `own` when the object changes, and what changed.
 * Without force, throws ConflictError if that takes fields from anybody.
 */
export function yieldOwnership(managers: Managers, own: string | undefined, change: Change, { force }: { readonly force: boolean }): { readonly managers: Managers; readonly comparison: Comparison } {
  const here = change.versions(change.apiVersion)!;
  const comparison = filtered(compareIn(here, change), change.filter);
  const comparisons = new Map<VersionView, Taken>([[here, takenBy(comparison)]]);
  const conflicts: Conflict[] = [];
  const left = new Map<string, Manager>();
  for (const [id, manager] of managers) {
    if (id === own) { left.set(id, manager); continue; }
    const view = change.versions(manager.apiVersion);
    if (view === undefined) continue;
    const found = comparisons.get(view) ?? takenBy(filtered(compareIn(view, change), view.filter));
    comparisons.set(view, found);
    const lost = isEmptySet(found.changed) ? EMPTY_SET : intersection(manager.set, found.changed);
    if (!isEmptySet(lost)) conflicts.push({ manager, set: lost });
    const kept = withSet(manager, difference(difference(manager.set, lost), found.removed));
    if (kept !== undefined) left.set(id, kept);
  }
  if (!force && conflicts.length > 0) throw new ConflictError(conflicts);
  return { managers: left, comparison };
}

/** What managers of one version lose by a change. */
interface Taken { readonly changed: FieldSet; readonly removed: FieldSet }

function takenBy({ modified, added, removed }: Comparison): Taken { return { changed: union(modified, added), removed }; }

function compareIn({ schema, to }: VersionView, { before, after, isNew = false, respelled }: Change): Comparison {
  const old = to(before);
  const next = converting("failed to convert new object", () => to(after));
  const comparison = compareObjects(schema.root, old, next, { isNew });
  return respelled ? { ...comparison, modified: union(comparison.modified, respelledFields(schema.root, old, next, respelled)) } : comparison;
}

function filtered(comparison: Comparison, filter: FieldFilter | undefined): Comparison {
  if (filter === undefined) return comparison;
  return { added: filter(comparison.added), modified: filter(comparison.modified), removed: filter(comparison.removed) };
}

/**
 * Sets brought up to date with a schema in which what used to merge is now atomic: the parts a manager owned become the whole.
 * `live` must be convertible to the version of each manager, whatever becomes of it later.
 */
export function reconcileManagers(managers: Managers, live: JsonMap, versions: Versions): Managers {
  let out: Map<string, Manager> | undefined;
  for (const [id, manager] of managers) {
    const view = versions(manager.apiVersion);
    if (view === undefined) continue;
    view.to(live);
    const set = reconcile(manager.set, view.schema.root);
    if (set !== manager.set) (out ??= new Map(managers)).set(id, { ...manager, set, entry: undefined });
  }
  return out ?? managers;
}

function reconcile(set: FieldSet, schema: SchemaNode | undefined): FieldSet {
  if (schema === undefined || schema.map?.element === ANYTHING) return set;
  let out = set;
  for (const key in set) {
    const child = set[key]!;
    if (key === ".") continue;
    const below = schemaBelow(schema, key);
    const next = isAtomic(below) && !isEmptyMap(child) ? LEAF : below === ANYTHING ? child : reconcile(child, below);
    if (next === child) continue;
    if (out === set) out = { ...set };
    out[key] = next;
  }
  return out;
}

function isAtomic(schema: SchemaNode | undefined): boolean {
  return schema?.map === undefined ? schema?.list?.atomic ?? false : schema.map.atomic;
}
