/**
 * Puts a finished store in the place of another one, so that a loss of power at any moment leaves one of the two there.
 *
 *   path.finished ─▶ path ─▶ aside
 *
 * Directories cannot be exchanged in one step: between the two renames there is no store at `path`, and whoever opens it next would make a new, empty one.
 * So opening finishes what was begun.
 */
import { existsSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { storeError, syncDirectory } from "./disk.ts";
import { isLevelStore } from "./leveldb/leveldb.ts";

/** Of Linux: what is mounted where. */
const MOUNTS = "/proc/self/mountinfo";

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

/** Before another store is made for the place of the one at `path`, which must be no link: where a disk is mounted at that very directory none can take it. Throws StoreError "unavailable". */
export function refuseMounted(path: string): void {
  const written = resolve(path).replace(/[ \t\n\\]/g, (mark) => `\\${mark.charCodeAt(0).toString(8).padStart(3, "0")}`); // as the kernel writes it
  if (!existsSync(MOUNTS) || !readFileSync(MOUNTS, "utf8").split("\n").some((line) => line.split(" ")[4] === written)) return;
  throw storeError("unavailable", { path, reason: "a disk is mounted at this very directory: no other store can take its place", remedy: "mount the disk elsewhere, with the store in a directory on it, and make a link to that here" });
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

/** Once a store is open, so that nobody is at it: what was cut off before it was complete, which may be as large as the store. What a bad disk does not let go of takes room, and is no reason to have no store. */
export function removeUnfinished(path: string): void {
  for (const left of [buildingPath(path), copyPath(path)]) {
    try {
      rmSync(left, { recursive: true, force: true });
    } catch {
      // tried again with the next opening
    }
  }
}
