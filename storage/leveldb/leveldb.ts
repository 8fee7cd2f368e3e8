/**
 * The engine over LevelDB, and the only file that loads its native addon.
 *
 * What LevelDB is told, and why:
 *   cacheSize        small: rows are read once, when the store opens
 *   writeBufferSize  4 MiB: what a crash makes us read again, and twice that is the memory it takes. For updates a greater one writes no less to
 *                    flash: 2.5 bytes reach the device per byte put with 4 MiB and 2.7 with 16 (one run of 5,000 rows of 1.2 kB, 40,000 updates, 8 a
 *                    batch); it does for the first filling (1.8 against 1.1), which happens once
 *   compression      on: bytes not written wear no flash
 *
 * What LevelDB would do and we prevent: it makes a new, empty store where its CURRENT file is missing, though the data still lies beside it;
 * after a failed write to its log, later writes can land where recovery does not find them (so a failed batch ends this engine); and it drops
 * what it cannot read in a log, and what follows, without a word (so log-damage.ts looks first; and mvcc/ keeps a digest of all rows). And it maps its
 * tables: where the disk cannot read one the kernel ends the process, at each start anew (so all files are read once before, which LevelDB has to do anyway). And keys of a damaged
 * block end it, too (so table-damage.ts looks for such blocks in what was read, and what is repaired is given to LevelDB without them).
 */
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, readSync, renameSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { Level } from "level";
import { explain, freeBytes, isUnreadable, makeDirectory, storeError } from "../disk.ts";
import type { Engine, EngineWrite, StoreClock } from "../engine.ts";
import { StoreError } from "../store.ts";
import { liveTables } from "./live-tables.ts";
import { damageInLog } from "./log-damage.ts";
import { damageInTable, NO_TYPE } from "./table-damage.ts";

/** What Level has and its type does not tell: outside the browser it is ClassicLevel. */
interface ClassicLevel {
  compactRange(from: string, to: string): Promise<void>;
}

export interface LevelOptions {
  readonly path: string;
  readonly clock: Pick<StoreClock, "uptimeMs">;
  /** Below this much free space nothing new is written: LevelDB must still be able to move what it has, and deletes must fit. */
  readonly freeBytesMin?: number;
  /** Make the store if there is none. */
  readonly create?: boolean;
  /** The store was just repaired, which leaves no log, and tables with values that are damaged. */
  readonly repaired?: boolean;
}

/** Two write buffers and one compaction's output (about 12 tables of 2 MiB) at their greatest. */
const FREE_BYTES_MIN = 32 * 1024 * 1024;
/** How old an answer about free space may be, and how many bytes may have been written since. */
const FREE_ASK_MS = 1000;
const FREE_ASK_BYTES = 4 * 1024 * 1024;
const PAGE_ROWS = 1000;
/** Where LevelDB's own repair puts what it cannot read. */
const LOST = "lost";
/** How often LevelDB is told to drop what was overwritten and deleted when room gets short. It rewrites all rows, so not more often than needed. */
const RECLAIM_EVERY_MS = 10 * 60_000;
/** Each takes as long as reading the store does, in which LevelDB puts a few files together at most. */
const LOOKS = 3;

export async function levelEngine(options: LevelOptions): Promise<Engine> {
  const { path, create = false, repaired = false, freeBytesMin = FREE_BYTES_MIN } = options;
  const room = roomWatch({ path, freeBytesMin, clock: options.clock });
  let level: Level<string, Uint8Array>;
  try {
    if (create) await makeDirectory(path);
    const full = create ? undefined : room.refusal(); // before all of it is read, which is asked for again and again
    if (full) throw full;
    refuseDamaged(path, { create, repaired });
    level = new Level(path, { // opens by itself from here on
      keyEncoding: "utf8", valueEncoding: "view", compression: true, cacheSize: 1024 * 1024, writeBufferSize: 4 * 1024 * 1024, createIfMissing: create,
    });
    await level.open();
  } catch (error) {
    throw explain(error, path);
  }

  let failed: StoreError | undefined;

  async function batch(writes: readonly EngineWrite[], { sync }: { readonly sync: boolean }): Promise<void> {
    if (failed) throw failed;
    try {
      await level.batch(writes as EngineWrite[], { sync });
    } catch (error) {
      throw (failed = explain(error, path));
    }
    room.wrote(writes.reduce((sum, write) => sum + write.key.length + (write.type === "put" ? write.value.length : 0), 0));
  }

  async function* range(from: string, to: string): AsyncGenerator<[string, Uint8Array][]> {
    const iterator = level.iterator({ gte: from, lt: to, highWaterMarkBytes: 1024 * 1024 });
    try {
      for (let page = await iterator.nextv(PAGE_ROWS); page.length > 0; page = await iterator.nextv(PAGE_ROWS)) yield page;
    } catch (error) {
      throw explain(error, path);
    } finally {
      await iterator.close();
    }
  }

  async function get(key: string): Promise<Uint8Array | undefined> {
    try {
      return await level.get(key);
    } catch (error) {
      throw explain(error, path);
    }
  }

  async function close(): Promise<void> {
    try {
      await level.close();
    } catch {
      // A store that could not write cannot say goodbye either. What was acknowledged is on disk; the lock goes with the handle.
    }
  }

  /** LevelDB compacts as it is written to, but where nothing can be written any more its garbage would keep it that way. */
  async function reclaim(): Promise<void> {
    try {
      await (level as unknown as ClassicLevel).compactRange("", "\u{10ffff}");
    } catch {
      // No room for it, or closed meanwhile: there is as little room as before, and the next refusal says so.
    }
  }

  let reclaimedMs = -Infinity;
  function refusal(): StoreError | undefined {
    const full = room.refusal();
    if (full && options.clock.uptimeMs() - reclaimedMs >= RECLAIM_EVERY_MS) {
      reclaimedMs = options.clock.uptimeMs();
      void reclaim();
    }
    return full;
  }

  return { get, batch, range, refusal, close };
}

