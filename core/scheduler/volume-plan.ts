/**
 * How a pod's claims would get their volumes on a node: which existing volume binds to which claim, and which claims are to be provisioned there.
 * Only claims of classes that wait for their first consumer are decided here; all others must be bound before the pod is placed.
 *
 * Source: kubernetes v1.36 pkg/scheduler/framework/plugins/volumebinding/binder.go
 */
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod } from "../api/gen/core.v1.ts";
import type { CSIStorageCapacity, StorageClass } from "../api/gen/storage.v1.ts";
import { labelSelector } from "../api/meta/label-selector.ts";
import { annotationsOf, isControlledBy, keyOf, labelsOf, namespaceOf } from "../api/meta/object-meta.ts";
import { compareQuantities } from "../api/meta/quantity.ts";
import { classOf, type Storage } from "./storage.ts";
import { reaches, sizeOf, type VolumeChoice, volumeChoice } from "./volume-choice.ts";

export const SELECTED_NODE = "volume.kubernetes.io/selected-node";
const BIND_COMPLETED = "pv.kubernetes.io/bind-completed";
const NO_PROVISIONER = "kubernetes.io/no-provisioner";

export interface PodClaim { readonly name: string; readonly ephemeral: boolean }

/** The claims a pod's volumes stand for. */
export function podClaims({ metadata, spec }: Readonly<Pod>): PodClaim[] {
  return (spec.volumes ?? []).flatMap(({ name, persistentVolumeClaim, ephemeral }): PodClaim[] =>
    persistentVolumeClaim ? [{ name: persistentVolumeClaim.claimName, ephemeral: false }] : ephemeral ? [{ name: `${metadata.name}-${name}`, ephemeral: true }] : []);
}

export interface PodVolumes {
  readonly bound: readonly Readonly<PersistentVolumeClaim>[];
  /** To be bound or provisioned where the pod goes. */
  readonly waiting: readonly Readonly<PersistentVolumeClaim>[];
  /** From the volumes there were when it was first asked: for all nodes of one look at the pod. */
  choiceOf(claim: Readonly<PersistentVolumeClaim>): VolumeChoice;
}

/** `refused`: why the pod cannot go anywhere yet. */
export function podVolumes(pod: Readonly<Pod>, storage: Storage): PodVolumes | { readonly refused: string } {
  const bound: Readonly<PersistentVolumeClaim>[] = [];
  const waiting: Readonly<PersistentVolumeClaim>[] = [];
  let unbound = false;
  for (const { name, ephemeral } of podClaims(pod)) {
    const claim = storage.claim(namespaceOf(pod), name);
    const refused = refusal(claim, { name, ephemeral }, pod);
    if (!claim || refused) return { refused: refused ?? "" };
    if (isFullyBound(claim)) bound.push(claim);
    else if (!claim.spec.volumeName && waitsForConsumer(storage.storageClass(classOf(claim)))) waiting.push(claim);
    else unbound = true;
  }
  return unbound ? { refused: "pod has unbound immediate PersistentVolumeClaims" } : { bound, waiting, choiceOf: choicesFrom(storage) };
}

function choicesFrom(storage: Storage): PodVolumes["choiceOf"] {
  const choices = new Map<Readonly<PersistentVolumeClaim>, VolumeChoice>();
  return (claim) => {
    const choice = choices.get(claim) ?? volumeChoice(claim, storage.volumesOfClass(classOf(claim)));
    choices.set(claim, choice);
    return choice;
  };
}

function refusal(claim: Readonly<PersistentVolumeClaim> | undefined, { name, ephemeral }: PodClaim, pod: Readonly<Pod>): string | undefined {
  if (!claim) return ephemeral ? `waiting for ephemeral volume controller to create the persistentvolumeclaim "${name}"` : `persistentvolumeclaim "${name}" not found`;
  if (claim.status?.phase === "Lost") return `persistentvolumeclaim "${name}" bound to non-existent persistentvolume "${claim.spec.volumeName ?? ""}"`;
  if (claim.metadata.deletionTimestamp != null) return `persistentvolumeclaim "${name}" is being deleted`;
  if (ephemeral && !isControlledBy(claim, pod)) return `PVC ${keyOf(claim)} was not created for pod ${keyOf(pod)} (pod is not owner)`;
  return undefined;
}

