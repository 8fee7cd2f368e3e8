/**
 * What files of ours hold, on disks that wear out. One whose sectors cannot be read is for its reader what a loss of power may have left: empty. So whoever gets over an empty file
 * gets over that too, and it can be written anew: of cards that is the commonest fault, and goes away with the sector.
 */
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { isNotThere } from "./if-there.ts";

/** Linux's words for a bad sector, and for a file system that finds itself damaged there. */
const UNREADABLE: ReadonlySet<string> = new Set(["EIO", "EUCLEAN", "EBADMSG"]);

/** Whether the disk could not read what is there. */
export function isUnreadable(error: unknown): boolean { return UNREADABLE.has((error as NodeJS.ErrnoException | undefined)?.code ?? ""); }

/** Undefined: there is no such file. */
export async function fileText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    return withoutText(error);
  }
}

/** As fileText. */
export function fileTextSync(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    return withoutText(error);
  }
}

function withoutText(error: unknown): string | undefined {
  if (isNotThere(error)) return undefined;
  if (isUnreadable(error)) return "";
  throw error;
}
