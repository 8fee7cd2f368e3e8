/**
 * A CSI volume that has grown on the storage's side grows on the node: NodeExpandVolume.
 *
 * Source: kubernetes v1.36 pkg/volume/csi/{expander,csi_client,csi_util}.go
 */
import { RpcError } from "../../cri/rpc-client.ts";
import type { VolumeCapability } from "../plugins/gen/csi.v1.ts";
import { GrowFailure } from "../volumes/expand-claim.ts";
import type { CsiVolume } from "./csi-volume.ts";
import type { CsiDriver } from "./drivers.ts";

/** Codes after which the driver may still be at it. */
export const UNCERTAIN: ReadonlySet<string> = new Set(["Canceled", "DeadlineExceeded", "Unavailable", "ResourceExhausted", "Aborted"]);
const INFEASIBLE: ReadonlySet<string> = new Set(["InvalidArgument", "OutOfRange", "NotFound"]);

interface Facts {
  readonly driver: CsiDriver;
  readonly volume: CsiVolume;
  readonly capability: VolumeCapability;
  readonly path: string;
  readonly stagingPath: string;
  readonly secrets: () => Promise<Record<string, string>>;
}

/** False: the driver has nothing to do on nodes. Throws GrowFailure. */
export async function growCsiVolume({ driver, volume, capability, path, stagingPath, secrets }: Facts, bytes: number, signal: AbortSignal): Promise<boolean> {
  if (!(await driver.can("EXPAND_VOLUME", signal))) return false;
  const held = await secrets(); // what is wrong with them is no failure of the driver's
  try {
    await driver.call("Node/NodeExpandVolume", {
      volume_id: volume.handle, volume_path: path, capacity_range: { required_bytes: bytes }, staging_target_path: stagingPath, volume_capability: capability, secrets: held,
    }, { signal });
    return true;
  } catch (cause) {
    const { message } = cause as Error;
    if (cause instanceof RpcError && INFEASIBLE.has(cause.code)) throw new GrowFailure("infeasible", new Error(`Expander.NodeExpand failed to expand the volume ${message}`, { cause }));
    const failure = new Error(`Expander.NodeExpand failed to expand the volume : ${message}`, { cause });
    if (!(cause instanceof RpcError) || UNCERTAIN.has(cause.code)) throw failure;
    throw new GrowFailure(cause.code === "FailedPrecondition" ? "in-use" : "final", failure);
  }
}
