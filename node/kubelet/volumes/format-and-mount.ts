/**
 * The file system on a block device: made if there is none, repaired if it needs that, mounted, and grown when its device has grown.
 *
 * A device with anything on it, be it a partition table, is never formatted. blkid, fsck, mkfs, mount and what makes file systems larger are the host's.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/mount-utils/{mount,resizefs}_linux.go
 */
import { type Exec, ExecError } from "../../os/exec.ts";
import type { Mounts } from "../../os/mount.ts";
import { mountDevice } from "../../os/mount-device.ts";

export interface BlockFileSystem {
  readonly device: string;
  /** Empty: ext4. */
  readonly fsType: string;
  readonly options: readonly string[];
  readonly readOnly: boolean;
}

export interface BlockTools { readonly mounts: Pick<Mounts, "mount" | "unmount">; readonly exec: Exec }

/** It holds another file system than it was to be mounted as, and was not mounted: nothing but another volume, or another word of it, helps. */
export class FilesystemMismatch extends Error { override readonly name = "FilesystemMismatch"; }

const FS_TYPE_DEFAULT = "ext4";
const FORMAT_TIMEOUT_MS = 600_000; // large disks on slow buses
const BLKID_NOTHING_FOUND = 2;
const FSCK_NOT_CORRECTED = 4;
const FORMAT_ARGS: Readonly<Record<string, readonly string[]>> = { ext3: ["-F", "-m0"], ext4: ["-F", "-m0"], xfs: ["-f"] };

/** As mounted when nobody has said. */
export function fsTypeOf(fsType: string): string {
  return fsType || FS_TYPE_DEFAULT;
}

export async function formatAndMount({ mounts, exec }: BlockTools, { device, options, ...asked }: BlockFileSystem, target: string, signal: AbortSignal): Promise<void> {
  const readOnly = asked.readOnly || options.includes("ro");
  const run = runner(exec, signal);
  const fsType = fsTypeOf(asked.fsType);
  const format = await formatOf(run, device);
  if (format === undefined) {
    if (readOnly) throw new Error(`cannot mount unformatted disk ${device} as we are manipulating it in read-only mode`);
    const { exitCode, output } = await run(`mkfs.${fsType}`, [...(FORMAT_ARGS[fsType] ?? []), device]);
    if (exitCode !== 0) throw new Error(`format of disk "${device}" failed: type:("${fsType}") target:("${target}") options:(${JSON.stringify(options.join(","))}) errcode:(exit status ${exitCode}) output:(${output})`);
  } else if (!readOnly) await repair(run, device);
  try {
    await mountDevice({ mounts, exec }, { device, target, fsType, options: [...new Set([...options, ...(readOnly ? ["ro"] : [])])] }, { timeoutMs: FORMAT_TIMEOUT_MS, signal });
  } catch (cause) {
    throw format === undefined || format === fsType ? cause : new FilesystemMismatch((cause as Error).message, { cause });
  }
}

/** Makes the file system as large as its device. `target`: where it is mounted. */
export async function growFileSystem(exec: Exec, { device, target }: { readonly device: string; readonly target: string }, signal: AbortSignal): Promise<void> {
  const run = runner(exec, signal);
  const format = await formatOf(run, device);
  if (format === undefined) return; // it will fill the device when it is made
  const command = GROW[format]?.({ device, target });
  if (!command) throw new Error(`ResizeFS.Resize - resize of format ${format} is not supported for device ${device} mounted at ${target}`);
  const [program, ...args] = command;
  const { exitCode, output } = await run(program, args);
  if (exitCode !== 0) throw new Error(`resize of device ${args.at(-1)} failed: exit status ${exitCode}. ${program} output: ${output}`);
}

type Grow = (of: { readonly device: string; readonly target: string }) => readonly [string, ...string[]];
const resize2fs: Grow = ({ device }) => ["resize2fs", device];
const GROW: Readonly<Record<string, Grow>> = {
  ext3: resize2fs, ext4: resize2fs, xfs: ({ target }) => ["xfs_growfs", "-d", target], btrfs: ({ target }) => ["btrfs", "filesystem", "resize", "max", target],
};

type Run = (program: string, args: readonly string[]) => Promise<{ readonly exitCode: number; readonly output: string }>;

function runner(exec: Exec, signal: AbortSignal): Run {
  return async (program, args) => {
    const { exitCode, stdout, stderr } = await exec(program, args, { timeoutMs: FORMAT_TIMEOUT_MS, signal });
    return { exitCode, output: `${stdout}${stderr}` };
  };
}

/**
 * What is on the device, by blkid's name; "partitions" where there is a table of them; undefined: nothing at all. Of a partition with nothing on it util-linux's says that it is good, and no more; busybox's
 * takes no options, and says that of any.
 */
async function formatOf(run: Run, device: string): Promise<string | undefined> {
  const { exitCode, output } = await run("blkid", ["-p", "-s", "TYPE", "-s", "PTTYPE", "-o", "export", device]);
  if (exitCode === BLKID_NOTHING_FOUND) return undefined;
  if (exitCode !== 0) throw new Error(`failed to get disk format of disk ${device}: exit status ${exitCode}: ${output}`);
  const found = /^TYPE=(.+)$/m.exec(output)?.[1] ?? (/^PTTYPE=./m.test(output) ? "partitions" : undefined);
  if (found === undefined && !(await run("blkid", ["-V"])).output.includes("util-linux")) throw new Error(`failed to get disk format of disk ${device}: this machine's blkid, as busybox has it, does not look at one disk: install that of util-linux`);
  return found;
}

/** What fsck can do by itself. A machine without it goes on. */
async function repair(run: Run, device: string): Promise<void> {
  try {
    const { exitCode, output } = await run("fsck", ["-a", device]);
    if (exitCode === FSCK_NOT_CORRECTED) throw new Error(`'fsck' found errors on device ${device} but could not correct them: ${output}`);
  } catch (error) {
    if (!(error instanceof ExecError && error.code === "not-found")) throw error;
  }
}
