/** The directory a volume is: made with its rights, and given to the pod's group. */
import { access, chmod, mkdir, stat } from "node:fs/promises";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import type { Log } from "../../../core/observe/log.ts";
import { setVolumeOwnership } from "./atomic-writer.ts";
import { type Told, tellingProgress } from "./ownership-progress.ts";

/** Hands a new volume to the pod's fsGroup. `told`: of one that may hold much, or stand on a file system of any kind. */
export async function giveToGroup(pod: Pod, path: string, { readOnly, told }: { readonly readOnly: boolean; readonly told?: (Told & { readonly log: Pick<Log, "warn"> }) | undefined }): Promise<void> {
  const { fsGroup, fsGroupChangePolicy } = pod.spec.securityContext ?? {};
  if (fsGroup === undefined) return;
  let refusal: unknown;
  const onRefused = (error: unknown): void => { refusal ??= error; };
  const give = (count?: () => void): Promise<void> => setVolumeOwnership(path, { gid: fsGroup, readOnly, onlyIfRootDiffers: fsGroupChangePolicy === "OnRootMismatch", count, onRefused });
  await (told ? tellingProgress(told, pod, path, give) : give());
  if (refusal !== undefined) told?.log.warn("the file system of a volume does not give all of it to its pod's group", { pod: pod.metadata.name, namespace: pod.metadata.namespace, path, group: fsGroup, error: refusal });
}

/** A directory with exactly these rights, whatever the umask. A sticky bit stays: memory comes with one. */
export async function makeDirectory(path: string, rights: number): Promise<void> {
  await mkdir(path, { recursive: true });
  const { mode } = await stat(path);
  if ((mode & 0o777) !== rights) await chmod(path, rights);
}

/** Asked beside the event loop: with a disk that hangs, the node's DNS and its lease would wait as long. */
export async function isThere(path: string): Promise<boolean> {
  return await access(path).then(() => true, () => false);
}
