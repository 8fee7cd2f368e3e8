/**
 * What a persistentVolumeClaim (or a claim made for an ephemeral volume) stands for on this node.
 *
 * Source: kubernetes v1.36 pkg/kubelet/volumemanager/populator/desired_state_of_world_populator.go
 */
import type { PersistentVolume, PersistentVolumeClaim, Pod, Volume } from "../../../core/api/gen/core.v1.ts";
import { isDeleting } from "../../../core/api/meta/object-meta.ts";
import type { Client } from "../../../core/client/client.ts";
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from "../../../core/client/resources.ts";
import { UnusableVolume } from "./mount-failure.ts";

export interface BoundVolume { readonly claim: Readonly<PersistentVolumeClaim>; readonly volume: Readonly<PersistentVolume>; readonly readOnly: boolean; readonly block: boolean }

/** Throws UnusableVolume when the claim is not ready to be used by this pod. */
export async function boundVolume({ client, signal }: { readonly client: Client; readonly signal: AbortSignal }, pod: Pod, volume: Volume): Promise<BoundVolume> {
  const namespace = pod.metadata.namespace ?? "";
  const name = volume.persistentVolumeClaim?.claimName ?? `${pod.metadata.name}-${volume.name}`;
  const where = `${namespace}/${name}`;
  const claim = await client.resource(PERSISTENT_VOLUME_CLAIMS).get({ metadata: { namespace, name } }, { signal }).catch((cause: Error) => {
    throw new UnusableVolume(volume.name, `error processing PVC ${where}: failed to fetch PVC from API server: ${cause.message}`, { cause });
  });
  if (volume.ephemeral && !ownedBy(claim, pod)) throw new UnusableVolume(volume.name, `error processing PVC ${where}: PVC ${where} was not created for pod ${namespace}/${pod.metadata.name} (pod is not owner)`);
  if (isDeleting(claim)) throw new UnusableVolume(volume.name, `error processing PVC ${where}: PVC is being deleted`);
  const { volumeName, volumeMode } = claim.spec;
  if (claim.status?.phase !== "Bound" || !volumeName) throw new UnusableVolume(volume.name, `error processing PVC ${where}: PVC ${where} has non-bound phase "${claim.status?.phase ?? ""}" or empty pvc.Spec.VolumeName ("${volumeName ?? ""}")`);
  const found = await client.resource(PERSISTENT_VOLUMES).get({ metadata: { name: volumeName } }, { signal });
  const { claimRef } = found.spec;
  if (claimRef?.uid !== claim.metadata.uid) throw new UnusableVolume(volume.name, `error processing PVC ${where}: PV "${volumeName}" spec.claimRef.uid does not match pvc.UID "${claim.metadata.uid}"`);
  return { claim, volume: found, readOnly: volume.persistentVolumeClaim?.readOnly ?? false, block: volumeMode === "Block" };
}

function ownedBy(claim: PersistentVolumeClaim, pod: Pod): boolean {
  return claim.metadata.ownerReferences?.some(({ uid, controller }) => controller === true && uid === pod.metadata.uid) ?? false;
}
