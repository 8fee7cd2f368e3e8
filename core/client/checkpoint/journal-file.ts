/**
 * The file of a journal: one line for each write of a key, of which the last counts.
 *
 *   <crc32> ["key",value]\n     no value: the key is gone
 *
 * Values stay on the disk, in memory are only keys and places. Lines are appended; when much of the file is past, it is written anew beside the old
 * one and renamed over it. What a power cut leaves of the last append is cut off before the next. A line that the disk has damaged costs what stood in
 * it; a file that cannot be read at all is written anew: who has it can ask the server again, and must start without.
 */
import { closeSync, openSync, readFileSync, readSync } from "node:fs";
import { mkdir, open, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { crc32 } from "node:zlib";
import { ifThereSync } from "../../lifecycle/if-there.ts";
import type { Log } from "../../observe/log.ts";

/** JSON texts by key. Undefined: the key is deleted. */
export type Batch = ReadonlyMap<string, string | undefined>;

interface Place { readonly offset: number; readonly length: number }

/** A file with less than this in it that no longer counts is not worth writing anew. */
const GARBAGE_BYTES_MIN = 256 * 1024;
const CHECKSUM_LENGTH = 8;
const HEAD_LENGTH = CHECKSUM_LENGTH + 1; // and a space
/** Of [""], the least that can stand behind the head. */
const BODY_LENGTH_MIN = 4;

export class JournalFile {
  readonly #path: string;
  #places = new Map<string, Place>();
  #size = 0; // all lines before this are whole
  #liveBytes = 0; // of the lines in #places
  #torn = false; // an append failed: something of it may stand after #size
  #lost = false; // there is a file, but nothing can be done with it
  #reading: number | undefined; // its descriptor; undefined: there is no file

  /** Reads the file, if there is one. */
  constructor({ path, log }: { readonly path: string; readonly log: Log }) {
    this.#path = path;
    try {
      this.#open(log);
    } catch (error) {
      log.error("the checkpoint cannot be read, another one is begun", { path, error });
      this.#places.clear();
      this.#size = this.#liveBytes = 0;
      this.#lost = true;
    }
  }

  #open(log: Log): void {
    const path = this.#path;
    const bytes = ifThereSync(() => readFileSync(path));
    if (bytes === undefined) return;
    const { end, damaged } = this.#load(bytes);
    this.#size = end;
    if (damaged > 0) log.warn("lines of the checkpoint cannot be read and are left out", { path, lines: damaged });
    if (end < bytes.length) {
      log.warn("the end of the checkpoint cannot be read and is dropped", { path, bytes: bytes.length - end });
      this.#torn = true; // cut off before the next append: a disk that takes no writes now gives back what stands before it all the same
    }
    this.#reading = openSync(path, "r");
  }

  keys(): Iterable<string> { return this.#places.keys(); }

  /** What the disk does not give back as it was written is as if it were not there. */
  get(key: string): string | undefined {
    const at = this.#places.get(key);
    if (!at || this.#reading === undefined) return undefined;
    const bytes = readAt(this.#reading, at);
    if (bytes === undefined) {
      this.#place(key, undefined);
      return undefined;
    }
    return bytes.toString("utf8", HEAD_LENGTH + Buffer.byteLength(JSON.stringify(key)) + 2, bytes.length - 2);
  }

  /** More of it is past than counts, or all of it. */
  get isMostlyPast(): boolean { return this.#lost || this.#size - this.#liveBytes > Math.max(this.#liveBytes, GARBAGE_BYTES_MIN); }

  async append(batch: Batch): Promise<void> {
    const { bytes, places } = render(batch, this.#size);
    await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 });
    const handle = await open(this.#path, "a", 0o600);
    try {
      if (this.#torn) await handle.truncate(this.#size);
      this.#torn = true;
      await handle.appendFile(bytes);
      await handle.datasync();
      this.#torn = false;
    } finally {
      await handle.close();
    }
    this.#size += bytes.length;
    for (const [key, at] of places) this.#place(key, at);
    this.#reading ??= openSync(this.#path, "r");
  }

  /** Writes what counts, with `batch`, into a new file: nothing else stays readable. */
  async rewrite(batch: Batch): Promise<void> {
    const all = new Map<string, string | undefined>();
    for (const key of [...this.#places.keys()]) {
      const json = this.get(key);
      if (json !== undefined) all.set(key, json);
    }
    for (const [key, json] of batch) {
      if (json === undefined) all.delete(key);
      else all.set(key, json);
    }
    const { bytes, places } = render(all, 0);
    await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 });
    const handle = await open(`${this.#path}.next`, "w", 0o600);
    try {
      await handle.writeFile(bytes);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(`${this.#path}.next`, this.#path); // until then the old one is read
    if (this.#reading !== undefined) closeSync(this.#reading);
    this.#reading = openSync(this.#path, "r");
    this.#places = new Map([...places].flatMap(([key, at]) => (at ? [[key, at] as const] : [])));
    this.#size = this.#liveBytes = bytes.length;
    this.#torn = this.#lost = false;
  }

  /** Returns where the lines end that can be read, and how many before that cannot. */
  #load(bytes: Buffer): { readonly end: number; readonly damaged: number } {
    let at = 0, end = 0, unread = 0, damaged = 0;
    for (let next = bytes.indexOf(10, at); next >= 0; next = bytes.indexOf(10, at)) {
      const offset = at, line = readLine(bytes.subarray(offset, next));
      at = next + 1;
      if (!line) {
        unread++;
        continue;
      }
      this.#place(line.key, line.hasValue ? { offset, length: at - offset } : undefined);
      end = at;
      damaged += unread;
      unread = 0;
    }
    return { end, damaged };
  }

  #place(key: string, next: Place | undefined): void {
    this.#liveBytes += (next?.length ?? 0) - (this.#places.get(key)?.length ?? 0);
    if (next) this.#places.set(key, next);
    else this.#places.delete(key);
  }
}

function render(batch: Batch, from: number): { readonly bytes: Buffer; readonly places: ReadonlyMap<string, Place | undefined> } {
  const lines: Buffer[] = [];
  const places = new Map<string, Place | undefined>();
  let offset = from;
  for (const [key, json] of batch) {
    const body = `[${JSON.stringify(key)}${json === undefined ? "" : `,${json}`}]`;
    const line = Buffer.from(`${checksum(body)} ${body}\n`);
    places.set(key, json === undefined ? undefined : { offset, length: line.length });
    offset += line.length;
    lines.push(line);
  }
  return { bytes: Buffer.concat(lines), places };
}

function checksum(body: string | Uint8Array): string { return crc32(body).toString(16).padStart(CHECKSUM_LENGTH, "0"); }

/** A whole line. Undefined: it is not what was written there. */
function readAt(file: number, { offset, length }: Place): Buffer | undefined {
  const bytes = Buffer.allocUnsafe(length);
  try {
    const count = readSync(file, bytes, 0, length, offset);
    return count === length && bytes.toString("latin1", 0, CHECKSUM_LENGTH) === checksum(bytes.subarray(HEAD_LENGTH, -1)) ? bytes : undefined;
  } catch {
    return undefined; // the disk cannot read it
  }
}

/** Undefined: damaged. */
function readLine(line: Buffer): { readonly key: string; readonly hasValue: boolean } | undefined {
  const body = line.subarray(HEAD_LENGTH);
  if (line.length < HEAD_LENGTH + BODY_LENGTH_MIN || line.toString("latin1", 0, CHECKSUM_LENGTH) !== checksum(body)) return undefined;
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
