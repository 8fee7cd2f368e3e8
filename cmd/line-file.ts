/**
 * Lines for a file, written beside the event loop. Most of the time such a write is a matter of memory; with a disk that hangs it takes as long as that does, and all that
 * the process does would wait with it. What is said meanwhile is written together once the disk answers. What the disk does not take is lost, and ends nothing.
 */
import { write, writeSync } from "node:fs";

/** So much may wait. What comes then is lost. */
const WAITING_BYTES_MAX = 4 * 1024 * 1024;

export interface LineFile {
  write(line: string): void;
  /** Writes what waits before it returns: for a process that ends. */
  flush(): void;
}

/** `file`: open for writing. `writeBytes`: calls back with how many were taken, or with what has failed. */
export function lineFile(file: number, writeBytes: (file: number, bytes: Uint8Array, done: (error: unknown, written: number) => void) => void = write): LineFile {
  let waiting: Uint8Array[] = [];
  let waitingBytes = 0, isBusy = false;

  function take(): Uint8Array {
    const all = Buffer.concat(waiting);
    waiting = [];
    waitingBytes = 0;
    return all;
  }

  function next(rest: Uint8Array = take()): void {
    if (rest.length === 0) {
      isBusy = false;
      return;
    }
    writeBytes(file, rest, (error, written) => next(error || written === 0 ? undefined : written < rest.length ? rest.subarray(written) : undefined));
  }

  return {
    write(line) {
      const bytes = Buffer.from(line);
      if (waitingBytes + bytes.length > WAITING_BYTES_MAX) return;
      waiting.push(bytes);
      waitingBytes += bytes.length;
      if (isBusy) return;
      isBusy = true;
      setImmediate(() => next()); // last words are followed by the end: then `flush` has them, and nobody else
    },
    flush() {
      try {
        for (let rest = take(); rest.length > 0; ) rest = rest.subarray(writeSync(file, rest) || rest.length);
      } catch {
        // there is nowhere to say so
      }
    },
  };
}
