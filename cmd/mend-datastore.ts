/** The built-in store, opened although it is damaged: storage/mend.ts. What of it is told, and how many damaged stores are kept. */
import { readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileTextSync } from "../core/lifecycle/file-text.ts";
import type { Log } from "../core/observe/log.ts";
import { backupRevision, readBackupRows } from "../storage/backup.ts";
import type { StoreClock } from "../storage/engine.ts";
import { type Mended, mendStore } from "../storage/mend.ts";
import { type Store, StoreError, type Value } from "../storage/store.ts";
import { freePath, newestSnapshot, snapshotNames, stamp } from "./snapshot-files.ts";

/** Of damaged stores, the newest. */
const KEPT = 2;
/** A disk that damages whatever is written to it is not written to all day, each time the server is started again. */
const AGAIN_MS = 60 * 60_000;
/** Snapshots may lie on a disk of another machine: one that does not answer keeps no server from starting. */
const ANSWER_MS = 10_000;

interface Options {
  readonly path: string;
  /** Directory of snapshots. */
  readonly snapshots: string;
  /** --mend-store. */
  readonly mends: boolean;
  readonly clock: StoreClock & { nowMs(): number };
  readonly log: Log;
  /** Writes that may be lost with the power. */
  isVolatile(key: string, value: Value | undefined, previous: Value | undefined): boolean;
  open(): Promise<Store>;
}

export interface Opened {
  readonly store: Store;
  /** What was wrong and is no more, for people. */
  readonly mended: string | undefined;
  /** What is missing, and what to do about it, for people. */
  readonly behind: string | undefined;
}

/** Throws what `open` throws if the store cannot be mended. */
export async function openMended({ path, snapshots, mends, clock, log, isVolatile, open }: Options): Promise<Opened> {
  try {
    const store = await open();
    return { store, mended: undefined, behind: await behindSnapshot({ store, snapshots, clock, log, isVolatile }) };
  } catch (error) {
    if (!mends || !(error instanceof StoreError) || error.code !== "corrupt") throw error;
    const mended = await mend({ path, snapshots, clock, log }, error);
    return { store: await open(), mended, behind: undefined };
  }
}

/**
 * A log that a disk has cut off ends as one does that a loss of power ended: nothing in it says that there was more. A snapshot of a later state does. It is told and not put back: the file may be
 * another cluster's, about to be restored, or the whole disk was set back on purpose.
 */
async function behindSnapshot({ store, snapshots, clock, log, isVolatile }: Pick<Options, "snapshots" | "clock" | "log" | "isVolatile"> & { readonly store: Pick<Store, "revision" | "get"> }): Promise<string | undefined> {
  try {
    const newest = await inTime(newestSnapshot(snapshots, clock.nowMs()), clock);
    if (newest === undefined) return undefined;
    const file = join(snapshots, newest), taken = await inTime(backupRevision(file), clock);
    if (taken <= store.revision) return undefined;
    let missing = 0;
    for (const { key, revision, value } of await readBackupRows(file))
      if (revision > store.revision && !isVolatile(key, value, (await store.get(key))?.value)) missing++;
    if (missing === 0) return undefined;
    log.error("the store is older than its newest snapshot: what was written last is missing", { revision: store.revision, snapshot: file, snapshotRevision: taken, missing });
    return `The cluster's store is older (revision ${store.revision}) than ${file} (${taken}): ${missing} objects, or their last changes, are missing. To go back to that snapshot stop the server and run: coracle snapshot restore ${file}`;
  } catch (error) {
    log.warn("the newest snapshot cannot be read", { snapshots, error });
    return undefined;
  }
}

async function inTime<T>(asked: Promise<T>, clock: StoreClock): Promise<T> {
  const late = Promise.withResolvers<never>();
  const alarm = clock.after(ANSWER_MS, () => late.reject(new Error(`the directory of snapshots does not answer within ${ANSWER_MS / 1000} s`)));
  try {
    return await Promise.race([asked, late.promise]);
  } finally {
    alarm.cancel();
  }
}

async function mend({ path, snapshots, clock, log }: Omit<Options, "mends" | "isVolatile" | "open">, damage: StoreError): Promise<string> {
  const reason = String(damage.fields["reason"] ?? damage.message);
  const lately = damagedStores(path).filter((one) => Math.abs(clock.nowMs() - statSync(one).ctimeMs) < AGAIN_MS);
  if (lately.length >= KEPT) {
    log.error("the store is damaged again, and is not mended more than twice in an hour: the disk may be failing", { path, reason, before: lately });
    throw damage;
  }
  const note = noteOf(path), state = await stateOf(path, snapshots);
  if (fileTextSync(note) === state) {
    log.error("the store is damaged and could not be mended before; nothing has changed since", { path, reason });
    throw damage;
  }
  log.error("the store is damaged: making a sound one of what can be read and the newest snapshot", { path, reason });
  try {
    const { mended: { rows, lost, backup, aside }, told, deleted } = await mendHere({ path, snapshots, clock });
    log.error("the store is mended", { path, rows, lost, snapshot: backup?.file, fromSnapshot: backup?.rows, keptIn: aside, deleted });
    return `The cluster's store was damaged (${reason}) and has been mended: ${told}`;
  } catch (error) {
    if (error instanceof StoreError && error.code !== "corrupt" && error.code !== "full") throw error;
    log.error("the store could not be mended", { path, error });
    if (error instanceof StoreError && error.code === "corrupt") writeFileSync(note, state);
    throw damage;
  }
}

/** Mends the store with this server's snapshots, and keeps the newest of those that were damaged. `told`: what became of it, for people. Throws as mendStore. */
export async function mendHere({ path, snapshots, clock }: Pick<Options, "path" | "snapshots" | "clock">): Promise<{ readonly mended: Mended; readonly told: string; readonly deleted: readonly string[] }> {
  const mended = await mendStore({ path, aside: await freePath(`${path}-damaged-${stamp(clock.nowMs())}`), backups: (await snapshotNames(snapshots)).map((name) => join(snapshots, name)), clock });
  const { rows, lost, mayBeOld, backup, aside } = mended;
  const deleted = damagedStores(path).filter((one) => one !== aside).slice(0, 1 - KEPT); // whatever the clock says, this one is the newest
  for (const gone of deleted) rmSync(gone, { recursive: true, force: true });
  rmSync(noteOf(path), { force: true });
  return { mended, told: `${rows} objects, ${backup ? `${backup.rows} of them as they were in ${basename(backup.file)}` : `${lost ?? 0} could not be read${mayBeOld ? ", and of what was changed last some may be as it was before" : ""}`}; the damaged one is kept in ${aside}`, deleted };
}

/** Where it stands that the store could not be mended, and in which state that was. */
function noteOf(path: string): string { return `${path}.not-mended`; }

/** What a mending has to go by. Who is started again and again tries once, or the disk would be written to each time. */
async function stateOf(path: string, snapshots: string): Promise<string> {
  const files = readdirSync(path).filter((name) => !/^(LOG|LOCK)/.test(name)).sort(); // these two change whenever it is opened
  return JSON.stringify([files.map((name) => [name, statSync(join(path, name)).size]), await snapshotNames(snapshots)]);
}

/** Oldest first. */
function damagedStores(path: string): string[] {
  const directory = dirname(path);
  return readdirSync(directory).filter((name) => name.startsWith(`${basename(path)}-damaged-`)).sort().map((name) => join(directory, name));
}
