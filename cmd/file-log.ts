/** The log of a process without a console: JSON lines in a file, which becomes <file>.1 when it is large, and so on. */
import { closeSync, mkdirSync, openSync, renameSync, rmSync, statSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { ifThereSync } from "../core/lifecycle/if-there.ts";
import type { VerboseLog } from "../core/observe/log.ts";
import { leveledLog } from "./stderr-log.ts";

const BYTES_MAX = 10 * 1024 * 1024;
const FILES_MAX = 5;

export function fileLog(path: string, level: string, bytesMax: number = BYTES_MAX): VerboseLog {
  mkdirSync(dirname(path), { recursive: true });
  let file: number | undefined = openSync(path, "a");
  let bytes = statSync(path).size;
  function rotate(open: number): void {
    file = undefined;
    bytes = 0; // where the rest cannot be done, the next try is as far away
    closeSync(open);
    rmSync(`${path}.${FILES_MAX - 1}`, { force: true });
    for (let n = FILES_MAX - 2; n >= 0; n--) ifThereSync(() => renameSync(n === 0 ? path : `${path}.${n}`, `${path}.${n + 1}`));
  }
  return leveledLog(level, (line) => {
    if (bytes > bytesMax && file !== undefined) unlessRefused(rotate, file);
    unlessRefused(() => { bytes += writeSync((file ??= openSync(path, "a")), line); });
  });
}

/** A disk that is full, a file that somebody else has open: what is said then is lost, and nothing else. */
function unlessRefused<A extends unknown[]>(act: (...args: A) => void, ...args: A): void {
  try {
    act(...args);
  } catch {
    // there is nowhere to say so
  }
}