/** Rebuilds LevelDB's table of contents from the files that can be read; what cannot is moved to `lost/` inside the directory. Of a table blocks that are damaged are left out. */
export async function repairLevel(path: string): Promise<void> {
  try {
    for (const name of levelFiles(path).filter(isTable)) leaveOutDamage(path, name);
    await (Level as unknown as { repair(path: string): Promise<void> }).repair(path);
  } catch (error) {
    throw explain(error, path);
  }
}

/** Whether there is a log, and no damage in it: it has what was written last. (One that was cut off at its end cannot be told from a crash.) */
export function isLogWhole(path: string): boolean {
  const logs = levelFiles(path).filter((name) => name.endsWith(".log"));
  return logs.length > 0 && logs.every((name) => damageInLog(readFileSync(join(path, name))) === undefined);
}

/** How much of the store at `path` lies in tables, or parts of them, that are gone or damaged: 0 to 1. */
export function unreadableShare(path: string): number {
  const files = levelFiles(path), sizeOf = (name: string): number => statSync(join(path, name)).size;
  const present = new Map(files.filter(isTable).map((name) => [Number.parseInt(name, 10), name]));
  const live = liveTables(path) ?? new Map([...present].map(([number, name]) => [number, sizeOf(name)]));
  let all = files.filter((name) => name.endsWith(".log")).reduce((sum, name) => sum + sizeOf(name), 0), unreadable = 0;
  for (const [number, size] of live) {
    const name = present.get(number);
    all += size;
    if (name === undefined) unreadable += size;
    else {
      const damage = damageInTable(readFileSync(join(path, name)));
      if (damage) unreadable += damage.types === undefined ? size : damage.bytes;
    }
  }
  return all === 0 ? 0 : Math.min(1, unreadable / all);
}

function leaveOutDamage(path: string, name: string): void {
  const file = join(path, name), damage = damageInTable(readFileSync(file));
  if (damage?.types === undefined) {
    if (damage === undefined) return;
    mkdirSync(join(path, LOST), { recursive: true, mode: 0o700 });
    renameSync(file, join(path, LOST, name));
    return;
  }
  const handle = openSync(file, "r+");
  try {
    for (const at of damage.types) writeSync(handle, Uint8Array.of(NO_TYPE), 0, 1, at);
  } finally {
    closeSync(handle);
  }
}

/**
 * Whether a process has the store at `path` open, as far as the system tells: damage is looked for before LevelDB is asked, which alone can lock. The system's list has the number of the locked file, which another
 * file system may have given to another file, and a device that is not always the one that files say, as on btrfs: so the process is looked at.
 */
export function isOpen(path: string, locksFile = "/proc/locks"): boolean {
  try {
    const lock = join(path, "LOCK");
    const holders = [...readFileSync(locksFile, "utf8").matchAll(new RegExp(`(-?\\d+) [^ ]+:${statSync(lock).ino} `, "g"))];
    return holders.some(([, pid]) => hasOpen(pid!, lock));
  } catch {
    return false; // another system, or there is no store
  }
}

/** True as well if nobody may know. */
function hasOpen(pid: string, file: string): boolean {
  const { dev, ino } = statSync(file), directory = `/proc/${pid}/fd`;
  try {
    return readdirSync(directory).some((name) => {
      const its = statSync(join(directory, name), { throwIfNoEntry: false });
      return its?.dev === dev && its.ino === ino;
    });
  } catch {
    return true;
  }
}

