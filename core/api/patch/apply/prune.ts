/**
 * Removes what an applier applied last time and does not mention any more, unless somebody else owns it.
 *
 * What is left is worked out in the version of last time, and passes from there through every version somebody owns fields in and back.
 *
 * Source: sigs.k8s.io/structured-merge-diff v6 merge/update.go prune, addBackOwnedItems, addBackDanglingItems
 */
import type { JsonMap } from "../json-value.ts";
import type { SchemaNode } from "../schema.ts";
import { difference, type FieldSet, intersection, isEmptySet, union, unionAll, withNamedFields } from "./field-set.ts";
import type { Manager, Managers } from "./managers.ts";
import { converting, type VersionView, type Versions } from "./ownership.ts";
import { removeFields } from "./remove.ts";
import { fieldSetOf } from "./to-set.ts";

export interface Prune {
  /** The live object with the configuration laid over it. */
  readonly merged: JsonMap;
  /** The applier as of last time. */
  readonly last: Manager | undefined;
  /** Everyone, the applier with what it wants now. */
  readonly claimed: Managers;
  readonly versions: Versions;
}

export function pruneUnapplied({ merged, last, claimed, versions }: Prune): JsonMap {
  if (last === undefined || isEmptySet(last.set)) return merged;
  const view = versions(last.apiVersion);
  if (view === undefined) return merged; // there is no such version any more
  const { root } = view.schema;
  const lastSet = withNamedFields(last.set, root);
  const whole = converting("failed to convert merged object to last applied version", () => view.to(merged));
  const left = converting("failed add back owned items", () => addBackOwned(claimed, { view, whole, pruned: removeFields(root, whole, lastSet) }, { last, versions }));
  const pruned = converting("failed add back dangling items: failed to convert pruned object to last applied version", () => converted(left.pruned, left.view, view));
  return view.from(addBackDangling(whole, pruned, { view, lastSet }));
}

/** An object as it was and as it is left, both in one version. */
interface Pruning { readonly view: VersionView; readonly whole: JsonMap; readonly pruned: JsonMap }

/** What was removed although somebody, the applier included, owns it. It is left in the version that comes last. */
function addBackOwned(claimed: Managers, first: Pruning, { last, versions }: { readonly last: Manager; readonly versions: Versions }): Pruning {
  let now = first;
  for (const [view, { apiVersion, set }] of ownedByVersion(claimed, last, versions)) {
    const whole = converting(`failed to convert merged object at version ${apiVersion}`, () => converted(now.whole, now.view, view));
    const pruned = converting(`failed to convert pruned object at version ${apiVersion}`, () => converted(now.pruned, now.view, view));
    now = { view, whole, pruned: withOwned(whole, pruned, { root: view.schema.root, owned: set }) };
  }
  return now;
}

/** The version pruned in comes first: converting to others may need fields it brings back. */
function ownedByVersion(claimed: Managers, last: Manager, versions: Versions): ReadonlyMap<VersionView, { readonly apiVersion: string; readonly set: FieldSet }> {
  const owned = new Map<VersionView, { apiVersion: string; readonly sets: FieldSet[] }>([[versions(last.apiVersion)!, { apiVersion: last.apiVersion, sets: [] }]]);
  for (const { apiVersion, set } of claimed.values()) {
    const view = versions(apiVersion);
    if (view === undefined) continue;
    const sets = owned.get(view)?.sets ?? [];
    sets.push(set);
    owned.set(view, { apiVersion, sets });
  }
  return new Map([...owned].map(([view, { apiVersion, sets }]) => [view, { apiVersion, set: unionAll(sets) }]));
}

/** By way of the version of the write. */
function converted(object: JsonMap, from: VersionView, to: VersionView): JsonMap { return from === to ? object : to.to(from.from(object)); }

function withOwned(whole: JsonMap, pruned: JsonMap, { root, owned }: { readonly root: SchemaNode; readonly owned: FieldSet }): JsonMap {
  const kept = union(withNamedFields(fieldSetOf(root, pruned), root), withNamedFields(owned, root));
  return removeFields(root, whole, difference(withNamedFields(fieldSetOf(root, whole), root), kept));
}

/** What was removed although the applier did not own it: items it only reached into. */
function addBackDangling(whole: JsonMap, pruned: JsonMap, { view: { schema: { root } }, lastSet }: { readonly view: VersionView; readonly lastSet: FieldSet }): JsonMap {
  const gone = difference(withNamedFields(fieldSetOf(root, whole), root), withNamedFields(fieldSetOf(root, pruned), root));
  return removeFields(root, whole, intersection(gone, lastSet));
}
