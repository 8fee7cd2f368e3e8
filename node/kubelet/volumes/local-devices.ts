/**
 * Local volumes that are block devices: the file system on one is mounted once on this machine, however many pods use it, made first if there is none.
 *
 * Source: kubernetes v1.36 pkg/volume/local/local.go
 */
import { rmdir, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Exec } from "../../os/exec.ts";
import type { Mounts } from "../../os/mount.ts";
import type { MountPoint } from "../../os/mount-table.ts";
import { keyedTurns } from "../../../core/lifecycle/keyed-turns.ts";
import type { Log } from "../../../core/observe/log.ts";
import { type BlockFileSystem, formatAndMount, fsTypeOf, growFileSystem } from "./format-and-mount.ts";
import { podDirectories } from "./pod-directories.ts";
import { patiently, unmountDisk } from "./unmount-disk.ts";
import { makeDirectory } from "./volume-directory.ts";

export interface LocalDevice extends BlockFileSystem {
  /** Of the PersistentVolume. */
  readonly name: string;
}

export interface LocalDevices {
  /** Makes the device's file system show at `directory`, in a pod's directory. */
  show(volume: LocalDevice, directory: string, signal: AbortSignal): Promise<void>;
  /** Makes its file system as large as the device. */
  grow(volume: Pick<LocalDevice, "name" | "device">, signal: AbortSignal): Promise<void>;
  /** Unmounts what no pod uses any more. What is busy, as somebody on the machine looks into it, keeps nothing else: it is tried again at the next sweep. */
  sweep(signal: AbortSignal): Promise<void>;
}

/** Throws an Error for the user when it is neither. */
export async function localKind(path: string): Promise<"directory" | "device"> {
  const found = await stat(path).catch((cause: Error) => { throw new Error(`path "${path}" does not exist`, { cause }); });
  if (found.isDirectory()) return "directory";
  if (found.isBlockDevice()) return "device";
  throw new Error("only directory and block device are supported");
}

export function localDevices({ dataDir, mounts, exec, log }: { readonly dataDir: string; readonly mounts: Mounts; readonly exec: Exec; readonly log: Pick<Log, "warn"> }): LocalDevices {
  const root = join(dataDir, "plugins/kubernetes.io/local-volume/mounts");
  const inTurn = keyedTurns();
  const ending = new Set<string>(); // targets that are being unmounted, or wait for their turn
  const isUsed = ({ source }: MountPoint, table: readonly MountPoint[]): boolean => table.some((other) => other.source === source && other.target.startsWith(`${podDirectories(dataDir)}/`));

  async function end(target: string): Promise<void> {
    ending.add(target);
    await inTurn(basename(target), async () => {
      const table = mounts.list(), mounted = table.find((one) => one.target === target);
      if (!mounted || isUsed(mounted, table)) return;
      await unmountDisk({ mounts, exec }, target);
      await rmdir(target);
    }).catch((error: unknown) => log.warn("device of a local volume not unmounted, next try later", { target, error }));
    ending.delete(target);
  }

  return {
    show: (volume, directory, signal) => inTurn(volume.name, async () => {
      const target = join(root, volume.name);
      if (!mounts.list().some((mounted) => mounted.target === target)) {
        await makeDirectory(target, 0o750);
        try {
          await formatAndMount({ mounts, exec }, volume, target, signal);
        } catch (cause) {
          await rmdir(target);
          throw new Error(`local: failed to mount device ${volume.device} at ${target} (fstype: ${fsTypeOf(volume.fsType)}), error ${(cause as Error).message}`, { cause });
        }
      }
      mounts.bind(target, directory, { readOnly: volume.readOnly });
    }, signal), // its end may wait for the disk: a pod that is deleted does not

    grow: ({ name, device }, signal) => inTurn(name, () => growFileSystem(exec, { device, target: join(root, name) }, signal), signal),

    async sweep(signal) {
      const before = mounts.list();
      const unused = before.filter((mounted) => mounted.target.startsWith(`${root}/`) && !isUsed(mounted, before)).map(({ target }) => target); // of what is used nobody's turn is waited for: it may be made larger, which takes minutes
      await patiently(Promise.all(unused.filter((target) => !ending.has(target)).map(end)), signal);
    },
  };
}
