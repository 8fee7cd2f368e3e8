/** The log of a process without a console: JSON lines in a file, which becomes <file>.1 when it is large, and so on. */
import { closeSync, mkdirSync, openSync, renameSync, rmSync, statSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import type { VerboseLog } from "../core/observe/log.ts";
import { leveledLog } from "./stderr-log.ts";

const BYTES_MAX = 10 * 1024 * 1024;
const FILES_MAX = 5;

export function fileLog(path: string, level: string, bytesMax: number = BYTES_MAX): VerboseLog {
  mkdirSync(dirname(path), { recursive: true });
  let file = openSync(path, "a");
  let bytes = statSync(path).size;
  function rotate(): void {
    closeSync(file);
    rmSync(`${path}.${FILES_MAX - 1}`, { force: true });
    for (let n = FILES_MAX - 2; n >= 0; n--) moveIfThere(n === 0 ? path : `${path}.${n}`, `${path}.${n + 1}`);
    file = openSync(path, "a");
    bytes = 0;
  }
  return leveledLog(level, (line) => {
    if (bytes > bytesMax) rotate();
    bytes += writeSync(file, line);
  });
}

function moveIfThere(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}
