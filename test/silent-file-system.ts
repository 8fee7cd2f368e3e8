/** A file system of which nobody answers for anything, as one of another machine that is away. */
import { closeSync, mkdtempSync, openSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemMounts } from "../node/os/mount.ts";

/** Whoever waits for it is told that it is gone when it is disposed of. */
export function silentFileSystem(): Disposable & { readonly path: string } {
  const path = realpathSync(mkdtempSync(join(tmpdir(), "silent-")));
  const fd = openSync("/dev/fuse", "r+");
  systemMounts().mount({ source: "nobody", target: path, fsType: "fuse", options: [`fd=${fd}`, "rootmode=40000", "user_id=0", "group_id=0"] });
  return { path, [Symbol.dispose]() { systemMounts().unmount(path, { lazy: true }); closeSync(fd); rmSync(path, { recursive: true }); } };
}

export function hasFuse(): boolean {
  try {
    silentFileSystem()[Symbol.dispose]();
    return true;
  } catch {
    return false;
  }
}
