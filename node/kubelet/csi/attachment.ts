/** Whether the control plane has attached a volume to this node, as its VolumeAttachment says. Source: kubernetes v1.36 pkg/volume/csi/csi_attacher.go */
import type { CSIDriver } from "../../../core/api/gen/storage.v1.ts";
import { isNotFound } from "../../../core/api/meta/status-error.ts";
import { VOLUME_ATTACHMENTS } from "../../../core/client/resources.ts";
import { AttachLimitReached, MountFailure, VolumePending } from "../volumes/mount-failure.ts";
import { attachmentName, type CsiVolume } from "./csi-volume.ts";
import type { CsiVolumesDeps } from "./csi-volumes-deps.ts";

/** What the driver's controller said of it, for its node part. Throws VolumePending, AttachLimitReached, MountFailure. */
export type Attached = (volume: CsiVolume, driver: Readonly<CSIDriver> | undefined, signal: AbortSignal) => Promise<Record<string, string>>;

/** As gRPC numbers it. */
const RESOURCE_EXHAUSTED = 8;

export function attachments({ client, nodeName, drivers, log }: Pick<CsiVolumesDeps, "client" | "nodeName" | "drivers" | "log">): Attached {
  const exhausted = new Set<string>(); // those the node has no room for; the cluster knows

  /** A driver that has no room has told the cluster another number of volumes than it can take: it is asked again, once. */
  async function refused(name: string, volume: CsiVolume, problem: string, signal: AbortSignal): Promise<never> {
    if (!exhausted.has(name)) await drivers.refresh(volume.driver, signal).catch((error: unknown) => log.warn("a CSI driver did not say how many volumes the node takes", { driver: volume.driver, error }));
    exhausted.add(name);
    throw new AttachLimitReached(`volume ${volume.handle} is not attached to node ${nodeName}: ${problem}`);
  }

  return async (volume, driver, signal) => {
    const name = attachmentName(volume, nodeName);
    const { metadata, status } = await client.resource(VOLUME_ATTACHMENTS).get({ metadata: { name } }, { signal }).catch((error: unknown) => {
      if (isNotFound(error)) throw new VolumePending(`volume ${volume.handle} is not attached to node ${nodeName} yet: there is no VolumeAttachment ${name}`);
      throw error;
    });
    if (metadata.deletionTimestamp) throw new VolumePending(`volume attachment is being deleted: ${name}`);
    if (status?.attached) {
      exhausted.delete(name);
      return { ...status.attachmentMetadata };
    }
    const { message: problem, errorCode } = status?.attachError ?? {};
    if (errorCode === RESOURCE_EXHAUSTED && driver?.spec.nodeAllocatableUpdatePeriodSeconds !== undefined) return await refused(name, volume, problem ?? "", signal);
    if (problem) throw new MountFailure(volume.block ? "MapVolume.WaitForAttach" : "MountVolume.WaitForAttach", volume.specName, new Error(problem));
    throw new VolumePending(`volume ${volume.handle} is not attached to node ${nodeName} yet`);
  };
}
