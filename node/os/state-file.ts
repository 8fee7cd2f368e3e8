/**
 * Small JSON files without which a node would forget what it has promised. They are on the disk before they take the place of the last one; what a worn disk makes of one all the
 * same is put aside, for somebody to look at, and is as if it had not been there: a node that does not start helps nobody.
 */
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Log } from "../../core/observe/log.ts";

export class CorruptStateError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "CorruptStateError";
  }
}

/** Whole or not at all, also when the power goes. */
export function writeStateFile(path: string, value: object): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o750 });
  const file = openSync(`${path}.tmp`, "w", 0o600);
  try {
    writeFileSync(file, JSON.stringify(value));
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(`${path}.tmp`, path);
}

/** Undefined: there is none. Throws CorruptStateError for what is not JSON. */
export function parseStateFile<T>(path: string): T | undefined {
  if (!existsSync(path)) return undefined;
  try {
    return JSON.parse(readFileSync(path, "utf8")) as T;
  } catch (cause) {
    if (cause instanceof SyntaxError) throw new CorruptStateError(`${path} is corrupted: ${cause.message}`, { cause });
    throw cause;
  }
}

/** What the file holds; undefined if there is none, or was none that can be read. `read`: throws CorruptStateError. */
export function readStateFile<T>(path: string, log: Pick<Log, "error">, read: (path: string) => T | undefined = parseStateFile): T | undefined {
  try {
    return read(path);
  } catch (error) {
    if (!(error instanceof CorruptStateError)) throw error;
    const aside = `${path}.corrupt`;
    renameSync(path, aside);
    log.error("a state file is corrupted and was put aside, going on without it", { file: path, aside, error });
    return undefined;
  }
}
