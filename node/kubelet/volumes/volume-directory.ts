/** The directory a volume is: made with its rights, and given to the pod's group. */
import { chmod, mkdir } from "node:fs/promises";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import { setVolumeOwnership } from "./atomic-writer.ts";

/** Hands a new volume to the pod's fsGroup. */
export async function giveToGroup(pod: Pod, path: string, { readOnly }: { readonly readOnly: boolean }): Promise<void> {
  const { fsGroup, fsGroupChangePolicy } = pod.spec.securityContext ?? {};
  if (fsGroup !== undefined) await setVolumeOwnership(path, { gid: fsGroup, readOnly, onlyIfRootDiffers: fsGroupChangePolicy === "OnRootMismatch" });
}

/** A directory with exactly these rights, whatever the umask. */
export async function makeDirectory(path: string, mode: number): Promise<void> {
  await mkdir(path, { recursive: true });
  await chmod(path, mode);
}
