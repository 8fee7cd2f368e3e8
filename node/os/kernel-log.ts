/**
 * The kernel's log, /dev/kmsg: what it has said since it was asked last.
 *
 *   const log = kernelLog();
 *   …
 *   for (const line of log?.lines() ?? []) …
 *
 * API: https://docs.kernel.org/admin-guide/abi-testing.html (dev-kmsg)
 */
import { closeSync, constants, openSync, readSync } from "node:fs";

export interface KernelLog {
  /** None twice, and none from before we opened it. What was overwritten meanwhile is skipped. */
  lines(): string[];
  close(): void;
}

const PATH = "/dev/kmsg";
/** One record is no longer. */
const RECORD_BYTES_MAX = 8192;

/** Undefined: this machine has none, or not for us. */
export function kernelLog(path = PATH): KernelLog | undefined {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return undefined; // in a container, or for nobody but its owner
  }
  const buffer = Buffer.alloc(RECORD_BYTES_MAX);

  function record(): string | undefined {
    for (;;) {
      try {
        return buffer.toString("utf8", 0, readSync(fd, buffer, 0, buffer.length, null));
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (code === "EAGAIN") return undefined;
        if (code !== "EPIPE") throw error; // overwritten: the next one is the oldest there is
      }
    }
  }

  function lines(): string[] {
    const found: string[] = [];
    for (let text = record(); text !== undefined && text !== ""; text = record()) found.push(messageOf(text));
    return found;
  }

  try {
    while (record()); // of before
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  return { lines, close: () => closeSync(fd) };
}

/** "6,339,5140900,-;message", and lines with what belongs to it. */
export function messageOf(record: string): string {
  return record.slice(record.indexOf(";") + 1).split("\n")[0]!;
}
