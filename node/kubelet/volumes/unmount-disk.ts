/**
 * The end of a file system on a disk, which may be a long way off, or broken: what is not written yet is written first, and whoever unmounts waits for that. A program does it: with this
 * process the whole node would wait.
 */
import { until } from "../../../core/lifecycle/until.ts";
import { type Exec, ExecError } from "../../os/exec.ts";
import type { Mounts } from "../../os/mount.ts";

/** As long as it takes: who takes the disk away before loses what was to be written. */
const UNMOUNT_MS = 24 * 3_600_000;
/** So long a disk is waited for by those who have others to see to. */
const PATIENCE_MS = 10_000;

/** Throws an Error when it is in use. Not mounted is fine. */
export async function unmountDisk({ mounts, exec }: { readonly mounts: Pick<Mounts, "isMountPoint" | "unmount">; readonly exec: Exec }, directory: string): Promise<void> {
  if (!mounts.isMountPoint(directory)) return;
  try {
    const { exitCode, stderr } = await exec("umount", [directory], { timeoutMs: UNMOUNT_MS });
    if (exitCode !== 0) throw new Error(`unmount failed: exit status ${exitCode}: ${stderr}`);
  } catch (error) {
    if (!(error instanceof ExecError && error.code === "not-found")) throw error;
    mounts.unmount(directory); // a machine without that program
  }
}

/** What `work` on disks answers; undefined: one of them does not, and the work goes on beside whoever has waited. */
export async function patiently<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  await until(AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)]), (done) => void work.then(done, done));
  return await Promise.race([work, Promise.resolve(undefined)]);
}
