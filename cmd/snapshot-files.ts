/** The directory of snapshots: what they are called, which are there, which of them go. Names are in the order of time. */
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

const NAME = /^snapshot-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z(-\d+)?\.zst$/;

/** Oldest first. */
export function snapshotNames(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory).filter((name) => NAME.test(name)).sort() : [];
}

/** A path that is free. */
export function newSnapshotFile(directory: string, nowMs: number): string {
  const stem = join(directory, `snapshot-${stamp(nowMs)}`);
  for (let i = 1; ; i++) {
    const file = i === 1 ? `${stem}.zst` : `${stem}-${i}.zst`;
    if (!existsSync(file)) return file;
  }
}

/** When the newest one was taken, undefined: there is none. */
export function newestSnapshotMs(directory: string): number | undefined {
  const [, year, month, day, hour, minute, second] = NAME.exec(snapshotNames(directory).at(-1) ?? "") ?? [];
  return year === undefined ? undefined : Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
}

/** Deletes all but the newest; returns which. */
export function pruneSnapshots(directory: string, keep: number): string[] {
  const old = snapshotNames(directory).slice(0, -keep);
  for (const name of old) rmSync(join(directory, name));
  return old;
}

export function stamp(ms: number): string {
  return new Date(ms).toISOString().replace(/[-:]|\.\d+/g, "");
}