export function isFullyBound(claim: Readonly<PersistentVolumeClaim>): boolean {
  return Boolean(claim.spec.volumeName) && BIND_COMPLETED in annotationsOf(claim);
}

export function waitsForConsumer(found: Readonly<StorageClass> | undefined): boolean {
  return found?.volumeBindingMode === "WaitForFirstConsumer";
}

export interface VolumePlan {
  readonly bind: readonly { readonly claim: Readonly<PersistentVolumeClaim>; readonly volume: Readonly<PersistentVolume> }[];
  readonly provision: readonly Readonly<PersistentVolumeClaim>[];
}

const NO_VOLUME = "node(s) didn't find available persistent volumes to bind";
const OTHER_NODE = "node(s) didn't match PersistentVolume's node affinity";
const NO_SPACE = "node(s) did not have enough free storage";
const VOLUME_GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";

/** What to do so that the pod has its volumes on `node`, or why that cannot be. */
export function planVolumes({ bound, waiting, choiceOf }: PodVolumes, node: Readonly<Node>, storage: Storage): VolumePlan | { readonly reasons: readonly string[] } {
  const reasons: string[] = [];
  for (const { spec } of bound) {
    const volume = storage.volume(spec.volumeName ?? "");
    const reason = !volume ? VOLUME_GONE : reaches(volume, node) ? undefined : OTHER_NODE;
    if (reason) {
      reasons.push(reason);
      break;
    }
  }
  const bind: { claim: Readonly<PersistentVolumeClaim>; volume: Readonly<PersistentVolume> }[] = [];
  const provision: Readonly<PersistentVolumeClaim>[] = [];
  const taken = new Set<string>();
  for (const claim of waiting) {
    const selected = annotationsOf(claim)[SELECTED_NODE];
    if (selected !== undefined && selected !== node.metadata.name) return { reasons: [...reasons, NO_VOLUME] };
    if (selected !== undefined) provision.push(claim);
  }
  const open = waiting.filter((claim) => !provision.includes(claim)).toSorted((a, b) => compareQuantities(sizeOf(a), sizeOf(b)));
  for (const claim of open) {
    const volume = choiceOf(claim)(node, taken);
    if (volume) {
      taken.add(volume.metadata.name);
      bind.push({ claim, volume });
    } else provision.push(claim);
  }
  for (const claim of provision) {
    const problem = whyNotProvisioned(claim, node, storage);
    if (problem) return { reasons: [...reasons, problem] };
  }
  return reasons.length > 0 ? { reasons } : { bind, provision };
}

function whyNotProvisioned(claim: Readonly<PersistentVolumeClaim>, node: Readonly<Node>, storage: Storage): string | undefined {
  const found = storage.storageClass(classOf(claim));
  if (!found || !found.provisioner || found.provisioner === NO_PROVISIONER) return NO_VOLUME;
  const labels = labelsOf(node);
  const topologies = found.allowedTopologies ?? [];
  const allowed = topologies.length === 0 || topologies.some(({ matchLabelExpressions }) => (matchLabelExpressions ?? []).length > 0
    && matchLabelExpressions!.every(({ key, values }) => labels[key] !== undefined && values.includes(labels[key]!)));
  if (!allowed) return NO_VOLUME;
  return roomFor(claim, node, storage) === "none" ? NO_SPACE : undefined;
}

/** Where a claim can be provisioned for the node; undefined: its driver does not tell what room it has. */
export function roomFor(claim: Readonly<PersistentVolumeClaim>, node: Readonly<Node>, storage: Storage): Readonly<CSIStorageCapacity> | "none" | undefined {
  const found = storage.storageClass(classOf(claim));
  const size = claim.spec.resources?.requests?.["storage"];
  if (!found || size === undefined || !storage.csiDriver(found.provisioner)?.spec.storageCapacity) return undefined;
  for (const capacity of storage.capacities()) if (capacity.storageClassName === found.metadata.name && holds(capacity, size) && reachesCapacity(capacity, node)) return capacity;
  return "none";
}

function holds({ maximumVolumeSize, capacity }: Readonly<CSIStorageCapacity>, size: string): boolean {
  const most = maximumVolumeSize ?? capacity;
  return most != null && compareQuantities(most, size) >= 0;
}

function reachesCapacity({ nodeTopology }: Readonly<CSIStorageCapacity>, node: Readonly<Node>): boolean {
  return nodeTopology != null && labelSelector(nodeTopology).matches(labelsOf(node));
}
