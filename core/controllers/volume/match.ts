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
  let named: Volume | undefined, best: Volume | undefined;
  for (const volume of volumes) {
    if (!isUsable(volume, claim)) continue;
    if (isBoundTo(volume, claim)) named = better(named, volume);
    else if ((!delayed || node !== undefined) && isOffered(volume, claim) && (node === undefined || isUsableOn(volume, node))) best = better(best, volume);
  }
  if (named === undefined) return best;
  return node === undefined || isUsableOn(named, node) ? named : undefined;
}

/** A volume that nobody has, and that this claim might have. One with a selector that cannot be read says so itself. */
export function mayHave(claim: Claim, volume: Volume): boolean {
  try {
    return isOffered(volume, claim) && isUsable(volume, claim);
  } catch {
    return true;
  }
}

function isUsable(volume: Volume, claim: Claim): boolean {
  return (volume.spec.claimRef === undefined || isBoundTo(volume, claim)) && hasAccessModes(volume, claim) && compareQuantity(sizeOf(volume.spec.capacity), requested(claim)) >= 0
    && !modesDiffer(volume, claim) && !isDeleting(volume) && (volume.spec.volumeAttributesClassName ?? "") === (claim.spec.volumeAttributesClassName ?? "");
}

function isOffered(volume: Volume, claim: Claim): boolean {
  return volume.status?.phase === "Available" && classOfVolume(volume) === classOfClaim(claim) && (claim.spec.selector === undefined || labelSelector(claim.spec.selector).matches(volume.metadata.labels));
}

function better(a: Volume | undefined, b: Volume): Volume { return a === undefined || byModesThenSize(b, a) < 0 ? b : a; }

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

/** Of lists that stay as they are, as those of stored objects: each claim is held against all volumes that are free. */
const sizes = new WeakMap<Readonly<Record<string, unknown>>, Quantity>();

function sizeOf(list: Readonly<Record<string, unknown>> = {}): Quantity {
  const before = sizes.get(list);
  if (before) return before;
  const size = parseQuantity(String(list["storage"] ?? "0"));
  if (Object.isFrozen(list)) sizes.set(list, size);
  return size;
}
