/**
 * Volumes whose files are on another machine. One that does not answer is asked by a program of its own, which can be ended: the kernel lets whoever asks wait for
 * good, and with this process the whole node would.
 */
import type { Container, EphemeralContainer } from "../../../core/api/gen/core.v1.ts";
import { type Exec, ExecError } from "../../os/exec.ts";
import { mountOf, type MountPoint } from "../../os/mount-table.ts";
import type { FileSystemUsage } from "../stats/disk-usage.ts";
import type { ReadyVolume } from "./ready-volume.ts";

const ANSWER_MS = 10_000;

/** File systems of which another machine answers, or a program that may be asking one. */
const ELSEWHERE = /^(nfs4?|cifs|smb3|ceph|9p|afs|lustre|glusterfs|fuse(\..+)?)$/;

interface Call { readonly signal: AbortSignal; readonly timeoutMs?: number }

/** Whether a place of this machine is on another one. A link in the path is not followed: its end would have to be asked for. */
export function isElsewhere(table: readonly MountPoint[], path: string): boolean { return ELSEWHERE.test(mountOf(table, path)?.fsType ?? ""); }

/** Whether somebody says what is there, or that nothing is. */
export async function doesAnswer(exec: Exec, path: string, { signal, timeoutMs = ANSWER_MS }: Call): Promise<boolean> {
  try {
    await exec("stat", [path], { timeoutMs, signal });
    return true;
  } catch (error) {
    signal.throwIfAborted();
    return error instanceof ExecError && error.code === "not-found"; // Windows, where nothing is bound
  }
}

/** Before places in them are bound. Throws an Error for the user. */
export async function subPathsAnswer(exec: Exec, { volumeMounts = [], name: container }: Container | EphemeralContainer, volumes: ReadonlyMap<string, ReadyVolume>, call: Call): Promise<void> {
  const asked = new Set(volumeMounts.filter(({ subPath, subPathExpr }) => subPath || subPathExpr).map(({ name }) => name));
  for (const name of asked) {
    const { isRemote = false, hostPath } = volumes.get(name) ?? {};
    if (!isRemote || hostPath === undefined || (await doesAnswer(exec, hostPath, call))) continue;
    throw new Error(`failed to prepare subPath for volumeMount "${name}" of container "${container}": the volume does not answer`);
  }
}

/** How full its file system is. Throws an Error, also where nobody answers in time. */
export async function remoteUsage(exec: Exec, path: string, { signal, timeoutMs = ANSWER_MS }: Call): Promise<FileSystemUsage> {
  const { exitCode, stdout, stderr } = await exec("stat", ["-f", "-c", "%S %b %f %a %c %d", path], { timeoutMs, signal });
  if (exitCode !== 0) throw new Error(`how full ${path} is cannot be found out: ${stderr.trim()}`);
  const [blockBytes = 0, blocks = 0, free = 0, available = 0, inodes = 0, inodesFree = 0] = stdout.trim().split(" ").map(Number);
  return { capacityBytes: blocks * blockBytes, availableBytes: available * blockBytes, usedBytes: (blocks - free) * blockBytes, inodes, inodesFree };
}
