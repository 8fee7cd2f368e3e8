/**
 * Puts a finished store in the place of another one, so that a loss of power at any moment leaves one of the two there.
 *
 *   path.finished ─▶ path ─▶ aside
 *
 * Directories cannot be exchanged in one step: between the two renames there is no store at `path`, and whoever opens it next would make a new, empty one.
 * So opening finishes what was begun.
 */
import { existsSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { syncDirectory } from "./disk.ts";
import { isLevelStore } from "./leveldb/leveldb.ts";

/** Where it is made. */
export function buildingPath(path: string): string {
  return `${path}.restoring`;
}

/** Of a damaged store, to be repaired. */
export function copyPath(path: string): string {
  return `${path}.mending`;
}

/** Where the new store is to be when it is complete. */
export function finishedPath(path: string): string {
  return `${path}.finished`;
}

/** The store at finishedPath(path) becomes the one at `path`. One that is there is moved to `aside`, which must be free. */
export function replaceStore(path: string, aside: string | undefined): void {
  syncDirectory(finishedPath(path));
  syncDirectory(dirname(path)); // before the old one goes: the new one must be known by this name
  if (isLevelStore(path) && aside !== undefined) renameSync(path, aside);
  else rmSync(path, { recursive: true, force: true }); // an empty directory at most
  syncDirectory(dirname(path));
  renameSync(finishedPath(path), path);
  syncDirectory(dirname(path));
}

/** Before a store is opened: what an interrupted replacement has left. */
export function finishReplacing(path: string): void {
  const finished = finishedPath(path);
  if (!existsSync(finished)) return;
  if (isLevelStore(path)) rmSync(finished, { recursive: true, force: true }); // the old one was not moved away yet, and is still the one
  else replaceStore(path, undefined);
}

/** Once a store is open, so that nobody is at it: what was cut off before it was complete, which may be as large as the store. */
export function removeUnfinished(path: string): void {
  for (const left of [buildingPath(path), copyPath(path)]) rmSync(left, { recursive: true, force: true });
}
