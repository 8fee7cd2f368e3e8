/**
 * Removes a directory that a pod has had, however it was filled, and by whomever it still is: of a pod that was deleted by force containers may run on. Each directory is opened as what
 * it is, and all in it is named from there: who puts a link in its place meanwhile has us go nowhere else. Links are removed, not followed.
 *
 * Few are open at once: a directory that lies too deep is first moved up to the top, so that nesting a hundred thousand levels costs no more than as many directories side by side.
 *
 * What is mounted there meanwhile is not gone into: by the helper of a mount that was given up, which a server has answered after all, it is somebody's whole disk.
 *
 * Source: kubernetes v1.36 pkg/util/removeall/removeall.go (RemoveAllOneFilesystem)
 */
import { constants } from "node:fs";
import { type FileHandle, open, readdir, readFile, readlink, rename, rm, rmdir, unlink } from "node:fs/promises";
import { ifThere } from "../../../core/lifecycle/if-there.ts";

/** What is open at once, of one tree. */
const DEPTH_MAX = 32;

/** Somebody has thought of our names. */
const TAKEN: ReadonlySet<string> = new Set(["EEXIST", "ENOTEMPTY", "ENOTDIR"]);
/** It is a link, or no directory at all: it was one a moment ago. */
const SWAPPED: ReadonlySet<string> = new Set(["ELOOP", "ENOTDIR"]);

/** What is not there is gone. Throws an Error at what is mounted below it: that is somebody's volume. */
export async function removeTree(root: string): Promise<void> {
  if (process.platform === "win32") return await rm(root, { recursive: true, force: true }); // which knows of junctions
  const top = await ifThere(opened(root));
  if (!top) return;
  try {
    await emptyAll(top);
  } finally {
    await top.close();
  }
  await ifThere(rmdir(root));
}

function opened(path: string): Promise<FileHandle> { return open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW); }

/** In the very directory that is open, whatever has its name now. */
function within({ fd }: FileHandle, name: string): string { return `/proc/self/fd/${fd}/${name}`; }

/** Which mount it is on, also where two are of one file system. Source: proc_pid_fdinfo(5) */
async function mountId({ fd }: FileHandle): Promise<string | undefined> {
  return /^mnt_id:\s*(\d+)/m.exec(await readFile(`/proc/self/fdinfo/${fd}`, "utf8"))?.[1];
}

async function emptyAll(top: FileHandle): Promise<void> {
  const ours = await mountId(top);
  const raised: string[] = [];
  let count = 0;

  async function raise(path: string): Promise<void> {
    for (;;) {
      const name = `.removed-${count++}`;
      try {
        await ifThere(rename(path, within(top, name)));
        raised.push(name);
        return;
      } catch (error) {
        if (!TAKEN.has((error as NodeJS.ErrnoException).code ?? "")) throw error;
      }
    }
  }

  /** Everything in it, but for what is moved up. */
  async function empty(directory: FileHandle, depth: number): Promise<void> {
    for (const entry of (await ifThere(readdir(within(directory, ""), { withFileTypes: true }))) ?? []) {
      const path = within(directory, entry.name);
      if (!entry.isDirectory()) await ifThere(unlink(path));
      else if (depth >= DEPTH_MAX) await raise(path);
      else await remove(path, depth + 1);
    }
  }

  async function remove(path: string, depth: number): Promise<void> {
    const directory = await ifThere(opened(path)).catch((error: NodeJS.ErrnoException) => {
      if (!SWAPPED.has(error.code ?? "")) throw error;
      return undefined;
    });
    if (!directory) return await ifThere(unlink(path));
    try {
      if ((await mountId(directory)) !== ours) throw new Error(`still mounted: ${await readlink(`/proc/self/fd/${directory.fd}`)}`);
      await empty(directory, depth);
    } finally {
      await directory.close();
    }
    await ifThere(rmdir(path));
  }

  await empty(top, 1);
  for (let at = 0; at < raised.length; at++) await remove(within(top, raised[at]!), 2);
}
