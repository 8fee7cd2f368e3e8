/**
 * Disks of iSCSI targets, which nodes fetch themselves: nobody attaches them, but a Node's status says which of them it may use, so that no two nodes write to
 * one. Pure.
 *
 * Source: kubernetes v1.36 pkg/controller/volume/attachdetach/reconciler/reconciler.go, pkg/volume/iscsi/attacher.go
 */
import type { Node, PersistentVolume, Pod } from "../../api/gen/core.v1.ts";
import { ISCSI_VOLUMES } from "../../api/meta/iscsi-names.ts";
import { FORCE_AFTER_MS, isHealthy, isOutOfService } from "./plan.ts";

/** A disk that a pod on the node uses. */
export interface WantedDisk {
  /** As volumesAttached names it. */
  readonly name: string;
  /** Absent: the pod itself names the disk, for which it answers. */
  readonly volume?: Readonly<PersistentVolume> | undefined;
  readonly isForMany: boolean;
  readonly pods: readonly Readonly<Pod>[];
}

export interface DiskFacts {
  readonly node: Readonly<Node>;
  readonly wanted: readonly WantedDisk[];
  /** Other nodes that have it. */
  readonly elsewhere: (name: string) => readonly string[];
  /** Since when nobody on the node wants it any more. */
  readonly idleMs: (name: string) => number;
  readonly forceDetach: boolean;
}

export interface DiskPlan {
  /** What the node's status is to say. */
  readonly attached: readonly string[];
  /** Those it did not say before. */
  readonly granted: readonly WantedDisk[];
  readonly blocked: readonly { readonly wanted: WantedDisk; readonly nodes: readonly string[] }[];
  /** Of those it had, nobody wants them any more: what it still uses, and what it loses. */
  readonly idle: readonly string[];
  readonly released: readonly string[];
}

/** Those of a node whose Node is gone that it may use still: what it had mounted, as if it did not answer. Its machine may run on, and its Node come back. */
export function keptOfGone(disks: readonly string[], { wanted, idleMs, forceDetach }: Pick<DiskFacts, "wanted" | "idleMs" | "forceDetach">): string[] {
  const names = new Set(wanted.map(({ name }) => name));
  return disks.filter((name) => names.has(name) || !forceDetach || idleMs(name) <= FORCE_AFTER_MS);
}

/** What it will be kept from others of, should its Node go. */
export function disksInUse(node: Readonly<Node>): string[] {
  const inUse = new Set(node.status?.volumesInUse ?? []);
  return isOutOfService(node) ? [] : attachedDisks(node).filter((name) => inUse.has(name));
}

export function attachedDisks({ status }: Readonly<Node>): string[] {
  return (status?.volumesAttached ?? []).flatMap(({ name }) => (name.startsWith(ISCSI_VOLUMES) ? [name] : []));
}

export function planDisks({ node, wanted, elsewhere, idleMs, forceDetach }: DiskFacts): DiskPlan {
  const here = new Set(attachedDisks(node));
  const granted: WantedDisk[] = [];
  const blocked: { wanted: WantedDisk; nodes: readonly string[] }[] = [];
  for (const one of wanted) {
    if (here.has(one.name)) continue;
    const nodes = one.isForMany ? [] : elsewhere(one.name);
    if (nodes.length > 0) blocked.push({ wanted: one, nodes });
    else granted.push(one);
  }
  const inUse = new Set(node.status?.volumesInUse ?? []);
  const idle = [...here].filter((name) => !wanted.some((one) => one.name === name));
  const kept = idle.filter((name) => inUse.has(name) && !isOutOfService(node) && !(forceDetach && !isHealthy(node) && idleMs(name) > FORCE_AFTER_MS));
  const used = [...here].filter((name) => !idle.includes(name));
  return { attached: [...used, ...kept, ...granted.map(({ name }) => name)], granted, blocked, idle: kept, released: idle.filter((name) => !kept.includes(name)) };
}
