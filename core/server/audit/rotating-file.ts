/**
 * A file that is written line by line, and put aside when it has grown too large: audit.log becomes audit-2026-01-31T10-00-00.000.log, with .gz behind it
 * if it is compressed. Of those put aside, the newest are kept, and none that is too old.
 *
 * Writes are gathered while one is under way, so that a busy server writes long pieces rather than many. A file that could not be written to is opened anew: the disk may be another
 * since. Half a line, of a full disk or a power cut, is no beginning of another.
 *
 * Source: gopkg.in/natefinch/lumberjack.v2, which upstream uses: names and limits
 */
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, open, readdir, rename, unlink, type FileHandle } from "node:fs/promises";
import { basename, dirname, extname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import type { Clock } from "../../lifecycle/clock.ts";
import { isNotThere } from "../../lifecycle/if-there.ts";
import type { Log } from "../../observe/log.ts";

export interface RotatingFileOptions {
  readonly path: string;
  readonly bytesMax: number;
  /** Of files put aside; 0: any number, any age. */
  readonly filesMax: number;
  readonly ageMaxMs: number;
  /** Whether files put aside are compressed: audit-….log.gz. */
  readonly compress?: boolean;
  readonly clock: Clock;
  readonly log: Log;
  /** Told of lines that are in no file. */
  readonly lost?: ((lines: number) => void) | undefined;
}

/** Lines that wait for a disk that does not take them: past that they are lost, and counted. */
const WAITING_BYTES_MAX = 64 * 1024 * 1024;

export class RotatingFile {
  readonly #options: RotatingFileOptions;
  #waiting: string[] = [];
  #waitingBytes = 0;
  /** Of what waits. */
  #written = Promise.withResolvers<boolean>();
  #writing: Promise<void> | undefined;
  #file: FileHandle | undefined;
  #size = 0;
  #compressing: { readonly done: Promise<void>; readonly stop: AbortController } | undefined;

  constructor(options: RotatingFileOptions) {
    this.#options = options;
  }

  /** Resolves once the line is in the file, or with false once it is lost. */
  write(line: string): Promise<boolean> {
    if (this.#waitingBytes > WAITING_BYTES_MAX) {
      this.#options.lost?.(1);
      return Promise.resolve(false);
    }
    this.#waiting.push(line);
    this.#waitingBytes += line.length;
    this.#writing ??= this.#drain();
    return this.#written.promise;
  }

  /** Resolves once all is written. What is not compressed yet is the next time. */
  async close(): Promise<void> {
    while (this.#writing) await this.#writing;
    await this.#closeFile();
    this.#compressing?.stop.abort();
    await this.#compressing?.done;
  }

  async #closeFile(): Promise<void> {
    const { log, path } = this.#options;
    const file = this.#file;
    this.#file = undefined;
    try {
      await file?.close();
    } catch (error) {
      log.error("the audit log cannot be closed", { path, error });
    }
  }

  async #drain(): Promise<void> {
    const { log, path } = this.#options;
    await Promise.resolve(); // what comes in the same turn is written together
    while (this.#waiting.length > 0) {
      const lines = this.#waiting;
      const bytes = Buffer.from(`${lines.join("\n")}\n`);
      const written = this.#written;
      this.#waiting = [];
      this.#waitingBytes = 0;
      this.#written = Promise.withResolvers();
      try {
        this.#file ??= await this.#open();
        if (this.#size > 0 && this.#size + bytes.length > this.#options.bytesMax) await this.#rotate();
        await this.#file.appendFile(bytes);
        this.#size += bytes.length;
      } catch (error) {
        this.#options.lost?.(lines.length);
        log.error("the audit log cannot be written", { path, error });
        await this.#closeFile();
        written.resolve(false);
      }
      written.resolve(true);
    }
    this.#writing = undefined;
  }

  async #open(): Promise<FileHandle> {
    const { path } = this.#options;
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const file = await open(path, "a", 0o600);
    try {
      const stat = await file.stat();
      this.#size = stat.size;
      if (stat.isFile() && stat.size > 0 && !(await endsWithLine(path, stat.size))) await file.appendFile("\n");
    } catch (error) {
      await file.close();
      throw error;
    }
    await this.#clear().catch((error: unknown) => this.#options.log.warn("audit logs that were put aside cannot be cleared away", { path, error }));
    if (this.#options.compress) this.#compress();
    return file;
  }

  async #rotate(): Promise<void> {
    const { path, clock } = this.#options;
    await this.#closeFile();
    const extension = extname(path);
    await rename(path, `${path.slice(0, path.length - extension.length)}-${stampOf(clock.nowMs())}${extension}`).catch((error: unknown) => {
      if (!isNotThere(error)) throw error; // somebody has taken it away
    });
    this.#file = await this.#open();
  }

  async #clear(): Promise<void> {
    const { path, filesMax, ageMaxMs, clock } = this.#options;
    if (filesMax === 0 && ageMaxMs === 0) return;
    const found = newestFirst(await putAside(path), stampOf(clock.nowMs()));
    const kept = new Set(filesMax > 0 ? found.slice(0, filesMax) : found);
    for (const aside of found) {
      const tooOld = ageMaxMs > 0 && clock.nowMs() - putAsideMs(aside.stamp) > ageMaxMs;
      if (tooOld || !kept.has(aside)) for (const name of aside.names) await unlink(join(dirname(path), name));
    }
  }

  /** Beside what is written meanwhile. */
  #compress(): void {
    const { path, log } = this.#options;
    const before = this.#compressing?.done;
    const stop = new AbortController();
    const all = async (): Promise<void> => {
      await before;
      for (const { names } of await putAside(path))
        for (const name of names) if (!name.endsWith(GZ) && !stop.signal.aborted) await compressed(join(dirname(path), name), stop.signal);
    };
    const done = all().catch((error: unknown) => {
      if (!stop.signal.aborted) log.warn("an audit log that was put aside cannot be compressed", { path, error });
    });
    this.#compressing = { done, stop };
  }
}

