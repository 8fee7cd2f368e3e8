/** mount.ts on Linux: mount(2) and umount2(2) of the C library by FFI. The calls block, as the kernel does: do not mount network file systems with it, nor disks (mount-device.ts). */
import { dlopen, ptr, read } from "bun:ffi";
import { closeSync, constants, openSync, readFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import { deviceName } from "./device-name.ts";
import { needsNoDevice } from "./file-systems.ts";
import { parseMountinfo, mountsUnder } from "./mount-table.ts";
import { MountError, type Mounts } from "./mount.ts";

/** include/uapi/linux/mount.h */
const MS_RDONLY = 1, MS_REMOUNT = 32, MS_BIND = 4096, MS_REC = 16384;
const FLAGS: Readonly<Record<string, number>> = {
  ro: MS_RDONLY, nosuid: 2, nodev: 4, noexec: 8, sync: 16, remount: MS_REMOUNT, dirsync: 128, nosymfollow: 256, noatime: 1024, nodiratime: 2048, bind: MS_BIND,
  rbind: MS_BIND | MS_REC, relatime: 1 << 21, strictatime: 1 << 24, lazytime: 1 << 25,
};
const NO_FLAGS: ReadonlySet<string> = new Set(["rw", "suid", "dev", "exec", "async", "atime", "defaults"]);
/** openat2(2), include/uapi/linux/openat2.h: the number is the same on all architectures. Kernels before 5.6 have it not, and some sandboxes forbid it. */
const SYS_OPENAT2 = 437n, RESOLVE_NO_XDEV = 1n, O_PATH = 0o10000000, O_CLOEXEC = 0o2000000;
const MNT_DETACH = 2, UMOUNT_NOFOLLOW = 8;
/** Flags of a mount that a read-only remount must repeat, or a user namespace's owner is refused. */
const KEPT_BY_REMOUNT: readonly string[] = ["nosuid", "nodev", "noexec", "noatime", "nodiratime", "relatime"];

const ERRNO: Readonly<Record<number, string>> = {
  1: "EPERM", 2: "ENOENT", 5: "EIO", 12: "ENOMEM", 13: "EACCES", 15: "ENOTBLK", 16: "EBUSY", 18: "EXDEV", 19: "ENODEV", 20: "ENOTDIR", 22: "EINVAL", 28: "ENOSPC",
  30: "EROFS", 36: "ENAMETOOLONG", 40: "ELOOP",
};

export function linuxMounts(): Mounts {
  const libc = openLibc();
  const errno = (): string => {
    const number = read.i32(libc.symbols.__errno_location()!, 0);
    return ERRNO[number] ?? `errno ${number}`;
  };
  const list: Mounts["list"] = () => parseMountinfo(readFileSync("/proc/self/mountinfo", "utf8"));

  function call(source: string, target: string, fsType: string, flags: number, data: string): void {
    const dataBytes = text(data);
    if (libc.symbols.mount(text(source), text(target), text(fsType), BigInt(flags), data === "" ? null : ptr(dataBytes)) !== 0) throw new MountError(errno(), `mount ${fsType} ${source} on ${target}`);
  }

  function detach(target: string, flags: number): string | undefined {
    return libc.symbols.umount2(text(target), flags | UMOUNT_NOFOLLOW) === 0 ? undefined : errno();
  }

  /** Whether the last step of the path leads onto another mount: asks nothing of what is mounted there. Undefined: the kernel does not say. */
  function crossesMount(path: string): boolean | undefined {
    if (path === "/") return true;
    let parent: number;
    try {
      parent = openSync(dirname(path), O_PATH | constants.O_DIRECTORY);
    } catch {
      return false; // is not there
    }
    const how = new BigUint64Array([BigInt(O_PATH | constants.O_NOFOLLOW | O_CLOEXEC), 0n, RESOLVE_NO_XDEV]);
    const opened = Number(libc.symbols.syscall(SYS_OPENAT2, BigInt(parent), text(basename(path)), ptr(how), BigInt(how.byteLength)));
    const problem = opened < 0 ? errno() : "";
    closeSync(parent);
    if (opened >= 0) closeSync(opened);
    return problem === "EXDEV" ? true : problem === "" || problem === "ENOENT" || problem === "ENOTDIR" ? false : undefined;
  }

  return {
    list,
    mount({ source: asked, target, fsType, options = [], onDevice = false }) {
      const source = onDevice ? deviceName(asked) : asked;
      const refused = new MountError("ENOTBLK", `mount ${fsType} ${source} on ${target}`);
      if (onDevice && needsNoDevice(fsType)) throw refused;
      const flags = options.reduce((sum, option) => sum | (FLAGS[option] ?? 0), 0);
      call(source, target, fsType, flags, options.filter((option) => FLAGS[option] === undefined && !NO_FLAGS.has(option)).join(","));
      if (!onDevice || !needsNoDevice(fsType)) return;
      detach(target, MNT_DETACH); // the kernel did not know it before
      throw refused;
    },
    bind(source, target, { recursive = false, readOnly = false } = {}) {
      call(source, target, "none", MS_BIND | (recursive ? MS_REC : 0), "");
      try {
        if (readOnly) {
          const kept = list().findLast((point) => point.target === target)?.options.filter((option) => KEPT_BY_REMOUNT.includes(option)) ?? [];
          call("none", target, "none", kept.reduce((sum, option) => sum | FLAGS[option]!, MS_BIND | MS_REMOUNT | MS_RDONLY), "");
        }
      } catch (error) {
        detach(target, MNT_DETACH);
        throw error;
      }
    },
    unmount(target, { lazy = false } = {}) {
      const error = detach(target, lazy ? MNT_DETACH : 0);
      if (error !== undefined && error !== "EINVAL" && error !== "ENOENT") throw new MountError(error, `unmount ${target}`); // EINVAL: nothing is mounted there
    },
    unmountAll(path) {
      const targets = mountsUnder(list(), path).map(({ target }) => target);
      for (const target of targets) if (detach(target, 0) === "EBUSY") detach(target, MNT_DETACH);
      return targets;
    },
    isMountPoint: (path) => crossesMount(path) ?? list().some(({ target }) => target === path),
  };
}

function text(value: string): Buffer {
  return Buffer.from(`${value}\0`);
}

function openLibc() {
  return dlopen("libc.so.6", {
    mount: { args: ["cstring", "cstring", "cstring", "u64", "ptr"], returns: "int" },
    syscall: { args: ["i64", "i64", "cstring", "ptr", "u64"], returns: "i64" },
    umount2: { args: ["cstring", "int"], returns: "int" },
    __errno_location: { args: [], returns: "ptr" },
  });
}
