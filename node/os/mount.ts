/**
 * Mounting and unmounting, and the table of what is mounted. No program of the host is used: `mount` and `umount` are called in libc.
 *
 * This is Linux' notion; what there is of it on Windows: mount.windows.ts.
 */
import type { MountPoint } from "./mount-table.ts";
import { linuxMounts } from "./mount.linux.ts";
import { windowsMounts } from "./mount.windows.ts";

export interface Mounts {
  /** mount(2). `options` are flags by mount(8)'s names (ro, nosuid, noexec …); what is no flag is handed to the file system. `onDevice`: the source is a device, mounted by its own name whatever link leads to it; of a file system that needs none (proc, tmpfs …) ENOTBLK is thrown. */
  mount(mount: { readonly source: string; readonly target: string; readonly fsType: string; readonly options?: readonly string[]; readonly onDevice?: boolean }): void;
  /** Makes `source` show at `target`. Read-only needs a second mount(2): both are done here, or neither. */
  bind(source: string, target: string, options?: { readonly recursive?: boolean; readonly readOnly?: boolean }): void;
  /** Not mounted is fine. `lazy`: detached now, ended once unused. */
  unmount(target: string, options?: { readonly lazy?: boolean }): void;
  /** Unmounts what is mounted at `path` or below it, deepest and newest first, lazily where it is busy; returns the targets. */
  unmountAll(path: string): readonly string[];
  /** This process's mount namespace, oldest first: read anew each time, which blocks for long where there are tens of thousands. */
  list(): readonly MountPoint[];
  /** Costs nothing, however many there are. */
  isMountPoint(path: string): boolean;
}

export class MountError extends Error {
  /** As of errno(3): ENOENT, EBUSY, EPERM … or ENOSYS where there is no such thing as a mount. */
  readonly code: string;
  constructor(code: string, message: string) {
    super(`${message}: ${code}`);
    this.name = "MountError";
    this.code = code;
  }
}

/** The mounts of this machine. */
export function systemMounts(): Mounts {
  return process.platform === "win32" ? windowsMounts() : linuxMounts();
}
