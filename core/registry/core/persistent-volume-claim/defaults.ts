/** What the API fills in for claims and templates of claims. Source: kubernetes v1.36 pkg/apis/core/v1/defaults.go */
import type { PersistentVolumeClaim, PersistentVolumeClaimSpec } from "../../../api/gen/core.v1.ts";
import { roundResourceList } from "../checks/resources.ts";

export function defaultClaim(claim: PersistentVolumeClaim): void {
  claim.status ??= {};
  claim.status.phase ||= "Pending";
  roundResourceList(claim.status.capacity);
  roundResourceList(claim.status.allocatedResources);
  defaultClaimSpec((claim.spec ??= {}));
}

export function defaultClaimSpec(spec: PersistentVolumeClaimSpec): void {
  spec.volumeMode ??= "Filesystem";
  roundResourceList(spec.resources?.limits);
  roundResourceList(spec.resources?.requests);
}
