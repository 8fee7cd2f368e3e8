/**
 * mount.ts on Windows, which has directories and junctions instead of mounts:
 *
 *   tmpfs      a directory on disk, as upstream's kubelet does it
 *   bind       a junction to a directory; a file cannot be bound, nor can anything be made read-only this way (the runtime does it for containers)
 *   the rest   there is no such thing: MountError ENOSYS
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/mount-utils/mount_windows.go (behaviour)
 */
import { lstatSync, mkdirSync, readdirSync, readlinkSync, rmdirSync, statSync, symlinkSync, unlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { MountError, type Mounts } from "./mount.ts";

export function windowsMounts(): Mounts {
  const unmount = (target: string): void => { if (isJunction(target)) unlinkSync(target); };
  return {
    mount({ source, target, fsType }) {
      if (fsType !== "tmpfs") throw new MountError("ENOSYS", `mount ${fsType} ${source} on ${target}: Windows has no mounts`);
      mkdirSync(target, { recursive: true });
    },
    bind(source, target, { readOnly = false } = {}) {
      if (readOnly) throw new MountError("ENOSYS", `bind ${source} on ${target}: junctions cannot be read-only`);
      if (!statSync(source).isDirectory()) throw new MountError("ENOTDIR", `bind ${source} on ${target}: Windows binds directories only`);
      if (isJunction(target)) {
        if (readlinkSync(target) === source) return;
        unlinkSync(target);
      } else if (entriesOf(target) !== undefined) rmdirSync(target); // fails if something is in it, which must not be hidden
      mkdirSync(dirname(target), { recursive: true });
      symlinkSync(source, target, "junction");
    },
    unmount,
    unmountAll(path) {
      const found = junctionsBelow(path);
      for (const target of found) unmount(target);
      return found;
    },
    list: () => [], // junctions are found where they are looked for: unmountAll, isMountPoint
    isMountPoint: isJunction,
  };
}

function isJunction(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink(); // junctions are reparse points: links, to us
  } catch (error) {
    if (isGone(error)) return false;
    throw error;
  }
}

/** `path` or what is below it, never looking into one. */
function junctionsBelow(path: string): string[] {
  if (isJunction(path)) return [path];
  return (entriesOf(path) ?? []).flatMap((name) => junctionsBelow(join(path, name)));
}

/** Undefined if it is no directory, or not there. */
function entriesOf(path: string): readonly string[] | undefined {
  try {
    return readdirSync(path);
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

function isGone(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "");
}
