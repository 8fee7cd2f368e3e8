/**
 * The directory of snapshots: what they are called, which are there, which of them go. Names are in the order of time. It may be another machine's, which does not answer: it is asked beside the event loop.
 */
import { access, open, readdir, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { ifThere } from "../core/lifecycle/if-there.ts";
import { makeDirectory } from "../storage/disk.ts";

const NAME = /^snapshot-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z(-\d+)?\.zst$/;

/** What saveBackup appends to the name until the file is complete. */
const PARTIAL = ".partial";

/** Oldest first. */
export async function snapshotNames(directory: string): Promise<string[]> {
  return ((await ifThere(readdir(directory))) ?? []).filter((name) => NAME.test(name)).sort();
}

/** A name for saveBackup that nobody else is given, who takes one in the same second: what it writes to until the file is complete is there from now on. */
export async function newSnapshotFile(directory: string, nowMs: number): Promise<string> {
  await makeDirectory(directory);
  return await freePath(join(directory, `snapshot-${stamp(nowMs)}`), ".zst", isTaken);
}

async function isTaken(path: string): Promise<boolean> {
  try {
    await (await open(path + PARTIAL, "wx", 0o600)).close();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    return false;
  }
}

/** Where nothing is yet: two things may be done in one second. `take`: whether it could be had. */
export async function freePath(stem: string, ending = "", take: (path: string) => Promise<boolean> = () => Promise.resolve(true)): Promise<string> {
  for (let i = 1; ; i++) {
    const path = i === 1 ? stem + ending : `${stem}-${i}${ending}`;
    if (!(await access(path).then(() => true, () => false)) && (await take(path))) return path;
  }
}

/** The newest; of a later time than now is none: the clock was wrong when such a one was taken. */
export async function newestSnapshot(directory: string, nowMs: number): Promise<string | undefined> {
  const later = `snapshot-${stamp(nowMs + 1000)}`; // of a second there can be several
  return (await snapshotNames(directory)).findLast((name) => name < later);
}

/** When it was taken, undefined: there is none. */
export async function newestSnapshotMs(directory: string, nowMs: number): Promise<number | undefined> {
  const [, year, month, day, hour, minute, second] = NAME.exec((await newestSnapshot(directory, nowMs)) ?? "") ?? [];
  return year === undefined ? undefined : Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
}

/**
 * Deletes all but the newest, and what is left of some that a loss of power has cut short; returns which.
 * `made`: was taken just now, and is the newest. The clock was wrong when those with later names were taken, so they are older than the others.
 */
export async function pruneSnapshots(directory: string, keep: number, made?: string): Promise<string[]> {
  const names = await snapshotNames(directory);
  const last = made === undefined ? undefined : basename(made);
  const byAge = last === undefined ? names : [...names.filter((name) => name > last), ...names.filter((name) => name < last), last];
  const [oldest = ""] = byAge.slice(-keep).sort();
  const torn = names.length === 0 ? [] : (await readdir(directory)).filter((name) => name.endsWith(PARTIAL) && NAME.test(name.slice(0, -PARTIAL.length)) && name < oldest);
  const old = [...byAge.slice(0, -keep), ...torn];
  for (const name of old) await rm(join(directory, name));
  return old;
}

export function stamp(ms: number): string {
  return new Date(ms).toISOString().replace(/[-:]|\.\d+/g, "");
}
