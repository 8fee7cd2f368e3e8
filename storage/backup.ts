/**
 * A consistent copy of a store in one file, and a store made from one.
 *
 * The file is zstd-compressed text, one JSON value a line, so that it can be read without us and for as long as there is JSON:
 *
 *   {"format":"coracle-store","version":1,"revision":4711}
 *   ["/registry/pods/default/web-0",4690,{"apiVersion":"v1",…}]        key, revision, value; in the order of keys
 *   {"rows":1,"crc32":305419896}                                       of all lines above, line feeds included
 *
 * A backup is one listing, hence the state at one revision, taken while the store works on; it is the same over LevelDB and over etcd.
 * A restored store goes on a billion revisions later, so that no client that saw the time after the backup meets one of its revisions again.
 */
import { closeSync, createReadStream, createWriteStream, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { crc32, createZstdCompress, createZstdDecompress } from "node:zlib";
import { REVISIONS_SKIPPED } from "./check.ts";
import { explain, makeDirectory, storeError, syncDirectory } from "./disk.ts";
import type { StoreClock } from "./engine.ts";
import { parseValueText, valueText } from "./json-text.ts";
import { isLevelStore, levelEngine } from "./leveldb/leveldb.ts";
import { Durable } from "./mvcc/durable.ts";
import { freezeJson } from "./mvcc/freeze-json.ts";
import { ValueCodec } from "./mvcc/values.ts";
import type { Revision, Row, Store, Value } from "./store.ts";

const FORMAT = "coracle-store";
const VERSION = 1;
/** Rows restored with one fsync. */
const RESTORE_ROWS = 1000;

/** The file appears under its name only once it is complete and on disk. Readable by its owner only: it holds secrets. */
export async function backupStore(store: Pick<Store, "list">, file: string): Promise<{ readonly rows: number; readonly revision: Revision }> {
  const { rows, revision } = await store.list({ prefix: "" });
  const partial = `${file}.partial`;
  try {
    makeDirectory(dirname(file));
    await pipeline(Readable.from(lines(rows, revision)), createZstdCompress(), createWriteStream(partial, { mode: 0o600 }));
    syncFile(partial);
    renameSync(partial, file);
    syncDirectory(dirname(file));
  } catch (error) {
    rmSync(partial, { force: true });
    throw explain(error, file);
  }
  return { rows: rows.length, revision };
}

/** Makes a store at `path` from a backup. There must be none: move the old one away first. */
export async function restoreStore(options: { readonly file: string; readonly path: string; readonly clock: StoreClock }): Promise<{ readonly rows: number; readonly revision: Revision }> {
  const { file, path, clock } = options;
  if (isLevelStore(path)) throw storeError("unavailable", { path, reason: "there is a store already" });
  const building = `${path}.restoring`;
  rmSync(building, { recursive: true, force: true });
  const engine = await levelEngine({ path: building, clock, create: true });
  try {
    const durable = new Durable({ engine, clock, codec: new ValueCodec([]), rows: [], digest: 0, reserved: 0, connect: () => Promise.reject(storeError("unavailable", { path, reason: "restoring failed" })) });
    let head = 0;
    let count = 0;
    let chunk = new Map<string, { row: Row }>();
    for await (const entry of readBackup(file)) {
      if ("head" in entry) {
        head = entry.head + REVISIONS_SKIPPED;
        continue;
      }
      chunk.set(entry.row.key, entry);
      count++;
      if (chunk.size < RESTORE_ROWS) continue;
      await durable.write(chunk, { head, clean: false });
      chunk = new Map();
    }
    await durable.write(chunk, { head, clean: true });
    await durable.close();
    rmSync(path, { recursive: true, force: true }); // an empty directory at most, as checked above
    renameSync(building, path);
    syncDirectory(dirname(path));
    return { rows: count, revision: head };
  } catch (error) {
    await engine.close();
    rmSync(building, { recursive: true, force: true });
    throw explain(error, file);
  }
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
  const damaged = (reason: string, cause?: unknown): Error => storeError("corrupt", { file, reason, remedy: "use another backup" }, cause);
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
      if (rows++ < 0) yield { head: readHead(entry, damaged) };
      else yield { row: readRow(entry as [string, Revision, Value]) };
    }
  } catch (error) {
    throw error instanceof SyntaxError ? damaged("a line is not JSON", error) : error;
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

function readHead(entry: unknown, damaged: (reason: string) => Error): Revision {
  const { format, version, revision } = entry as { format?: unknown; version?: unknown; revision?: unknown };
  if (format !== FORMAT || typeof revision !== "number") throw damaged("this is no backup of a store");
  if (version !== VERSION) throw storeError("unavailable", { reason: "the backup was written by a newer version of this program", version });
  return revision;
}

function readRow([key, revision, value]: [string, Revision, Value]): Row {
  return { key, revision, value: freezeJson(value, { arrays: false }).value };
}

function syncFile(path: string): void {
  const handle = openSync(path, "r+");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
