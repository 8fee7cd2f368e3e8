/**
 * Which volume a claim gets: what a volume must have, and which of several is the best.
 *
 * Source: kubernetes v1.36 component-helpers/storage/volume/pv_helpers.go, pkg/controller/volume/persistentvolume/{index,pv_controller}.go
 */
import type { Node, PersistentVolume, PersistentVolumeClaim } from "../../api/gen/core.v1.ts";
import { labelSelector } from "../../api/meta/label-selector.ts";
import { annotationsOf, isDeleting, namespaceOf } from "../../api/meta/object-meta.ts";
import { compareQuantity, parseQuantity, type Quantity } from "../../api/meta/quantity.ts";
import { fitsNode } from "../node-fit.ts";

const CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class";

type Volume = Readonly<PersistentVolume>;
type Claim = Readonly<PersistentVolumeClaim>;

/** "" for none. */
export function classOfClaim(claim: Claim): string { return annotationsOf(claim)[CLASS_ANNOTATION] ?? claim.spec.storageClassName ?? ""; }
export function classOfVolume(volume: Volume): string { return annotationsOf(volume)[CLASS_ANNOTATION] ?? volume.spec.storageClassName ?? ""; }
/** Whether it says anything of a class, if only that it wants none. */
export function saysClass(claim: Claim): boolean { return annotationsOf(claim)[CLASS_ANNOTATION] !== undefined || claim.spec.storageClassName != null; }

/** The volume names this claim, whether by the binder's hand or its maker's. */
export function isBoundTo(volume: Volume, claim: Claim): boolean {
  const { claimRef } = volume.spec;
  return claimRef !== undefined && claimRef.name === claim.metadata.name && claimRef.namespace === namespaceOf(claim) && (!claimRef.uid || claimRef.uid === claim.metadata.uid);
}

/** Why a volume that the claim asks for by name cannot be its; undefined: it can. */
export function whyUnfit(volume: Volume, claim: Claim): string | undefined {
  if (isDeleting(volume)) return `the volume is marked for deletion "${volume.metadata.name}"`;
  if (compareQuantity(sizeOf(volume.spec.capacity), requested(claim)) < 0) return "requested PV is too small";
  if (classOfVolume(volume) !== classOfClaim(claim)) return "storageClassName does not match";
  if ((volume.spec.volumeAttributesClassName ?? "") !== (claim.spec.volumeAttributesClassName ?? "")) return "volumeAttributesClassName does not match";
  if (modesDiffer(volume, claim)) return "incompatible volumeMode";
  return hasAccessModes(volume, claim) ? undefined : "incompatible accessMode";
}

/**
 * The volume that names the claim, else the smallest that is large enough, of those with the fewest access modes beyond what is asked.
 * `delayed`: only what names the claim, the rest is for the scheduler. `node`: must be usable there.
 */
export function bestMatch(claim: Claim, volumes: Iterable<Volume>, { delayed, node }: { readonly delayed: boolean; readonly node?: Readonly<Node> | undefined }): Volume | undefined {
  const wanted = requested(claim);
  const selector = claim.spec.selector === undefined ? undefined : labelSelector(claim.spec.selector);
  const usable = [...volumes].filter((volume) => hasAccessModes(volume, claim) && (volume.spec.claimRef === undefined || isBoundTo(volume, claim))
    && compareQuantity(sizeOf(volume.spec.capacity), wanted) >= 0 && !modesDiffer(volume, claim) && !isDeleting(volume)
    && (volume.spec.volumeAttributesClassName ?? "") === (claim.spec.volumeAttributesClassName ?? ""));
  const named = usable.filter((volume) => isBoundTo(volume, claim)).toSorted(byModesThenSize)[0];
  if (named !== undefined) return node === undefined || isUsableOn(named, node) ? named : undefined;
  if (delayed && node === undefined) return undefined;
  return usable
    .filter((volume) => volume.status?.phase === "Available" && classOfVolume(volume) === classOfClaim(claim) && (selector?.matches(volume.metadata.labels) ?? true) && (node === undefined || isUsableOn(volume, node)))
    .toSorted(byModesThenSize)[0];
}

function isUsableOn(volume: Volume, node: Readonly<Node>): boolean {
  const required = volume.spec.nodeAffinity?.required;
  return required === undefined || fitsNode({ containers: [], affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } } }, node);
}

export function modesDiffer(volume: Volume, claim: Claim): boolean { return (volume.spec.volumeMode ?? "Filesystem") !== (claim.spec.volumeMode ?? "Filesystem"); }

function hasAccessModes(volume: Volume, claim: Claim): boolean {
  return (claim.spec.accessModes ?? []).every((mode) => volume.spec.accessModes?.includes(mode));
}

function byModesThenSize(a: Volume, b: Volume): number {
  return (a.spec.accessModes?.length ?? 0) - (b.spec.accessModes?.length ?? 0) || compareQuantity(sizeOf(a.spec.capacity), sizeOf(b.spec.capacity)) || (a.metadata.name < b.metadata.name ? -1 : 1);
}

function requested(claim: Claim): Quantity { return sizeOf(claim.spec.resources?.requests); }

function sizeOf(list: Readonly<Record<string, unknown>> | undefined): Quantity { return parseQuantity(String(list?.["storage"] ?? "0")); }
