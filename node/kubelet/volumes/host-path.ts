/** Checks, and makes where asked, what a hostPath volume points at. Source: kubernetes v1.36 pkg/volume/hostpath/host_path.go */
import type { Stats } from "node:fs";
import { mkdir, open, stat } from "node:fs/promises";
import type { HostPathVolumeSource } from "../../../core/api/gen/core.v1.ts";

/** Throws an Error for the user when it is not what the type says. */
export async function checkHostPath({ path, type }: HostPathVolumeSource): Promise<void> {
  switch (type ?? "") {
    case "": return;
    case "DirectoryOrCreate": if (!(await statIfThere(path))) await mkdir(path, { recursive: true, mode: 0o755 }); return await expect(path, (found) => found.isDirectory(), "a directory");
    case "Directory": return await expect(path, (found) => found.isDirectory(), "a directory");
    case "FileOrCreate": if (!(await statIfThere(path))) await (await open(path, "a", 0o644)).close(); return await expect(path, (found) => found.isFile(), "a file");
    case "File": return await expect(path, (found) => found.isFile(), "a file");
    case "Socket": return await expect(path, (found) => found.isSocket(), "a socket file");
    case "CharDevice": return await expect(path, (found) => found.isCharacterDevice(), "a character device");
    case "BlockDevice": return await expect(path, (found) => found.isBlockDevice(), "a block device");
    default: throw new Error(`hostPath type check failed: ${type} is an invalid volume type`);
  }
}

async function expect(path: string, is: (found: Stats) => boolean, what: string): Promise<void> {
  const found = await statIfThere(path);
  if (!found || !is(found)) throw new Error(`hostPath type check failed: ${path} is not ${what}`);
}

async function statIfThere(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  }
}
