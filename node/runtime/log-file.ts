/**
 * Bounds a log that another process appends to: when it is too big, its content becomes <file>.1 and it is cut to nothing. A line written in that moment may be lost; the writer
 * needs no signal, which matters because containerd knows none for it. On a disk without room for both it is lost: that room is needed.
 */
import { copyFile, rename, rm, stat, truncate } from "node:fs/promises";
import { ifThere } from "../../core/lifecycle/if-there.ts";

/** Two of these are kept at most: some days of a busy node's log, and little flash. */
const LOG_BYTES_MAX = 8 << 20;

/** Whether it was too big. */
export async function trimLog(path: string, bytesMax = LOG_BYTES_MAX): Promise<boolean> {
  if ((await sizeBytes(path)) <= bytesMax) return false;
  const copy = `${path}.1.new`;
  const isCopied = await copyFile(path, copy).then(() => true, () => false);
  if (!isCopied) await rm(copy, { force: true, recursive: true });
  await truncate(path);
  if (isCopied) await rename(copy, `${path}.1`);
  return true;
}

async function sizeBytes(path: string): Promise<number> { return (await ifThere(stat(path)))?.size ?? 0; }
