/**
 * Offline: what is wrong with a store's directory, and making the best of it. Used by `coracle check`.
 *
 * Checking opens LevelDB (which takes the lock, and finishes what a crash interrupted) and reads every row against its checksum and all of them
 * against the digest of the last batch, exactly as opening the store does.
 *
 * Repairing keeps every row that can be read and drops the rest; deleted rows can come back, and rows can be older than they were. So the
 * store goes on at a revision far beyond any that was handed out: every client must list again. A backup is better, if there is one.
 */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { storeError } from "./disk.ts";
import type { Engine } from "./engine.ts";
import { META_KEY } from "./keys.ts";
import { damageWhileOpen, levelEngine, refuseOpen, repairLevel } from "./leveldb/leveldb.ts";
import { load, type Loaded, type Problem } from "./mvcc/load.ts";
import { EMPTIED, type MvccOptions } from "./mvcc/mvcc.ts";
import { encodeMeta, encodeRecord } from "./mvcc/record.ts";
import { StoreError, type Revision } from "./store.ts";

export interface StoreReport {
  readonly path: string;
  readonly problems: readonly Problem[];
  /** "possible": `repairStore` makes it a store again, without the rows named in `problems`. */
  readonly repair: "not needed" | "possible" | "impossible";
  /** False: LevelDB could not open it, and nothing can be said of it but its size. */
  readonly opened: boolean;
  /** Rows that can be read. */
  readonly rows: number;
  /** The revision at which the store would open. */
  readonly revision: Revision;
  /** False after a crash or a kill: nothing is wrong with that. */
  readonly closedInOrder: boolean;
  /** Of all files in the directory. */
  readonly bytes: number;
}

/** Revisions that a repaired or restored store skips, so that none repeats whatever was lost. At 5,000 writes a second they last for two days of writes. */
export const REVISIONS_SKIPPED = 1_000_000_000;

/** What is wrong with the files of a store that a server has open; rows are not looked at. Throws "unavailable" if they cannot be read. */
export function checkOpenStore(path: string): Pick<StoreReport, "path" | "problems" | "bytes"> {
  const what = damageWhileOpen(path);
  return { path, problems: what === undefined ? [] : [{ what }], bytes: bytesIn(path) };
}

/** `wasUsed`: something is known to have been written to it. Throws "locked" if the store is open elsewhere, "unavailable" if there is none or it cannot be read. */
export async function checkStore(path: string, { wasUsed = false }: Pick<MvccOptions, "wasUsed"> = {}): Promise<StoreReport> {
  refuseOpen(path);
  let engine: Engine | undefined;
  try {
    engine = await openOffline(path);
    const loaded = await load(engine);
    const found = report(path, loaded);
    return loaded.empty && wasUsed ? { ...found, problems: [{ what: EMPTIED }], repair: "impossible" } : found;
  } catch (error) {
    if (!isCorrupt(error)) throw error;
    const what = `LevelDB cannot read its files: ${rootMessage(error)}`;
    return { path, problems: [{ what }], repair: "possible", opened: false, rows: 0, revision: 0, closedInOrder: false, bytes: bytesIn(path) };
  } finally {
    await engine?.close();
  }
}

/** Makes a damaged store a sound one again, as far as it can be read. Keep a copy of the directory: what is dropped here is gone. */
export async function repairStore(path: string): Promise<StoreReport> {
  const before = await checkStore(path);
  if (before.repair === "not needed") return before;
  if (before.repair === "impossible") throw storeError("corrupt", { path, reason: before.problems[0]?.what });
  try {
    await keepReadable(path);
  } catch (error) {
    if (!isCorrupt(error)) throw error;
    await repairLevel(path);
    await keepReadable(path, { repaired: true });
  }
  return checkStore(path);
}

async function keepReadable(path: string, options: { readonly repaired?: boolean } = {}): Promise<void> {
  const engine = await openOffline(path, options);
  try {
    const { rows, digest, damaged, meta } = await load(engine);
    const newest = rows.reduce((max, { row }) => Math.max(max, row.revision), meta?.reserved ?? 0);
    const head = newest + REVISIONS_SKIPPED;
    const record = encodeRecord(META_KEY, head, encodeMeta({ head, reserved: head, rows: rows.length, digest, clean: true }));
    await engine.batch([...damaged.map((key) => ({ type: "del", key }) as const), { type: "put", key: META_KEY, value: record.bytes }], { sync: true });
  } finally {
    await engine.close();
  }
}

function openOffline(path: string, options: { readonly repaired?: boolean } = {}): Promise<Engine> {
  return levelEngine({ ...options, path, clock: { uptimeMs: () => 0 }, freeBytesMin: 0 });
}

function report(path: string, loaded: Loaded): StoreReport {
  const { meta, rows, newerLayout } = loaded;
  const newer: Problem[] = newerLayout === undefined ? [] : [{ what: `the store has layout ${newerLayout}, of a newer version of this program` }];
  const problems = [...newer, ...loaded.problems];
  return {
    path,
    problems,
    repair: problems.length === 0 ? "not needed" : newerLayout === undefined ? "possible" : "impossible",
    opened: true,
    rows: rows.length,
    revision: meta ? (meta.clean ? meta.head : meta.reserved) : 0,
    closedInOrder: meta?.clean ?? false,
    bytes: bytesIn(path),
  };
}

function isCorrupt(error: unknown): boolean {
  return error instanceof StoreError && error.code === "corrupt";
}

function rootMessage(error: unknown): string {
  let at = error as Error;
  while (at.cause instanceof Error) at = at.cause;
  return at instanceof StoreError ? String(at.fields["reason"]) : at.message;
}

/** Of the files in a store's directory. */
export function bytesIn(path: string): number {
  return readdirSync(path, { withFileTypes: true }).reduce((sum, entry) => sum + (entry.isFile() ? statSync(join(path, entry.name)).size : 0), 0);
}
