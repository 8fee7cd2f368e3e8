/** How much of a disk a directory uses, and how full a file system is. */
import { constants, type Dirent } from "node:fs";
import { type FileHandle, lstat, open, readdir, statfs } from "node:fs/promises";
import { join } from "node:path";

/** Images and what containers write are on the node's own disk, both on another, or the images alone are. */
export type DiskLayout = "one" | "images and containers apart" | "images apart";

export async function diskLayout({ node, images, containers }: Readonly<Record<"node" | "images" | "containers", string>>): Promise<DiskLayout> {
  const [own, imageDisk, containerDisk] = await Promise.all([node, images, containers].map(async (path) => (await lstat(path)).dev));
  if (own === imageDisk) return "one";
  return imageDisk === containerDisk ? "images and containers apart" : "images apart";
}

export interface DirectoryUsage { readonly bytes: number; readonly inodes: number }

/** The kernel takes names of 4096 bytes; whoever nests directories deeper than that is counted all the same. */
const NAME_BYTES_LONG = 3_000;
/** Gone meanwhile, or a file system of somebody's that does not answer: one pod's is no reason to know nothing of the others. */
const UNCOUNTED: ReadonlySet<string> = new Set(["ENOENT", "ENOTDIR", "ELOOP", "EACCES", "EIO", "ENOTCONN", "ESTALE", "ENAMETOOLONG"]);

/** What stands below `path` on the same file system; files with several names count once. What vanishes while we look does not count. */
export async function directoryUsage(path: string, signal: AbortSignal): Promise<DirectoryUsage> {
  let bytes = 0, inodes = 0;
  const seen = new Set<number>(); // inodes with several names: of others there may be millions
  const device = (await statIfThere(path))?.dev;

  async function walk(at: string): Promise<void> {
    if (signal.aborted) return;
    const found = await statIfThere(at);
    if (!found || found.dev !== device || seen.has(found.ino)) return;
    inodes++;
    bytes += found.blocks * 512;
    if (!found.isDirectory()) return void (found.nlink > 1 && seen.add(found.ino));
    const handle = at.length > NAME_BYTES_LONG ? await openIfThere(at) : undefined;
    try {
      const here = handle ? `/proc/self/fd/${handle.fd}` : at;
      for (const entry of await entriesOf(here)) await walk(join(here, entry.name));
    } finally {
      await handle?.close();
    }
  }

  await walk(path);
  return { bytes, inodes };
}

async function entriesOf(path: string): Promise<Dirent[]> {
  try {
    return await readdir(path, { withFileTypes: true });
  } catch (error) {
    if (UNCOUNTED.has((error as NodeJS.ErrnoException).code ?? "")) return [];
    throw error;
  }
}

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  } catch (error) {
    if (UNCOUNTED.has((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
}

async function statIfThere(path: string) {
  try {
    return await lstat(path);
  } catch (error) {
    if (UNCOUNTED.has((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
}

export interface FileSystemUsage { readonly capacityBytes: number; readonly availableBytes: number; readonly usedBytes: number; readonly inodes: number; readonly inodesFree: number }

export async function fileSystemUsage(path: string): Promise<FileSystemUsage> {
  const { blocks, bsize, bavail, bfree, files, ffree } = await statfs(path);
  return { capacityBytes: blocks * bsize, availableBytes: bavail * bsize, usedBytes: (blocks - bfree) * bsize, inodes: files, inodesFree: ffree };
}
