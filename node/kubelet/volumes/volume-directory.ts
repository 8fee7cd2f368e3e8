/** The directory a volume is: made with its rights, and given to the pod's group. */
import { chmod, mkdir, stat } from "node:fs/promises";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import { setVolumeOwnership } from "./atomic-writer.ts";
import { type Told, tellingProgress } from "./ownership-progress.ts";

/** Hands a new volume to the pod's fsGroup. `told`: of one that may hold much. */
export async function giveToGroup(pod: Pod, path: string, { readOnly, told }: { readonly readOnly: boolean; readonly told?: Told | undefined }): Promise<void> {
  const { fsGroup, fsGroupChangePolicy } = pod.spec.securityContext ?? {};
  if (fsGroup === undefined) return;
  const give = (count?: () => void): Promise<void> => setVolumeOwnership(path, { gid: fsGroup, readOnly, onlyIfRootDiffers: fsGroupChangePolicy === "OnRootMismatch", count });
  await (told ? tellingProgress(told, pod, path, give) : give());
}

/** A directory with exactly these rights, whatever the umask. A sticky bit stays: memory comes with one. */
export async function makeDirectory(path: string, rights: number): Promise<void> {
  await mkdir(path, { recursive: true });
  const { mode } = await stat(path);
  if ((mode & 0o777) !== rights) await chmod(path, rights);
}