const GZ = ".gz";

interface PutAside { readonly stamp: string; readonly names: readonly string[] }

/** By what their names say, but for those of a time to come: they are of before the clock was set back. */
function newestFirst(all: readonly PutAside[], now: string): readonly PutAside[] {
  const isAhead = ({ stamp }: PutAside): boolean => stamp > now;
  return [...all.filter((one) => !isAhead(one)), ...all.filter(isAhead)];
}

/** The latest name first; one that was being compressed when the machine went down is there in both forms. */
async function putAside(path: string): Promise<readonly PutAside[]> {
  const extension = extname(path);
  const prefix = `${basename(path, extension)}-`;
  const byStamp = new Map<string, string[]>();
  for (const name of await readdir(dirname(path))) {
    const plain = basename(name, GZ);
    const stamp = basename(plain, extension).slice(prefix.length);
    if (name.startsWith(prefix) && plain.endsWith(extension) && STAMP.test(stamp)) byStamp.set(stamp, [...(byStamp.get(stamp) ?? []), name]);
  }
  return [...byStamp].map(([stamp, names]) => ({ stamp, names })).toSorted((a, b) => (a.stamp < b.stamp ? 1 : -1));
}

/** The file goes once its other form is on the disk. */
async function compressed(path: string, signal: AbortSignal): Promise<void> {
  const target = `${path}${GZ}`;
  try {
    await pipeline(createReadStream(path), createGzip(), createWriteStream(target, { mode: 0o600 }), { signal });
    const file = await open(target, "r+");
    await file.sync().finally(() => file.close());
  } catch (error) {
    await unlink(target).catch(() => undefined);
    throw error;
  }
  await unlink(path);
}

const STAMP = /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}$/;

function stampOf(ms: number): string { return new Date(ms).toISOString().slice(0, 23).replaceAll(":", "-"); }

function putAsideMs(stamp: string): number { return Date.parse(`${stamp.replace(/T(\d\d)-(\d\d)-/, "T$1:$2:")}Z`); }

async function endsWithLine(path: string, size: number): Promise<boolean> {
  const file = await open(path, "r");
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
    return bytesRead === 0 || buffer[0] === 10;
  } finally {
    await file.close();
  }
}
