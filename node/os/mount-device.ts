/**
 * The file system of a disk, which may be a long way off, or broken: its journal is worked through first, and whoever mounts waits for that. A program does it: with this process the whole node, and the
 * server that it may be on, would wait. No helper of that program is asked (mount.fuse runs what it is told to).
 */
import { type Exec, ExecError } from "./exec.ts";
import { needsNoDevice } from "./file-systems.ts";
import { deviceName } from "./device-name.ts";
import { MountError, type Mounts } from "./mount.ts";

export interface DeviceMount {
  readonly device: string;
  readonly target: string;
  readonly fsType: string;
  readonly options: readonly string[];
}

/** What the program takes for no name: a list, a pattern, "whatever there is". Of these the kernel has none. */
const NO_NAME = /[^\w.-]|^no|^auto$|^-/;

/** Throws an Error for the user; MountError ENOTBLK of a file system that needs no device. */
export async function mountDevice({ mounts, exec }: { readonly mounts: Pick<Mounts, "mount" | "unmount">; readonly exec: Exec }, { device, target, fsType, options }: DeviceMount, { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal }): Promise<void> {
  const inThisProcess = (): void => mounts.mount({ source: device, target, fsType, options, onDevice: true });
  if (NO_NAME.test(fsType) || needsNoDevice(fsType)) return inThisProcess(); // and is refused
  const source = deviceName(device), args = ["-i", "-t", fsType, ...(options.length > 0 ? ["-o", options.join(",")] : []), "--", source, target];
  try {
    const { exitCode, stdout, stderr } = await exec("mount", args, { timeoutMs, signal });
    if (exitCode !== 0) throw new Error(`mount failed: exit status ${exitCode}\nMounting command: mount\nMounting arguments: ${args.join(" ")}\nOutput: ${stdout}${stderr}`);
  } catch (error) {
    if (!(error instanceof ExecError && error.code === "not-found")) throw error;
    return inThisProcess(); // a machine without that program
  }
  if (!needsNoDevice(fsType)) return;
  mounts.unmount(target, { lazy: true }); // the kernel did not know it before
  throw new MountError("ENOTBLK", `mount ${fsType} ${source} on ${target}`);
}
