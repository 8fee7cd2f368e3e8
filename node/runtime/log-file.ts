/**
 * Bounds a log that another process appends to: when it is too big, its content becomes <file>.1 and it is cut to nothing. A line written in that moment may be lost; the writer
 * needs no signal, which matters because containerd knows none for it.
 */
import { copyFileSync, existsSync, renameSync, statSync, truncateSync } from "node:fs";

/** Two of these are kept at most: some days of a busy node's log, and little flash. */
const LOG_BYTES_MAX = 8 << 20;

export function trimLog(path: string, bytesMax = LOG_BYTES_MAX): boolean {
  if (!existsSync(path) || statSync(path).size <= bytesMax) return false;
  copyFileSync(path, `${path}.1.new`);
  truncateSync(path);
  renameSync(`${path}.1.new`, `${path}.1`);
  return true;
}
