/**
 * A durable map of text to JSON text in one file, for what can be asked for again and only saves the asking: gentle on flash.
 *
 *   <crc32> ["key",value]\n     appended in batches, the last line of a key counts; no value: the key is gone
 *
 * Values stay on the disk, in memory are only keys and places. When half of the file is past, or something is to be forgotten for good, it is
 * written anew beside the old one and renamed over it. What a power cut leaves of the last batch is cut off at the next start.
 */
import { closeSync, openSync, readFileSync, readSync, renameSync, truncateSync } from "node:fs";
import { mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";
import { crc32 } from "node:zlib";
import type { Clock } from "../../lifecycle/clock.ts";
import type { Runnable } from "../../lifecycle/run-all.ts";
import type { Log } from "../../observe/log.ts";

/**
 * How soon it is on the disk, together with all that waits.
 *
 *   soon      within about a second
 *   thrifty   so too, unless there was much of that lately: then within half a minute
 *   later     within half a minute
 */
export type Haste = "soon" | "thrifty" | "later";

export interface Journal extends Runnable {
  keys(prefix: string): readonly string[];
  /** JSON text. */
  get(key: string): string | undefined;
  /** What is the same already is not written. */
  put(key: string, json: string, haste: Haste): void;
  /** `erase`: its text does not stay in the file either, and soon. */
  delete(key: string, options: { readonly erase: boolean }): void;
  /** Writes what waits. */
  flush(): Promise<void>;
}

interface Place { readonly offset: number; readonly length: number }

const SOON_MS = 1_000;
const LATER_MS = 30_000;
const RETRY_MS = 60_000;
/** Thrifty writes that need not wait, one more each `LATER_MS`: an endpoint that comes and goes all day wears out the flash no more than if all waited. */
const THRIFTY_MAX = 10;
/** A file with less than this in it that no longer counts is not worth writing anew. */
const GARBAGE_BYTES_MIN = 256 * 1024;
const HEAD_LENGTH = 9; // checksum and a space

/** Reads the file, if there is one. Call it before anything else uses the directory. */
export function openJournal({ path, clock, log }: { readonly path: string; readonly clock: Clock; readonly log: Log }): Journal {
  let places = new Map<string, Place>();
  const waiting = new Map<string, string | undefined>(); // not written yet; undefined: to be deleted
  let size = 0;
  let liveBytes = 0;
  let erasing = false;
  let torn = false; // an append failed: something of it may stand after `size`
  let file: number | undefined; // for reading
  let alarm: { readonly dueMs: number; cancel(): void } | undefined;
  let flushing: Promise<void> = Promise.resolve();
  let stopped = false;
  let allowance = THRIFTY_MAX; // of thrifty writes, as of allowanceMs
  let allowanceMs = clock.uptimeMs();

  load();

  function load(): void {
    const bytes = readIfThere(path);
    if (bytes === undefined) return;
    let offset = 0;
    for (let end = bytes.indexOf(10, offset); end >= 0; end = bytes.indexOf(10, offset)) {
      const found = readLine(bytes.subarray(offset, end));
      if (!found) break;
      place(found.key, found.hasValue ? { offset, length: end + 1 - offset } : undefined);
      offset = end + 1;
    }
    if (offset < bytes.length) {
      log.warn("the end of the checkpoint cannot be read and is dropped", { path, bytes: bytes.length - offset });
      truncateSync(path, offset);
    }
    size = offset;
    file = openSync(path, "r");
  }

  function place(key: string, next: Place | undefined): void {
    liveBytes += (next?.length ?? 0) - (places.get(key)?.length ?? 0);
    if (next) places.set(key, next);
    else places.delete(key);
  }

  function stored(key: string): string | undefined {
    const at = places.get(key);
    if (!at || file === undefined) return undefined;
    const bytes = Buffer.allocUnsafe(at.length);
    readSync(file, bytes, 0, at.length, at.offset);
    return bytes.toString("utf8", HEAD_LENGTH + Buffer.byteLength(JSON.stringify(key)) + 2, bytes.length - 2);
  }

  function get(key: string): string | undefined { return waiting.has(key) ? waiting.get(key) : stored(key); }

  function schedule(delayMs: number): void {
    const dueMs = clock.uptimeMs() + delayMs;
    if (stopped || (alarm && alarm.dueMs <= dueMs)) return;
    alarm?.cancel();
    const { cancel } = clock.after(delayMs, () => void flush());
    alarm = { dueMs, cancel };
  }

  function scheduleFor(haste: Haste): void {
    if (haste !== "thrifty") return schedule(haste === "soon" ? SOON_MS : LATER_MS);
    const nowMs = clock.uptimeMs();
    if (alarm && alarm.dueMs <= nowMs + SOON_MS) return;
    allowance = Math.min(THRIFTY_MAX, allowance + (nowMs - allowanceMs) / LATER_MS);
    allowanceMs = nowMs;
    const isLeft = allowance >= 1;
    if (isLeft) allowance--;
    schedule(isLeft ? SOON_MS : LATER_MS);
  }

  function flush(): Promise<void> {
    alarm?.cancel();
    alarm = undefined;
    flushing = flushing.then(write).catch((error: unknown) => {
      log.warn("the checkpoint cannot be written, next try soon", { path, error });
      schedule(RETRY_MS);
    });
    return flushing;
  }

  async function write(): Promise<void> {
    if (waiting.size === 0 && !erasing) return;
    const batch = new Map(waiting);
    if (erasing || size - liveBytes > Math.max(liveBytes, GARBAGE_BYTES_MIN)) {
      erasing = false;
      await rewrite(batch).catch((error: unknown) => {
        erasing = true;
        throw error;
      });
    } else await append(batch);
    for (const [key, json] of batch) if (waiting.get(key) === json) waiting.delete(key);
  }

  async function append(batch: ReadonlyMap<string, string | undefined>): Promise<void> {
    const { bytes, places: added } = render(batch, size);
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const handle = await open(path, "a", 0o600);
    try {
      if (torn) await handle.truncate(size);
      torn = true;
      await handle.appendFile(bytes);
      await handle.datasync();
      torn = false;
    } finally {
      await handle.close();
    }
    size += bytes.length;
    for (const [key, at] of added) place(key, at);
    file ??= openSync(path, "r");
  }

  async function rewrite(batch: ReadonlyMap<string, string | undefined>): Promise<void> {
    const all = new Map<string, string | undefined>();
    for (const key of places.keys()) all.set(key, stored(key));
    for (const [key, json] of batch) {
      if (json === undefined) all.delete(key);
      else all.set(key, json);
    }
    const { bytes, places: next } = render(all, 0);
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const handle = await open(`${path}.next`, "w", 0o600);
    try {
      await handle.writeFile(bytes);
      await handle.sync();
    } finally {
      await handle.close();
    }
    renameSync(`${path}.next`, path);
    if (file !== undefined) closeSync(file);
    file = openSync(path, "r");
    places = new Map([...next].flatMap(([key, at]) => (at ? [[key, at] as const] : [])));
    size = liveBytes = bytes.length;
    torn = false;
  }

  return {
    name: "checkpoint",
    keys: (prefix) => [...new Set([...places.keys(), ...waiting.keys()])].filter((key) => key.startsWith(prefix) && (!waiting.has(key) || waiting.get(key) !== undefined)),
    get,
    put(key, json, haste) {
      if (get(key) === json) return;
      waiting.set(key, json);
      scheduleFor(haste);
    },
    delete(key, { erase }) {
      if (get(key) === undefined) return;
      waiting.set(key, undefined);
      erasing ||= erase;
      scheduleFor(erase ? "soon" : "thrifty");
    },
    flush,
    async run(signal, ready) {
      ready();
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      stopped = true;
      await flush();
    },
  };
}

function render(values: ReadonlyMap<string, string | undefined>, from: number): { readonly bytes: Buffer; readonly places: ReadonlyMap<string, Place | undefined> } {
  const lines: Buffer[] = [];
  const places = new Map<string, Place | undefined>();
  let offset = from;
  for (const [key, json] of values) {
    const body = `[${JSON.stringify(key)}${json === undefined ? "" : `,${json}`}]`;
    const line = Buffer.from(`${checksum(body)} ${body}\n`);
    places.set(key, json === undefined ? undefined : { offset, length: line.length });
    offset += line.length;
    lines.push(line);
  }
  return { bytes: Buffer.concat(lines), places };
}

function checksum(body: string | Uint8Array): string { return crc32(body).toString(16).padStart(8, "0"); }

/** Undefined: damaged. */
function readLine(line: Buffer): { readonly key: string; readonly hasValue: boolean } | undefined {
  const body = line.subarray(HEAD_LENGTH);
  if (line.length < HEAD_LENGTH + 4 || line.toString("latin1", 0, HEAD_LENGTH - 1) !== checksum(body)) return undefined;
  const text = body.toString("utf8");
  const end = closingQuote(text);
  return { key: JSON.parse(text.slice(1, end + 1)) as string, hasValue: text[end + 1] === "," };
}

/** Of the JSON string that begins at 1. */
function closingQuote(text: string): number {
  for (let i = 2; ; i++) {
    if (text[i] === "\\") i++;
    else if (text[i] === '"') return i;
  }
}

function readIfThere(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
