/** The directory a volume is: made with its rights, and given to the pod's group. */
import { chmod, mkdir, stat } from "node:fs/promises";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import { setVolumeOwnership } from "./atomic-writer.ts";

/** Hands a new volume to the pod's fsGroup. */
export async function giveToGroup(pod: Pod, path: string, { readOnly }: { readonly readOnly: boolean }): Promise<void> {
  const { fsGroup, fsGroupChangePolicy } = pod.spec.securityContext ?? {};
  if (fsGroup !== undefined) await setVolumeOwnership(path, { gid: fsGroup, readOnly, onlyIfRootDiffers: fsGroupChangePolicy === "OnRootMismatch" });
}

/** A directory with exactly these rights, whatever the umask. A sticky bit stays: memory comes with one. */
export async function makeDirectory(path: string, rights: number): Promise<void> {
  await mkdir(path, { recursive: true });
  const { mode } = await stat(path);
  if ((mode & 0o777) !== rights) await chmod(path, rights);
}
