/**
 * A claimed volume that has grown on the storage's side grows on the node: NodeExpandVolume, then the claim says so.
 *
 * Source: kubernetes v1.36 pkg/volume/util/operationexecutor/node_expander.go, pkg/volume/csi/expander.go
 */
import type { PersistentVolume, PersistentVolumeClaim, Pod } from "../../../core/api/gen/core.v1.ts";
import { compareQuantity, parseQuantity } from "../../../core/api/meta/quantity.ts";
import type { Client } from "../../../core/client/client.ts";
import type { EventRecorder } from "../../../core/client/events.ts";
import { PERSISTENT_VOLUME_CLAIMS } from "../../../core/client/resources.ts";
import type { Log } from "../../../core/observe/log.ts";
import { RpcError } from "../../cri/rpc-client.ts";
import type { VolumeCapability } from "../plugins/gen/csi.v1.ts";
import { podReference } from "../pod-spec.ts";
import { MountFailure } from "../volumes/mount-failure.ts";
import type { CsiVolume } from "./csi-volume.ts";
import type { CsiDriver } from "./drivers.ts";

interface Facts {
  readonly client: Client;
  readonly events: EventRecorder;
  readonly log: Log;
  readonly nodeName: string;
  readonly pod: Pod;
  readonly csi: CsiVolume;
  readonly claim: Readonly<PersistentVolumeClaim>;
  readonly volume: Readonly<PersistentVolume>;
  readonly driver: CsiDriver;
  readonly capability: VolumeCapability;
  readonly path: string;
  readonly stagingPath: string;
  readonly secrets: () => Promise<Record<string, string>>;
}

/** The size the node should bring the volume to; undefined: nothing to do. Pure. */
export function wantedSize({ status }: Readonly<PersistentVolumeClaim>, { spec }: Readonly<PersistentVolume>): string | undefined {
  const wanted = spec.capacity?.["storage"];
  const has = status?.capacity?.["storage"];
  if (wanted === undefined || has === undefined || status?.phase !== "Bound") return undefined;
  if (status.allocatedResourceStatuses?.["storage"] === "NodeResizeInfeasible") return undefined;
  return compareQuantity(parseQuantity(wanted), parseQuantity(has)) > 0 ? wanted : undefined;
}

export async function expandVolume(facts: Facts, signal: AbortSignal): Promise<void> {
  const { client, events, nodeName, pod, csi, claim, volume, driver } = facts;
  const size = wantedSize(claim, volume);
  if (size === undefined || csi.readOnly || volume.spec.accessModes?.every((mode) => mode === "ReadOnlyMany")) return;
  const claims = client.resource(PERSISTENT_VOLUME_CLAIMS);
  const bytes = parseQuantity(size).number();
  if (await driver.can("EXPAND_VOLUME", signal)) {
    try {
      await driver.call("Node/NodeExpandVolume", {
        volume_id: csi.handle, volume_path: facts.path, capacity_range: { required_bytes: bytes }, staging_target_path: facts.stagingPath, volume_capability: facts.capability, secrets: await facts.secrets(),
      }, { signal });
    } catch (cause) {
      const failure = new MountFailure("MountVolume.NodeExpandVolume", csi.specName, cause as Error);
      if (cause instanceof RpcError && cause.code === "FailedPrecondition") return facts.log.info("volume in use is not expanded", { volume: csi.specName, error: cause }); // it will be, when it is mounted the next time
      if (cause instanceof RpcError && ["InvalidArgument", "OutOfRange", "NotFound"].includes(cause.code) && claim.status?.allocatedResourceStatuses?.["storage"]) {
        await claims.patch(claim, "application/merge-patch+json", { status: { allocatedResourceStatuses: { storage: "NodeResizeInfeasible" } } }, { subresource: "status", signal });
      }
      events.event(podReference(pod), "Warning", "VolumeResizeFailed", failure.message);
      throw failure;
    }
    events.event(podReference(pod), "Normal", "FileSystemResizeSuccessful", `MountVolume.NodeExpandVolume succeeded for volume "${csi.specName}" ${nodeName}`);
  }
  const conditions = (claim.status?.conditions ?? []).filter(({ type }) => type !== "FileSystemResizePending" && type !== "Resizing");
  const allocated = claim.status?.allocatedResourceStatuses ? { allocatedResourceStatuses: { storage: null } } : {};
  await claims.patch(claim, "application/merge-patch+json", { status: { capacity: { ...claim.status?.capacity, storage: size }, conditions, ...allocated } }, { subresource: "status", signal });
}
