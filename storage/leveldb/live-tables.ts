/**
 * Which tables a LevelDB store is made of, as its MANIFEST says: others that lie there are what a crash has left, perhaps half written.
 * Source: leveldb db/version_edit.cc
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { logEntries } from "./log-damage.ts";
import { Cursor } from "./varint.ts";

const COMPARATOR = 1;
const COMPACT_POINTER = 5;
const DELETED_FILE = 6;
const NEW_FILE = 7;
/** Numbers: of logs, of the next file, of the last write. */
const NUMBERS: ReadonlySet<number> = new Set([2, 3, 4, 9]);

/** Their sizes, by number; undefined: it cannot be told, and LevelDB says why. */
export function liveTables(path: string): ReadonlyMap<number, number> | undefined {
  try {
    return tablesOf(readFileSync(join(path, manifestOf(path))));
  } catch (error) {
    if (error instanceof RangeError || (error as NodeJS.ErrnoException).code !== undefined) return undefined;
    throw error;
  }
}

/** The one that CURRENT names; where it does not, the last. */
function manifestOf(path: string): string {
  const names = readdirSync(path).filter((name) => name.startsWith("MANIFEST-")).sort(), current = join(path, "CURRENT");
  const named = existsSync(current) ? readFileSync(current, "utf8").trimEnd() : "";
  const found = names.includes(named) ? named : names.at(-1);
  if (found === undefined) throw new RangeError("no MANIFEST");
  return found;
}

/** Throws RangeError for what is no MANIFEST. */
function tablesOf(manifest: Uint8Array): ReadonlyMap<number, number> {
  const live = new Map<number, number>();
  for (const entry of logEntries(manifest)) {
    const edit = new Cursor(entry);
    while (!edit.atEnd) {
      const tag = edit.number();
      if (NUMBERS.has(tag)) edit.number();
      else if (tag === COMPARATOR) edit.text();
      else if (tag === COMPACT_POINTER || tag === DELETED_FILE || tag === NEW_FILE) {
        edit.number(); // its level
        if (tag === COMPACT_POINTER) edit.text();
        else if (tag === DELETED_FILE) live.delete(edit.number());
        else {
          live.set(edit.number(), edit.number());
          for (const _ of ["smallest key", "largest key"]) edit.text();
        }
      } else throw new RangeError("no tag of a MANIFEST");
    }
  }
  return live;
}
