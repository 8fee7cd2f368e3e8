/**
 * Small files that must survive a power cut: either the old content or the new one, never a part.
 * Written beside the target, synced, renamed over it, and the directory synced. Readable by the owner only unless said otherwise.
 */
import { mkdir, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";

export async function writeDurably(path: string, content: string, { mode = 0o600 }: { readonly mode?: number } = {}): Promise<void> {
  const next = `${path}.next`;
  try {
    await rm(next, { force: true }); // a leftover could have another mode
    const file = await open(next, "wx", mode);
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(next, path);
    await syncDirectory(dirname(path));
  } catch (cause) {
    throw new Error(`${path} cannot be written`, { cause }); // the cause may name no file: a full disk's does not
  }
}

async function syncDirectory(path: string): Promise<void> {
  if (process.platform === "win32") return; // directories cannot be opened there; NTFS journals the rename
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/** Makes the directory, for the owner only, unless it is there. */
export async function ensurePrivateDirectory(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
}
