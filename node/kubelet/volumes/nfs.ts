/**
 * Volumes of NFS servers, mounted and unmounted by the host's programs: mount needs its helper (mount.nfs), and whoever unmounts waits for a server that may be
 * gone, which this process must not. What the user has written goes to mount as the source and as nothing else.
 *
 * Source: kubernetes v1.36 pkg/volume/nfs/nfs.go, staging/src/k8s.io/mount-utils/mount_linux.go
 */
import type { NFSVolumeSource } from "../../../core/api/gen/core.v1.ts";
import type { Exec } from "../../os/exec.ts";
import { mountsUnder } from "../../os/mount-table.ts";
import type { Mounts } from "../../os/mount.ts";
import { makeDirectory } from "./volume-directory.ts";

interface Deps { readonly mounts: Mounts; readonly exec: Exec }

const MOUNT_MS = 120_000;
const UNMOUNT_MS = 60_000;

/** Throws an Error for the user. */
export async function mountNfs({ mounts, exec }: Deps, { server, path }: NFSVolumeSource, directory: string, { readOnly, options }: { readonly readOnly: boolean; readonly options: readonly string[] }, signal: AbortSignal): Promise<void> {
  if (mounts.isMountPoint(directory)) return;
  if (server.startsWith("-")) throw new Error(`mount failed: "${server}" is no server's name`); // for mount.nfs, which is given no "--"
  await makeDirectory(directory, 0o750);
  const source = `${server.includes(":") && !server.startsWith("[") ? `[${server}]` : server}:${path}`;
  const all = [...(readOnly ? ["ro"] : []), ...options];
  const args = ["-t", "nfs", ...(all.length > 0 ? ["-o", all.join(",")] : []), "--", source, directory];
  const { exitCode, stdout, stderr } = await exec("mount", args, { timeoutMs: MOUNT_MS, signal });
  if (exitCode !== 0) throw new Error(`mount failed: exit status ${exitCode}\nMounting command: mount\nMounting arguments: ${args.join(" ")}\nOutput: ${stdout}${stderr}`);
}

/** All below `directory`; by force where the server does not answer. Throws an Error when that is not enough. */
export async function unmountNfs({ mounts, exec }: Deps, directory: string, signal: AbortSignal): Promise<void> {
  for (const { target } of mountsUnder(mounts.list(), directory).filter(({ fsType }) => fsType === "nfs" || fsType === "nfs4")) {
    const ended = await exec("umount", [target], { timeoutMs: UNMOUNT_MS, signal }).catch(() => undefined);
    if (ended?.exitCode === 0) continue;
    const { exitCode, stderr } = await exec("umount", ["-f", target], { timeoutMs: UNMOUNT_MS, signal });
    if (exitCode !== 0) throw new Error(`unmount failed: exit status ${exitCode}: ${stderr}`);
  }
}
