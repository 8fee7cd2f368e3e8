/**
 * Removes a directory that a pod has had, however it was filled. Names never get long: a directory that lies too deep is first moved up to the top, so
 * that nesting a hundred thousand levels costs no more than as many directories side by side. Links are removed, not followed.
 */
import { readdir, rename, rm, rmdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { ifThere } from "../../../core/lifecycle/if-there.ts";

/** Half of what the kernel takes: what stands in a directory of this depth still has a name. */
const NAME_BYTES_LONG = 2_000;

/** Somebody has thought of our names. */
const TAKEN: ReadonlySet<string> = new Set(["EEXIST", "ENOTEMPTY", "ENOTDIR"]);

/** What is not there is gone. Nothing may be mounted below it, and nobody may be at work in it. */
export async function removeTree(root: string): Promise<void> {
  if (process.platform === "win32") return await rm(root, { recursive: true, force: true }); // which knows of junctions
  const raised: string[] = [root];
  let count = 0;

  async function raise(path: string): Promise<string> {
    for (;;) {
      const top = join(root, `.removed-${count++}`);
      try {
        await ifThere(rename(path, top));
        return top;
      } catch (error) {
        if (!TAKEN.has((error as NodeJS.ErrnoException).code ?? "")) throw error;
      }
    }
  }

  /** Everything in it, but for what is moved up. */
  async function empty(directory: string): Promise<void> {
    for (const entry of (await ifThere(readdir(directory, { withFileTypes: true }))) ?? []) {
      const path = join(directory, entry.name);
      if (!entry.isDirectory()) await ifThere(unlink(path));
      else if (Buffer.byteLength(path) > NAME_BYTES_LONG) raised.push(await raise(path));
      else {
        await empty(path);
        await ifThere(rmdir(path));
      }
    }
  }

  for (let at = 0; at < raised.length; at++) {
    await empty(raised[at]!);
    if (at > 0) await ifThere(rmdir(raised[at]!));
  }
  await ifThere(rmdir(root));
}
