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

/** A claim that is being deleted keeps this until its last pod is gone: that has it also after a restart. */
const IN_USE = "kubernetes.io/pvc-protection";

export interface BoundVolume { readonly claim: Readonly<PersistentVolumeClaim>; readonly volume: Readonly<PersistentVolume>; readonly readOnly: boolean; readonly block: boolean }

/** As who made the volume wants it mounted, each once. Source: kubernetes v1.36 pkg/volume/util/util.go MountOptionFromSpec */
export function mountOptionsOf({ metadata, spec }: Readonly<PersistentVolume>): string[] {
  const old = metadata.annotations?.["volume.beta.kubernetes.io/mount-options"];
  return [...new Set((old?.split(",") ?? spec.mountOptions ?? []).filter((option) => option !== ""))].toSorted();
}

/** Throws UnusableVolume when the claim is not ready to be used by this pod. */
export async function boundVolume({ client, signal }: { readonly client: Client; readonly signal: AbortSignal }, pod: Pod, volume: Volume): Promise<BoundVolume> {
  const namespace = pod.metadata.namespace ?? "";
  const name = volume.persistentVolumeClaim?.claimName ?? `${pod.metadata.name}-${volume.name}`;
  const where = `${namespace}/${name}`;
  const unusable = (problem: string, options?: ErrorOptions): UnusableVolume => new UnusableVolume(volume.name, `error processing PVC ${where}: ${problem}`, options);
  const claim = await client.resource(PERSISTENT_VOLUME_CLAIMS).get({ metadata: { namespace, name } }, { signal }).catch((cause: Error) => {
    throw unusable(`failed to fetch PVC from API server: ${cause.message}`, { cause });
  });
  if (isDeleting(claim) && !claim.metadata.finalizers?.includes(IN_USE)) throw unusable("PVC is being deleted");
  if (claim.status?.phase !== "Bound") throw unusable("PVC is not bound");
  const { volumeName, volumeMode } = claim.spec;
  if (!volumeName) throw unusable("PVC has empty pvc.Spec.VolumeName");
  if (volume.ephemeral && !ownedBy(claim, pod)) throw new UnusableVolume(volume.name, `PVC ${where} was not created for pod ${namespace}/${pod.metadata.name} (pod is not owner)`);
  const found = await client.resource(PERSISTENT_VOLUMES).get({ metadata: { name: volumeName } }, { signal }).catch((cause: Error) => {
    throw unusable(`failed to fetch PV ${volumeName} from API server: ${cause.message}`, { cause });
  });
  const { claimRef } = found.spec;
  if (!claimRef) throw unusable(`found PV object ${volumeName} but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim`);
  if (claimRef.uid !== claim.metadata.uid) throw unusable(`found PV object ${volumeName} but its pv.Spec.ClaimRef.UID ${claimRef.uid ?? ""} does not point to claim.UID ${claim.metadata.uid}`);
  return { claim, volume: found, readOnly: volume.persistentVolumeClaim?.readOnly ?? false, block: volumeMode === "Block" };
}

function ownedBy(claim: PersistentVolumeClaim, pod: Pod): boolean {
  return claim.metadata.ownerReferences?.some(({ uid, controller }) => controller === true && uid === pod.metadata.uid) ?? false;
}
