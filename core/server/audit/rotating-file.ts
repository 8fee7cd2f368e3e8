/**
 * A file that is written line by line, and put aside when it has grown too large: audit.log becomes audit-2026-01-31T10-00-00.000.log. Of those put
 * aside, the newest are kept, and none that is too old.
 *
 * Writes are gathered while one is under way, so that a busy server writes long pieces rather than many. A file that could not be written to is opened anew: the disk may be another
 * since. Half a line, of a full disk or a power cut, is no beginning of another.
 *
 * Source: gopkg.in/natefinch/lumberjack.v2, which upstream uses: names and limits
 */
import { mkdir, open, readdir, rename, unlink, type FileHandle } from "node:fs/promises";
import { basename, dirname, extname, join } from "node:path";
import type { Clock } from "../../lifecycle/clock.ts";
import type { Log } from "../../observe/log.ts";

export interface RotatingFileOptions {
  readonly path: string;
  readonly bytesMax: number;
  /** Of files put aside; 0: any number, any age. */
  readonly filesMax: number;
  readonly ageMaxMs: number;
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
  #written = Promise.withResolvers<void>();
  #writing: Promise<void> | undefined;
  #file: FileHandle | undefined;
  #size = 0;

  constructor(options: RotatingFileOptions) {
    this.#options = options;
  }

  /** Resolves once the line is in the file, or lost. */
  write(line: string): Promise<void> {
    if (this.#waitingBytes > WAITING_BYTES_MAX) {
      this.#options.lost?.(1);
      return Promise.resolve();
    }
    this.#waiting.push(line);
    this.#waitingBytes += line.length;
    this.#writing ??= this.#drain();
    return this.#written.promise;
  }

  /** Resolves once all is written. */
  async close(): Promise<void> {
    while (this.#writing) await this.#writing;
    await this.#closeFile();
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
      }
      written.resolve();
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
    return file;
  }

  async #rotate(): Promise<void> {
    const { path, clock } = this.#options;
    await this.#closeFile();
    const extension = extname(path);
    const stamp = new Date(clock.nowMs()).toISOString().slice(0, 23).replaceAll(":", "-");
    await rename(path, `${path.slice(0, path.length - extension.length)}-${stamp}${extension}`).catch((error: unknown) => {
      if (!isNotFound(error)) throw error; // somebody has taken it away
    });
    this.#file = await this.#open();
  }

  async #clear(): Promise<void> {
    const { path, filesMax, ageMaxMs, clock } = this.#options;
    if (filesMax === 0 && ageMaxMs === 0) return;
    const extension = extname(path);
    const prefix = `${basename(path, extension)}-`;
    const stampOf = (name: string): string => basename(name, extension).slice(prefix.length);
    const names = (await readdir(dirname(path))).filter((name) => name.startsWith(prefix) && name.endsWith(extension) && STAMP.test(stampOf(name))).sort().reverse();
    for (const [i, name] of names.entries()) {
      const tooOld = ageMaxMs > 0 && clock.nowMs() - putAsideMs(stampOf(name)) > ageMaxMs;
      if (tooOld || (filesMax > 0 && i >= filesMax)) await unlink(join(dirname(path), name));
    }
  }
}

const STAMP = /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}$/;

function putAsideMs(stamp: string): number { return Date.parse(`${stamp.replace(/T(\d\d)-(\d\d)-/, "T$1:$2:")}Z`); }

function isNotFound(error: unknown): boolean { return (error as NodeJS.ErrnoException).code === "ENOENT"; }

async function endsWithLine(path: string, size: number): Promise<boolean> {
  const file = await open(path, "r");
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
    return bytesRead === 0 || buffer[0] === 10;
  } finally {
    await file.close();
  }
}
