/**
 * Local volumes that are block devices: the file system on one is mounted once on this machine, however many pods use it, made first if there is none.
 *
 * A device with anything on it, be it a partition table, is never formatted. blkid, fsck and mkfs are the host's.
 *
 * Source: kubernetes v1.36 pkg/volume/local/local.go, staging/src/k8s.io/mount-utils/mount_linux.go
 */
import { rmdir, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { type Exec, ExecError } from "../../os/exec.ts";
import type { MountPoint, Mounts } from "../../os/mount.ts";
import { keyedTurns } from "../csi/keyed-turns.ts";
import { podDirectories } from "./pod-directories.ts";
import { makeDirectory } from "./volumes.ts";

export interface LocalDevice {
  /** Of the PersistentVolume. */
  readonly name: string;
  readonly device: string;
  /** Empty: ext4. */
  readonly fsType: string;
  readonly options: readonly string[];
  readonly readOnly: boolean;
}

export interface LocalDevices {
  /** Makes the device's file system show at `directory`, in a pod's directory. */
  show(volume: LocalDevice, directory: string, signal: AbortSignal): Promise<void>;
  /** Unmounts what no pod uses any more. */
  sweep(): Promise<void>;
}

const FORMAT_TIMEOUT_MS = 600_000; // large disks on slow buses
const BLKID_NOTHING_FOUND = 2;
const FSCK_NOT_CORRECTED = 4;

/** Throws an Error for the user when it is neither. */
export async function localKind(path: string): Promise<"directory" | "device"> {
  const found = await stat(path).catch((cause: Error) => { throw new Error(`path "${path}" does not exist`, { cause }); });
  if (found.isDirectory()) return "directory";
  if (found.isBlockDevice()) return "device";
  throw new Error("only directory and block device are supported");
}

const FS_TYPE_DEFAULT = "ext4";

export function localDevices({ dataDir, mounts, exec }: { readonly dataDir: string; readonly mounts: Mounts; readonly exec: Exec }): LocalDevices {
  const root = join(dataDir, "plugins/kubernetes.io/local-volume/mounts");
  const inTurn = keyedTurns();
  const isUsed = ({ source }: MountPoint): boolean => mounts.list().some((other) => other.source === source && other.target.startsWith(`${podDirectories(dataDir)}/`));

  return {
    show: ({ fsType, ...rest }, directory, signal) => inTurn(rest.name, async () => {
      const volume = { ...rest, fsType: fsType || FS_TYPE_DEFAULT };
      const target = join(root, volume.name);
      if (!mounts.list().some((mounted) => mounted.target === target)) {
        await makeDirectory(target, 0o750);
        try {
          await mountDevice({ mounts, exec }, volume, target, signal);
        } catch (cause) {
          await rmdir(target);
          throw new Error(`local: failed to mount device ${volume.device} at ${target} (fstype: ${volume.fsType}), error ${(cause as Error).message}`, { cause });
        }
      }
      mounts.bind(target, directory, { readOnly: volume.readOnly });
    }),

    async sweep() {
      for (const { target } of mounts.list().filter((mounted) => mounted.target.startsWith(`${root}/`))) {
        await inTurn(basename(target), async () => {
          const mounted = mounts.list().find((one) => one.target === target);
          if (!mounted || isUsed(mounted)) return;
          mounts.unmount(target);
          await rmdir(target);
        });
      }
    },
  };
}

async function mountDevice({ mounts, exec }: { readonly mounts: Mounts; readonly exec: Exec }, { device, fsType, options, readOnly }: LocalDevice, target: string, signal: AbortSignal): Promise<void> {
  const run = (program: string, args: readonly string[]) => exec(program, args, { timeoutMs: FORMAT_TIMEOUT_MS, signal });
  if (await isBlank(run, device)) {
    if (readOnly) throw new Error(`cannot mount unformatted disk ${device} as we are manipulating it in read-only mode`);
    const args = [...(FORMAT_ARGS[fsType] ?? []), device];
    const { exitCode, stdout, stderr } = await run(`mkfs.${fsType}`, args);
    if (exitCode !== 0) throw new Error(`format of disk "${device}" failed: type:("${fsType}") target:("${target}") options:(${JSON.stringify(options.join(","))}) errcode:(exit status ${exitCode}) output:(${stdout}${stderr})`);
  } else if (!readOnly) await repair(run, device);
  mounts.mount({ source: device, target, fsType, options: [...options, ...(readOnly ? ["ro"] : [])] });
}

const FORMAT_ARGS: Readonly<Record<string, readonly string[]>> = { ext3: ["-F", "-m0"], ext4: ["-F", "-m0"], xfs: ["-f"] };

type Run = (program: string, args: readonly string[]) => ReturnType<Exec>;

/** Neither a file system nor partitions. */
async function isBlank(run: Run, device: string): Promise<boolean> {
  const { exitCode, stdout, stderr } = await run("blkid", ["-p", "-s", "TYPE", "-s", "PTTYPE", "-o", "export", device]);
  if (exitCode === BLKID_NOTHING_FOUND) return true;
  if (exitCode !== 0) throw new Error(`failed to get disk format of disk ${device}: exit status ${exitCode}: ${stdout}${stderr}`);
  return !/^(TYPE|PTTYPE)=./m.test(stdout);
}

/** What fsck can do by itself. A machine without it goes on. */
async function repair(run: Run, device: string): Promise<void> {
  try {
    const { exitCode, stdout, stderr } = await run("fsck", ["-a", device]);
    if (exitCode === FSCK_NOT_CORRECTED) throw new Error(`'fsck' found errors on device ${device} but could not correct them: ${stdout}${stderr}`);
  } catch (error) {
    if (!(error instanceof ExecError && error.code === "not-found")) throw error;
  }
}