/** Throws StoreError "locked" if another process has the store at `path` open. Asked before anything is done to its files: where they are damaged LevelDB, which alone can lock, is not asked at all, and its own repair asks nobody. */
export function refuseOpen(path: string): void {
  if (isOpen(path)) throw storeError("locked", { path, reason: "another process has the store open" });
}

/**
 * What is wrong with the files of a store that another process has open, which has all of it in memory and will meet this when it opens it the next time; undefined: nothing. Rows are not looked at.
 * Files come and go meanwhile: what is wrong is so at each look.
 */
export function damageWhileOpen(path: string): string | undefined {
  for (let looks = 1; ; looks++) {
    try {
      refuseDamaged(path, { create: false, repaired: false });
      return undefined;
    } catch (error) {
      if (looks < LOOKS) continue;
      if (error instanceof StoreError && error.code === "corrupt") return String(error.fields["reason"]);
      throw explain(error, path);
    }
  }
}

/** Is there anything of a store at `path`? */
export function isLevelStore(path: string): boolean {
  return levelFiles(path).length > 0;
}

function levelFiles(path: string): string[] {
  try {
    return readdirSync(path).filter((name) => /^(CURRENT|MANIFEST-\d+|\d+\.(ldb|sst|log))$/.test(name));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** What LevelDB would not notice, or would make a new and empty store of. */
function refuseDamaged(path: string, { create, repaired }: { readonly create: boolean; readonly repaired: boolean }): void {
  const files = levelFiles(path);
  const damaged = (reason: string): StoreError => storeError("corrupt", { path, reason });
  if (files.length === 0 || isHalfMade(path, files)) {
    if (create) return;
    throw storeError("unavailable", { path, reason: "there is no store here" });
  }
  if (!files.includes("CURRENT")) throw damaged("the file CURRENT is missing");
  if (!files.some((name) => name.startsWith("MANIFEST-"))) throw damaged("the MANIFEST file is missing");
  const logs = files.filter((name) => name.endsWith(".log"));
  if (logs.length === 0 && !repaired) throw damaged("the log is missing"); // an open store always has one, and leaves it behind
  const unreadable = files.find((name) => !canBeRead(join(path, name)));
  if (unreadable !== undefined) throw damaged(`the disk cannot read ${unreadable}`);
  const live = repaired ? undefined : liveTables(path); // what is still wrong then are values
  const damagedTable = files.find((name) => isTable(name) && live?.has(Number.parseInt(name, 10)) && damageInTable(readFileSync(join(path, name))) !== undefined);
  if (damagedTable !== undefined) throw damaged(`the table ${damagedTable} is damaged`);
  for (const name of logs) {
    const at = damageInLog(readFileSync(join(path, name)));
    if (at !== undefined) throw damaged(`the log ${name} is damaged at byte ${at}`);
  }
}

function isTable(name: string): boolean { return /\.(ldb|sst)$/.test(name); }

/** To its end. */
function canBeRead(file: string): boolean {
  const handle = openSync(file, "r"), buffer = Buffer.allocUnsafe(1024 * 1024);
  try {
    while (readSync(handle, buffer) > 0);
    return true;
  } catch (error) {
    if (isUnreadable(error)) return false;
    throw error;
  } finally {
    closeSync(handle);
  }
}

/** What a crash leaves of a store that was just being made: the first MANIFEST, then CURRENT naming it, and no log yet. */
function isHalfMade(path: string, files: readonly string[]): boolean {
  if (!files.every((name) => name === "CURRENT" || name === "MANIFEST-000001")) return false;
  return !files.includes("CURRENT") || (files.length === 2 && readFileSync(join(path, "CURRENT"), "utf8") === "MANIFEST-000001\n");
}

function roomWatch({ path, freeBytesMin, clock }: { path: string; freeBytesMin: number; clock: Pick<StoreClock, "uptimeMs"> }) {
  let askedMs = -Infinity;
  let writtenSince = 0;
  let known: StoreError | undefined;

  function refusal(): StoreError | undefined {
    const nowMs = clock.uptimeMs();
    if (nowMs - askedMs < FREE_ASK_MS && writtenSince < FREE_ASK_BYTES) return known;
    askedMs = nowMs;
    writtenSince = 0;
    const free = freeBytes(path);
    known = free !== undefined && free < freeBytesMin ? storeError("full", { path, freeBytes: free, freeBytesMin }) : undefined;
    return known;
  }

  return { refusal, wrote: (bytes: number): void => void (writtenSince += bytes) };
}
