/**
 * Claims that ask for more than they have: all volumes that can grow are grown by their driver's resizer, and the claim is told that it waits for one.
 * The resizer and the kubelet write the claim's conditions and its new capacity.
 *
 * API:    https://kubernetes.io/docs/concepts/storage/persistent-volumes/#expanding-persistent-volumes-claims
 * Source: kubernetes v1.36 pkg/controller/volume/expand/expand_controller.go
 */
import type { PersistentVolume, PersistentVolumeClaim } from "../../api/gen/core.v1.ts";
import { keyOf, objectKey } from "../../api/meta/object-meta.ts";
import { compareQuantities } from "../../api/meta/quantity.ts";
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from "../../client/resources.ts";
import { type Controller, mapped } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";

/** Whether the claim is to become larger than it is. What a claim has is known once it is bound: the same write tells both. */
export function wantsMore(claim: Readonly<PersistentVolumeClaim>, volume: Readonly<PersistentVolume> | undefined): boolean {
  if (volume?.spec.claimRef?.uid !== claim.metadata.uid || claim.status?.phase !== "Bound") return false;
  return compareQuantities(sizeOf(claim), capacityOf(claim)) > 0;
}

/** It asks for more than before, or has more. */
function isLarger(claim: Readonly<PersistentVolumeClaim>, old: Readonly<PersistentVolumeClaim>): boolean {
  return compareQuantities(sizeOf(claim), sizeOf(old)) > 0 || compareQuantities(capacityOf(claim), capacityOf(old)) > 0;
}

function sizeOf({ spec }: Readonly<PersistentVolumeClaim>): string {
  return spec.resources?.requests?.["storage"] ?? "0";
}

function capacityOf({ status }: Readonly<PersistentVolumeClaim>): string {
  return status?.capacity?.["storage"] ?? "0";
}

export function volumeExpandController({ informers, events }: Pick<ControllerDeps, "informers" | "events">): Controller {
  const claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
  const volumes = informers.of(PERSISTENT_VOLUMES);
  const recorder = events.from({ component: "volume_expand" });
  return {
    name: "volume_expand",
    workers: 1,
    watches: [mapped(claims, ({ object, old, deleted }) => (!deleted && (old === undefined || isLarger(object, old)) ? [keyOf(object)] : []))],
    reads: [volumes],
    async reconcile(key) {
      const claim = claims.get(key);
      if (claim && wantsMore(claim, volumes.get(objectKey("", claim.spec.volumeName ?? "")))) recorder.event(claim, "Normal", "ExternalExpanding", "waiting for an external controller to expand this PVC");
    },
  };
}
