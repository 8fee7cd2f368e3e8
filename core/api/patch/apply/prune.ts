/**
 * Removes what an applier applied last time and does not mention any more, unless somebody else owns it.
 *
 * Source: sigs.k8s.io/structured-merge-diff v6 merge/update.go prune, addBackOwnedItems, addBackDanglingItems
 */
import type { JsonMap } from "../json-value.ts";
import { difference, EMPTY_SET, type FieldSet, intersection, isEmptySet, union, withNamedFields } from "./field-set.ts";
import type { Manager, Managers } from "./managers.ts";
import type { VersionView, Versions } from "./ownership.ts";
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
  if (view === undefined) return merged; // the version it applied last time is not served any more
  const { root } = view.schema;
  const lastSet = withNamedFields(last.set, root);
  let pruned = view.from(removeFields(root, view.to(merged), lastSet));
  for (const [there, owned] of ownedByVersion(claimed, view, versions)) pruned = addBackOwned(merged, pruned, { view: there, owned });
  return addBackDangling(merged, pruned, { view, lastSet });
}

/** The version pruned in comes first: converting to others may need fields it brings back. */
function ownedByVersion(claimed: Managers, first: VersionView, versions: Versions): ReadonlyMap<VersionView, FieldSet> {
  const owned = new Map<VersionView, FieldSet>([[first, EMPTY_SET]]);
  for (const { apiVersion, set } of claimed.values()) {
    const view = versions(apiVersion);
    if (view !== undefined) owned.set(view, union(owned.get(view) ?? EMPTY_SET, set));
  }
  return owned;
}

/** What was removed although somebody, the applier included, owns it. */
function addBackOwned(merged: JsonMap, pruned: JsonMap, { view, owned }: { readonly view: VersionView; readonly owned: FieldSet }): JsonMap {
  const { root } = view.schema;
  const whole = view.to(merged);
  const kept = union(withNamedFields(fieldSetOf(root, view.to(pruned)), root), withNamedFields(owned, root));
  return view.from(removeFields(root, whole, difference(withNamedFields(fieldSetOf(root, whole), root), kept)));
}

/** What was removed although the applier did not own it: items it only reached into. */
function addBackDangling(merged: JsonMap, pruned: JsonMap, { view, lastSet }: { readonly view: VersionView; readonly lastSet: FieldSet }): JsonMap {
  const { root } = view.schema;
  const whole = view.to(merged);
  const gone = difference(withNamedFields(fieldSetOf(root, whole), root), withNamedFields(fieldSetOf(root, view.to(pruned)), root));
  return view.from(removeFields(root, whole, intersection(gone, lastSet)));
}
