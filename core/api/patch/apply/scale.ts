/**
 * Ownership across the scale subresource: spec.replicas of a Scale is a field of its parent. Who writes it there has no time in the parent.
 *
 *   scaleManagedFields(parent.metadata.managedFields, paths)       what a Scale shows
 *   parentManagedFields({ parent, scale, apiVersion, paths })      what the parent has after a write of its Scale
 *
 * Source: kubernetes v1.36 apimachinery/pkg/util/managedfields/scalehandler.go
 */
import type { ManagedFieldsEntry } from "../../meta/object-meta.ts";
import { difference, hasPath, isEmptySet, setOf } from "./field-set.ts";
import { encodeManagers, type Manager, managersStored } from "./managers.ts";
import { fieldElement } from "./path-element.ts";

/** By apiVersion of the parent, where its replicas are: `spec.replicas`. A custom resource says so in its scale subresource; undefined: nowhere. */
export type ReplicasPaths = ReadonlyMap<string, string | undefined>;

const SCALE_API_VERSION = "autoscaling/v1";
const REPLICAS = ["f:spec", "f:replicas"];

export function scaleManagedFields(parent: readonly ManagedFieldsEntry[] | undefined, paths: ReplicasPaths): ManagedFieldsEntry[] | undefined {
  const shown = new Map<string, Manager>();
  for (const [id, manager] of managersStored(parent)) {
    const path = pathIn(paths, manager.apiVersion);
    if (path && hasPath(manager.set, path)) shown.set(id, { ...manager, apiVersion: SCALE_API_VERSION, set: setOf(REPLICAS), entry: undefined });
  }
  return encodeManagers(shown, undefined);
}

export interface ScaleWrite {
  readonly parent: readonly ManagedFieldsEntry[] | undefined;
  /** managedFields of the Scale as it is to be stored. */
  readonly scale: readonly ManagedFieldsEntry[] | undefined;
  /** The parent's, in the version of the request. */
  readonly apiVersion: string;
  readonly paths: ReplicasPaths;
}

export function parentManagedFields({ parent, scale, apiVersion, paths }: ScaleWrite): ManagedFieldsEntry[] | undefined {
  const stored = managersStored(parent);
  const ofScale = new Map(managersStored(scale)); // there who updates is known by the Scale's version, and so is never the same as in the parent
  const next = new Map<string, Manager>();
  for (const [id, manager] of stored) {
    if (!paths.has(manager.apiVersion)) continue;
    const path = pathIn(paths, manager.apiVersion);
    if (!path || !hasPath(manager.set, path)) { next.set(id, manager); continue; }
    if (ofScale.delete(id)) { next.set(id, manager); continue; }
    const set = difference(manager.set, setOf(path));
    if (!isEmptySet(set)) next.set(id, { ...manager, set, entry: undefined });
  }
  const path = pathIn(paths, apiVersion);
  for (const [id, manager] of ofScale) {
    if (path && hasPath(manager.set, REPLICAS)) next.set(id, { ...manager, apiVersion, set: setOf(path), time: stored.get(id)?.time, entry: undefined });
  }
  return encodeManagers(next, parent);
}

function pathIn(paths: ReplicasPaths, apiVersion: string): readonly string[] | undefined { return paths.get(apiVersion)?.replace(/^\./, "").split(".").map(fieldElement); }
