/**
 * The pods of a StatefulSet and their claims: name, identity and storage follow from the ordinal.
 *
 * Source: kubernetes v1.36 pkg/controller/statefulset/stateful_set_utils.go
 */
import type { StatefulSet } from "../../api/gen/apps.v1.ts";
import type { PersistentVolumeClaim, Pod, PodTemplateSpec, Volume } from "../../api/gen/core.v1.ts";
import { controllerRef, type NewObject, namespaceOf, type OwnerReference } from "../../api/meta/object-meta.ts";
import { type NewPod, podFromTemplate } from "../pod-control.ts";

const POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name";
const INDEX_LABEL = "apps.kubernetes.io/pod-index";
const REVISION_LABEL = "controller-revision-hash"; // of pods: the name of their revision
export const REVISION_HASH_LABEL = "controller.kubernetes.io/hash"; // of revisions

type Set = Readonly<StatefulSet>;
type P = Readonly<Pod>;

export function replicasOf({ spec }: Set): number { return spec.replicas ?? 1; }
export function firstOrdinal({ spec }: Set): number { return spec.ordinals?.start ?? 0; }

/** -1 for a name without one. */
export function ordinalOf({ metadata: { name } }: P): number {
  const match = /^.*-(\d{1,10})$/.exec(name);
  return match === null ? -1 : Number(match[1]);
}

/** By its name: "web-3" is one of "web". */
export function isMember(set: Set, pod: P): boolean { return ordinalOf(pod) >= 0 && pod.metadata.name.replace(/-\d+$/, "") === set.metadata.name; }

export function isWanted(set: Set, pod: P): boolean {
  const index = ordinalOf(pod) - firstOrdinal(set);
  return index >= 0 && index < replicasOf(set);
}

export function revisionOf({ metadata }: P): string { return metadata.labels?.[REVISION_LABEL] ?? ""; }

function claimName(set: Set, template: Readonly<PersistentVolumeClaim>, ordinal: number): string { return `${template.metadata.name}-${set.metadata.name}-${ordinal}`; }

export function claimsFor(set: Set, ordinal: number): NewObject<PersistentVolumeClaim>[] {
  return (set.spec.volumeClaimTemplates ?? []).map((template) => ({
    apiVersion: "v1", kind: "PersistentVolumeClaim", spec: template.spec,
    metadata: {
      name: claimName(set, template, ordinal), namespace: namespaceOf(set), labels: { ...template.metadata.labels, ...set.spec.selector?.matchLabels },
      ...(template.metadata.annotations === undefined ? {} : { annotations: { ...template.metadata.annotations } }),
      ...(template.metadata.finalizers === undefined ? {} : { finalizers: [...template.metadata.finalizers] }),
    },
  }));
}

function volumesFor(set: Set, ordinal: number, volumes: readonly Volume[] = []): Volume[] {
  const own = (set.spec.volumeClaimTemplates ?? []).map((template): Volume => ({ name: template.metadata.name, persistentVolumeClaim: { claimName: claimName(set, template, ordinal) } }));
  const names = new Set(own.map(({ name }) => name));
  return [...own, ...volumes.filter(({ name }) => !names.has(name))];
}

export function statefulPod(set: Set, template: Readonly<PodTemplateSpec>, { ordinal, revision }: { readonly ordinal: number; readonly revision: string }): NewPod {
  const { metadata, ...pod } = podFromTemplate(template, set);
  const name = `${set.metadata.name}-${ordinal}`;
  return {
    ...pod,
    metadata: { ...metadata, name, labels: { ...metadata.labels, [POD_NAME_LABEL]: name, [INDEX_LABEL]: String(ordinal), [REVISION_LABEL]: revision } },
    spec: { ...pod.spec, hostname: name, volumes: volumesFor(set, ordinal, pod.spec.volumes), ...(set.spec.serviceName ? { subdomain: set.spec.serviceName } : {}) },
  };
}

/** The pod as it should be, if its identity or storage is not; undefined if all is well. */
export function repaired(set: Set, pod: P): Pod | undefined {
  const ordinal = ordinalOf(pod);
  const labels = { ...pod.metadata.labels, [POD_NAME_LABEL]: pod.metadata.name, [INDEX_LABEL]: String(ordinal) };
  const claimed = new Map((pod.spec.volumes ?? []).map(({ name, persistentVolumeClaim }) => [name, persistentVolumeClaim?.claimName]));
  const storageFits = (set.spec.volumeClaimTemplates ?? []).every((template) => claimed.get(template.metadata.name) === claimName(set, template, ordinal));
  if (pod.metadata.labels?.[POD_NAME_LABEL] === pod.metadata.name && storageFits) return undefined;
  return { ...pod, metadata: { ...pod.metadata, labels }, spec: { ...pod.spec, volumes: volumesFor(set, ordinal, pod.spec.volumes) } };
}

type Claim = Readonly<PersistentVolumeClaim>;

function names({ apiVersion, kind, name }: Readonly<OwnerReference>, object: { readonly apiVersion: string; readonly kind: string; readonly metadata: { readonly name: string } }): boolean {
  return apiVersion === object.apiVersion && kind === object.kind && name === object.metadata.name;
}

/** It belongs to a predecessor of the same name, which is gone: the garbage collector is about to take it. */
export function hasStaleOwner(claim: Claim, owner: Set | P): boolean {
  const found = claim.metadata.ownerReferences?.find((reference) => names(reference, owner));
  return found !== undefined && found.uid !== owner.metadata.uid;
}

/** Somebody else's is the claim, who would be two with us: the retention policy does not hold of it. */
export function hasForeignController(claim: Claim, set: Set, pod: P): boolean {
  const { whenScaled = "Retain", whenDeleted = "Retain" } = set.spec.persistentVolumeClaimRetentionPolicy ?? {};
  if (whenScaled === "Retain" && whenDeleted === "Retain") return false;
  return (claim.metadata.ownerReferences ?? []).some((reference) => {
    const ours = [set, pod].find((one) => names(reference, one));
    return ours === undefined ? reference.controller === true : reference.uid !== ours.metadata.uid;
  });
}

/** The owners a claim should have so that it goes when the retention policy says so. Undefined: it has them, or is not ours to touch. */
export function claimOwners(claim: Claim, set: Set, pod: P): readonly OwnerReference[] | undefined {
  if (hasStaleOwner(claim, set) || hasStaleOwner(claim, pod)) return undefined;
  const { whenScaled = "Retain", whenDeleted = "Retain" } = set.spec.persistentVolumeClaimRetentionPolicy ?? {};
  const before = claim.metadata.ownerReferences ?? [];
  const ours = before.filter(({ uid }) => uid === set.metadata.uid || uid === pod.metadata.uid);
  const others = before.filter((reference) => !names(reference, set) && !names(reference, pod));
  if (hasForeignController(claim, set, pod)) return ours.length === 0 ? undefined : others;
  const scaledDown = !isWanted(set, pod);
  const wanted: OwnerReference[] = [];
  if (whenScaled === "Delete" && scaledDown) wanted.push(controllerRef({ ...pod, apiVersion: "v1", kind: "Pod" }));
  else if (whenDeleted === "Delete") wanted.push(controllerRef({ ...set, apiVersion: "apps/v1", kind: "StatefulSet" }));
  const same = ours.length === wanted.length && wanted.every(({ uid }) => ours.some((reference) => reference.uid === uid && reference.controller === true));
  return same ? undefined : [...others, ...wanted];
}
