/**
 * Makes a store that is damaged one that opens, without anybody's help: a server nobody looks after must come up again.
 *
 *   what can be read of the store ─┐
 *                                  ├─▶ mergeSalvaged ─▶ a new store; the damaged one is kept beside it
 *   the newest readable backup ────┘
 *
 * What opens when it is read once more, or with its table of contents made anew, and is as it was written, needs no backup from before it. Otherwise:
 * a backup is all of the state at its revision, so it decides about everything up to there; over it goes what was written later and can be read. What was
 * deleted after the backup comes back, and what was written after it and cannot be read is lost. A backup of another cluster (a directory of snapshots outlives
 * a store that somebody has removed) has nothing in common with what can be read, and is passed over. Without a backup it is what can be read, as long as
 * that is nearly all: controllers delete what belongs to an object that is gone, so a store with holes can cost more than the holes.
 */
import { closeSync, copyFileSync, existsSync, mkdirSync, openSync, readdirSync, readSync, renameSync, rmSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { inspectBackup, readBackupRows } from "./backup.ts";
import { buildStore } from "./build.ts";
import { bytesIn, REVISIONS_SKIPPED } from "./check.ts";
import { freeBytes, isUnreadable, storeError } from "./disk.ts";
import type { Engine, StoreClock } from "./engine.ts";
import { isLevelStore, isLogWhole, levelEngine, refuseOpen, repairLevel, unreadableShare } from "./leveldb/leveldb.ts";
import { load } from "./mvcc/load.ts";
import { buildingPath, copyPath, finishedPath, refuseMounted, replaceStore } from "./replace.ts";
import { StoreError, type Revision, type Row } from "./store.ts";

/** Of the rows of a store without a backup: losing more than this is for people to decide about. */
const LOST_SHARE_MAX = 0.1;
/** What a disk reads at once, a page: it cannot read less of it. */
const SECTORS_BYTES = 4096;
/** Left free beside the copy and the new store. */
const ROOM_BYTES = 32 * 1024 * 1024;

export interface MendOptions {
  readonly path: string;
  /** Where the damaged store is kept; must be free. */
  readonly aside: string;
  /** Files of backups, in any order. */
  readonly backups: readonly string[];
  readonly clock: StoreClock;
}

export interface Mended {
  /** In the new store. */
  readonly rows: number;
  /** Rows the damaged store should have had and cannot be read there; undefined: nobody knows how many it had. */
  readonly lost: number | undefined;
  /** Of what was changed last some may be as it was before. */
  readonly mayBeOld: boolean;
  /** The file that was used, and how many rows are from it. */
  readonly backup: { readonly file: string; readonly rows: number } | undefined;
  readonly aside: string;
}

export interface Salvaged {
  readonly rows: readonly Row[];
  readonly lost: number | undefined;
  /** Revisions up to this one may have been handed out; 0: nobody knows. */
  readonly reserved: Revision;
  /** All rows are as they were at this revision; 0: something is wrong with them. */
  readonly soundAt: Revision;
  /** Of the bytes of the damaged store, 0 to 1: with them changes of rows are lost of which older states can be read. */
  readonly unreadableShare: number;
  /** As far as anybody can tell what was written last is there. */
  readonly hasLast: boolean;
}
export interface BackupRows { readonly rows: readonly Row[]; readonly revision: Revision }

/** Throws StoreError "corrupt" with the reason why not, "full" if there is no room for a copy, "locked" if a server has it open, "unavailable" where it cannot be replaced; then nothing has changed. */
export async function mendStore({ path, aside, backups, clock }: MendOptions): Promise<Mended> {
  refuseOpen(path);
  refuseMounted(path);
  if ((freeBytes(path) ?? Infinity) < 3 * bytesIn(path) + ROOM_BYTES /* the copy, its repair, the new one */) throw storeError("full", { path, reason: "the store is damaged, and there is no room to make another one of it" });
  const salvaged = await salvage(path, clock);
  const newest = await newestBackup(backups, salvaged.rows);
  const backup = newest && newest.revision > salvaged.soundAt ? newest : undefined; // what was deleted since an older one stays deleted
  if (!backup && !isNearlyAll(salvaged)) throw storeError("corrupt", { path, reason: `${missingOf(salvaged)}, and there is no snapshot` });
  const { rows, fromBackup } = backup ? mergeSalvaged(salvaged.rows, backup) : { rows: salvaged.rows, fromBackup: 0 };
  const building = buildingPath(path);
  const head = Math.max(backup?.revision ?? 0, salvaged.reserved, newestOf(salvaged.rows)) + REVISIONS_SKIPPED;
  rmSync(building, { recursive: true, force: true });
  try {
    await buildStore({ path: building, rows, head: () => head, clock });
    rmSync(finishedPath(path), { recursive: true, force: true });
    renameSync(building, finishedPath(path));
  } catch (error) {
    rmSync(building, { recursive: true, force: true });
    throw error;
  }
  replaceStore(path, aside);
  return { rows: rows.length, lost: salvaged.lost, mayBeOld: salvaged.soundAt === 0 || !salvaged.hasLast, backup: backup && { file: backup.file, rows: fromBackup }, aside };
}

/** By key the rows of the backup, but for those written again later; and what was made later. Pure. */
export function mergeSalvaged(salvaged: readonly Row[], backup: BackupRows): { readonly rows: readonly Row[]; readonly fromBackup: number } {
  const later = salvaged.filter(({ revision }) => revision > backup.revision);
  const rewritten = new Set(later.map(({ key }) => key));
  const older = backup.rows.filter(({ key }) => !rewritten.has(key));
  return { rows: [...older, ...later], fromBackup: older.length };
}

/** Whether the backup can be of the past of what is `salvaged`: a row of that time is the same in both. Of nothing from then anything can be the past. Pure. */
export function isOfPast(backup: BackupRows, salvaged: readonly Row[]): boolean {
  const then = salvaged.filter(({ revision }) => revision <= backup.revision);
  const rows = new Map(backup.rows.map((row) => [row.key, row]));
  return then.length === 0 || then.some((row) => Bun.deepEquals(rows.get(row.key), row));
}

/** Pure. */
export function isNearlyAll({ rows, lost, unreadableShare }: Salvaged): boolean {
  return lost !== undefined && rows.length > 0 && lost <= LOST_SHARE_MAX * (rows.length + lost) && unreadableShare <= LOST_SHARE_MAX;
}

function missingOf({ rows, lost, unreadableShare }: Salvaged): string {
  if (lost === undefined) return "nobody can tell how much of it is lost";
  return lost > LOST_SHARE_MAX * (rows.length + lost) ? `${lost} of ${rows.length + lost} rows are lost` : `${Math.round(unreadableShare * 100)} % of what was written is lost`;
}

function newestOf(rows: readonly Row[]): Revision {
  return rows.reduce((max, { revision }) => Math.max(max, revision), 0);
}

const NOTHING: Salvaged = { rows: [], lost: undefined, reserved: 0, soundAt: 0, unreadableShare: 1, hasLast: false };

/** Of a copy: LevelDB's repair works in place, and a second damage must not meet the only one there is. */
async function salvage(path: string, clock: StoreClock): Promise<Salvaged> {
  const copy = copyPath(path);
  rmSync(copy, { recursive: true, force: true });
  try {
    if (!isLevelStore(path)) return NOTHING;
    copyReadable(path, copy);
    const told = { unreadableShare: unreadableShare(copy), hasLast: isLogWhole(copy) }, found = (await readable(copy, clock)) ?? (await afterRepair(copy, clock));
    return found ? { ...found, ...told } : NOTHING;
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

/** A directory of files. Of what the disk cannot read there are zeros in the copy: the rest of the file can be sound. */
function copyReadable(path: string, copy: string): void {
  mkdirSync(copy, { mode: 0o700 });
  for (const { name } of readdirSync(path, { withFileTypes: true }).filter((entry) => !entry.isDirectory())) {
    const [from, to] = [join(path, name), join(copy, name)];
    try {
      copyFileSync(from, to);
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      rmSync(to, { force: true });
      copyInPieces(from, to);
    }
  }
}

function copyInPieces(from: string, to: string): void {
  const { size } = statSync(from), [source, target] = [openSync(from, "r"), openSync(to, "w", 0o600)];
  try {
    for (let at = 0; at < size; at += SECTORS_BYTES) writeSync(target, pieceAt(source, { at, length: Math.min(SECTORS_BYTES, size - at) }), 0, undefined, at);
  } finally {
    closeSync(source);
    closeSync(target);
  }
}

function pieceAt(file: number, { at, length }: { readonly at: number; readonly length: number }): Buffer {
  const bytes = Buffer.alloc(length);
  try {
    readSync(file, bytes, 0, length, at);
    return bytes;
  } catch (error) {
    if (isUnreadable(error)) return Buffer.alloc(length);
    throw error;
  }
}

async function afterRepair(path: string, clock: StoreClock): ReturnType<typeof readable> {
  try {
    await repairLevel(path);
  } catch (error) {
    if (isCorrupt(error)) return undefined;
    throw error;
  }
  const tables = readdirSync(path).filter((name) => name.endsWith(".ldb"));
  return tables.length === 0 ? undefined : await readable(path, clock, { repaired: true });
}

async function readable(path: string, clock: StoreClock, { repaired = false }: { readonly repaired?: boolean } = {}): Promise<Omit<Salvaged, "unreadableShare" | "hasLast"> | undefined> {
  let engine: Engine | undefined;
  try {
    engine = await levelEngine({ path, clock, repaired, freeBytesMin: 0 });
    const { rows, meta, problems, newerLayout } = await load(engine);
    if (newerLayout !== undefined) throw storeError("unavailable", { path, reason: `the store has layout ${newerLayout}, of a newer version of this program` });
    const isLast = meta !== undefined && newestOf(rows.map(({ row }) => row)) <= meta.head; // rows of later batches than its own: how many there were then it cannot tell
    return { rows: rows.map(({ row }) => row), lost: isLast ? Math.max(0, meta.rows - rows.length) : undefined, reserved: meta?.reserved ?? 0, soundAt: meta && problems.length === 0 ? meta.head : 0 };
  } catch (error) {
    if (isCorrupt(error)) return undefined;
    throw error;
  } finally {
    await engine?.close();
  }
}

/** By revision: clocks were wrong before, revisions never. Those that cannot be read, and those of another cluster, are passed over. */
async function newestBackup(files: readonly string[], salvaged: readonly Row[]): Promise<(BackupRows & { readonly file: string }) | undefined> {
  const readable: { readonly file: string; readonly revision: Revision }[] = [];
  for (const file of files) {
    try {
      if (existsSync(file)) readable.push({ file, revision: (await inspectBackup(file)).revision });
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
    }
  }
  for (const one of readable.toSorted((a, b) => b.revision - a.revision)) {
    const backup = { ...one, rows: await readBackupRows(one.file) };
    if (isOfPast(backup, salvaged)) return backup;
  }
  return undefined;
}

function isCorrupt(error: unknown): boolean {
  return error instanceof StoreError && error.code === "corrupt";
}
