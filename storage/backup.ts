/**
 * A consistent copy of a store in one file, and a store made from one.
 *
 * The file is zstd-compressed text, one JSON value a line, so that it can be read without us and for as long as there is JSON:
 *
 *   {"format":"coracle-store","version":1,"revision":4711}
 *   ["/registry/pods/default/web-0",4690,{"apiVersion":"v1",…}]        key, revision, value; in the order of keys
 *   ["/snapshot/keys",0,{…}]                                           what the caller adds; no row of the store
 *   {"rows":2,"crc32":305419896}                                       of all lines above, line feeds included
 *
 * A backup is one listing, hence the state at one revision, taken while the store works on; it is the same over LevelDB and over etcd.
 * A restored store goes on a billion revisions later than the backup, and than the store whose place it takes, so that no client that saw the time after the backup meets one of its revisions again:
 * not after it was restored a second time either.
 */
import { createReadStream, existsSync, renameSync, rmSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { Readable } from "node:stream";
import { crc32, createZstdCompress, createZstdDecompress } from "node:zlib";
import { buildStore } from "./build.ts";
import { checkStore, REVISIONS_SKIPPED } from "./check.ts";
import { askFreeBytes, explain, makeDirectory, isUnreadable, storeError, syncPath } from "./disk.ts";
import type { StoreClock } from "./engine.ts";
import { parseValueText, valueText } from "./json-text.ts";
import { isLevelStore } from "./leveldb/leveldb.ts";
import { freezeJson } from "./mvcc/freeze-json.ts";
import { buildingPath, finishedPath, finishReplacing, refuseMounted, replaceStore } from "./replace.ts";
import type { Revision, Row, Store, Value } from "./store.ts";

const FORMAT = "coracle-store";
const VERSION = 1;
/** What the decompressor and the decoder of text say of bytes that nobody here has written. */
const CODES_UNREADABLE = /^(Z_|ZSTD_|ERR_ENCODING_)/;
/** How many bytes may have been written since it was asked what is free. */
const FREE_ASK_BYTES = 4 * 1024 * 1024;
/** Under which keys rows stand that are no rows of the store. */
const ALSO = "/snapshot/";

export interface Backup { readonly rows: number; readonly revision: Revision }

/** The bytes of a backup of the rows of `prefix`. `also`: rows that are in it and not in the store, after the others. */
export async function backupStream(store: Pick<Store, "list">, also: readonly Row[] = [], prefix = ""): Promise<Readable> {
  const { rows, revision } = await store.list({ prefix });
  const text = Readable.from(lines([...rows, ...also], revision));
  const bytes = createZstdCompress();
  text.on("error", (error) => bytes.destroy(error));
  bytes.on("error", () => undefined); // whoever reads it is told, and may come later; without anybody it would end the process
  return text.pipe(bytes);
}

/**
 * Writes what backupStream makes to a file, which appears under its name only once it is complete, undamaged and on disk. Readable by its owner only: it holds secrets.
 * `freeBytesMin` stay free on that disk; throws "full" rather than take them.
 */
export async function saveBackup(bytes: AsyncIterable<Uint8Array>, file: string, { freeBytesMin = 0 }: { readonly freeBytesMin?: number } = {}): Promise<Backup> {
  const partial = `${file}.partial`;
  let lost: { readonly error: unknown } | undefined; // no fault of the disk
  const source = async function* (): AsyncGenerator<Uint8Array> {
    try {
      yield* bytes;
    } catch (error) {
      lost = { error };
      throw error;
    }
  };
  try {
    await makeDirectory(dirname(file));
    await writeAll(leavingFree(freeBytesMin, source(), dirname(file)), partial);
    const { rows, revision } = await inspectBackup(partial);
    await syncPath(partial, "r+");
    await rename(partial, file);
    if (process.platform !== "win32") await syncPath(dirname(file), "r"); // directories cannot be opened there
    return { rows, revision };
  } catch (error) {
    await rm(partial, { force: true });
    if (lost) throw lost.error;
    throw explain(error, file);
  }
}

async function* leavingFree(freeBytesMin: number, bytes: AsyncIterable<Uint8Array>, path: string): AsyncGenerator<Uint8Array> {
  let sinceAsked = FREE_ASK_BYTES;
  for await (const chunk of bytes) {
    sinceAsked += chunk.length;
    if (sinceAsked >= FREE_ASK_BYTES) {
      const free = (await askFreeBytes(path)) ?? Infinity;
      if (free < freeBytesMin) throw storeError("full", { path, freeBytes: free, freeBytesMin });
      sinceAsked = 0;
    }
    yield chunk;
  }
}

export async function backupStore(store: Pick<Store, "list">, file: string): Promise<Backup> {
  return await saveBackup(await backupStream(store), file);
}

/** Reads all of it. Throws "corrupt" unless it is complete and undamaged. */
export async function inspectBackup(file: string): Promise<Backup & { readonly find: (key: string) => Value | undefined }> {
  let revision = 0;
  let rows = 0;
  const also = new Map<string, Value>();
  for await (const entry of readBackup(file)) {
    if ("head" in entry) revision = entry.head;
    else if (entry.row.key.startsWith(ALSO)) also.set(entry.row.key, entry.row.value);
    else rows++;
  }
  return { rows, revision, find: (key) => also.get(key) };
}

/** Which state it is of; the rest of it is not looked at. Throws "corrupt" if it does not begin as a backup does. */
export async function backupRevision(file: string): Promise<Revision> {
  for await (const entry of readBackup(file)) if ("head" in entry) return entry.head;
  throw storeError("corrupt", { path: file, reason: "it is empty", remedy: "use another snapshot" });
}

export interface RestoreOptions {
  readonly file: string;
  readonly path: string;
  readonly clock: StoreClock;
  /** Where a store that is there is moved to. Absent: there must be none. */
  readonly aside?: string | undefined;
  /** Revisions up to this one may have been handed out, by stores that are not there any more. */
  readonly known?: Revision;
}

/** Makes a store at `path` from a backup. One that is there is moved away once the new one is complete; throws "locked" if a server has it open. */
export async function restoreStore({ file, path, clock, aside, known = 0 }: RestoreOptions): Promise<Backup> {
  refuseMounted(path);
  if (!isLevelStore(path)) finishReplacing(path); // the one that was cut off may be all there is, and is kept as any other
  const before = isLevelStore(path);
  if (before && aside === undefined) throw storeError("unavailable", { path, reason: "there is a store already" });
  if (aside !== undefined && existsSync(aside)) throw storeError("unavailable", { path: aside, reason: "there is something already" });
  const handedOut = before ? (await checkStore(path)).revision : 0; // and for its lock; damage is no reason not to replace it
  const building = buildingPath(path);
  rmSync(building, { recursive: true, force: true });
  let head = 0;
  const rows = async function* (): AsyncGenerator<Row> {
    for await (const entry of readBackup(file)) {
      if ("head" in entry) head = Math.max(entry.head, handedOut, known) + REVISIONS_SKIPPED;
      else if (!entry.row.key.startsWith(ALSO)) yield entry.row;
    }
  };
  try {
    const count = await buildStore({ path: building, rows: rows(), head: () => head, clock });
    if (before) await checkStore(path); // no server has been started meanwhile
    rmSync(finishedPath(path), { recursive: true, force: true });
    renameSync(building, finishedPath(path));
    replaceStore(path, aside);
    return { rows: count, revision: head };
  } catch (error) {
    rmSync(building, { recursive: true, force: true });
    throw explain(error, file);
  }
}

/** The rows of the store that are in a backup. Throws "corrupt" like inspectBackup. */
export async function readBackupRows(file: string): Promise<Row[]> {
  const rows: Row[] = [];
  for await (const entry of readBackup(file)) if ("row" in entry && !entry.row.key.startsWith(ALSO)) rows.push(entry.row);
  return rows;
}

function* lines(rows: readonly Row[], revision: Revision): Generator<string> {
  let crc = 0;
  const line = (value: unknown): string => {
    const text = `${valueText(value)}\n`;
    crc = crc32(text, crc);
    return text;
  };
  yield line({ format: FORMAT, version: VERSION, revision });
  for (const { key, revision: at, value } of rows) yield line([key, at, value]);
  yield `${JSON.stringify({ rows: rows.length, crc32: crc })}\n`;
}

/** First the head, then the rows. Throws "corrupt" unless the file is complete and undamaged; only then has all of it been right. */
async function* readBackup(file: string): AsyncGenerator<{ readonly head: Revision } | { readonly row: Row }> {
  const damaged = (reason: string, cause?: unknown): Error => storeError("corrupt", { path: file, reason, remedy: "use another snapshot" }, cause);
  let crc = 0;
  let rows = -1; // the head comes first
  let complete = false;
  try {
    for await (const line of readLines(file)) {
      if (complete) throw damaged("something follows the end");
      const entry = parseValueText(line);
      if (rows >= 0 && !Array.isArray(entry)) {
        const end = entry as { rows?: unknown; crc32?: unknown };
        if (end.rows !== rows || end.crc32 !== crc) throw damaged("rows are missing or changed");
        complete = true;
        continue;
      }
      crc = crc32(`${line}\n`, crc);
      if (rows++ < 0) yield { head: readHead(file, entry, damaged) };
      else yield { row: readRow(entry as [string, Revision, Value]) };
    }
  } catch (error) {
    if (error instanceof SyntaxError) throw damaged("a line is not JSON", error);
    if (isUnreadable(error)) throw damaged("the disk cannot read it", error);
    if ((error as { code?: unknown }).code === "EISDIR") throw damaged("it is a directory");
    throw CODES_UNREADABLE.test(String((error as { code?: unknown }).code)) ? damaged("it cannot be decompressed", error) : error;
  }
  if (!complete) throw damaged("the end is missing");
}

async function* readLines(file: string): AsyncGenerator<string> {
  const source = createReadStream(file);
  const text = createZstdDecompress();
  source.on("error", (error) => text.destroy(error));
  source.pipe(text);
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let rest = "";
  try {
    for await (const chunk of text) {
      const parts = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split("\n");
      rest = parts.pop()!;
      yield* parts;
    }
    if (rest !== "") yield rest;
  } finally {
    source.destroy();
    text.destroy();
  }
}

function readHead(file: string, entry: unknown, damaged: (reason: string) => Error): Revision {
  const { format, version, revision } = entry as { format?: unknown; version?: unknown; revision?: unknown };
  if (format !== FORMAT || typeof revision !== "number") throw damaged("this is no snapshot");
  if (version !== VERSION) throw storeError("unavailable", { path: file, reason: "the snapshot was written by a newer version of this program", remedy: "use that, or another snapshot", version });
  return revision;
}

function readRow([key, revision, value]: [string, Revision, Value]): Row {
  return { key, revision, value: freezeJson(value, { arrays: false }).value };
}

async function writeAll(chunks: AsyncIterable<Uint8Array>, path: string): Promise<void> {
  const handle = await open(path, "w", 0o600);
  try {
    for await (const chunk of chunks) await handle.appendFile(chunk);
  } finally {
    await handle.close();
  }
}
