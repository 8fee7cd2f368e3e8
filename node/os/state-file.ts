/**
 * Small JSON files without which a node would forget what it has promised. They are on the disk before they take the place of the last one; what a worn disk makes of one all the
 * same is put aside, for somebody to look at, and is as if it had not been there: a node that does not start helps nobody.
 *
 * A card that unpacks an image may take seconds to say that a file is on it. Whoever depends on the file waits for that, and nobody else: what serves the API runs on the same thread.
 */
import { existsSync, readFileSync, renameSync } from "node:fs";
import { mkdir, open, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { isUnreadable } from "../../core/lifecycle/file-text.ts";
import { keyedTurns } from "../../core/lifecycle/keyed-turns.ts";
import type { Log } from "../../core/observe/log.ts";

export class CorruptStateError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "CorruptStateError";
  }
}

const inTurn = keyedTurns();

/** Whole or not at all, also when the power goes. What one file is to hold is written in the order in which it came. */
export async function writeStateFile(path: string, value: object): Promise<void> {
  const text = JSON.stringify(value);
  await inTurn(path, async () => {
    await mkdir(dirname(path), { recursive: true, mode: 0o750 });
    const file = await open(`${path}.tmp`, "w", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(`${path}.tmp`, path);
  });
}

/** A file whose content changes with every step of somebody who cannot wait. */
export interface StateFile {
  /** Replaces what it holds, soon, with what is asked for when it is written: of what is long, and changes with every step, only that is made. */
  save(value: () => object): void;
  /** What was saved is on the disk. Tries once more what could not be written, and throws if it cannot now. */
  written(): Promise<void>;
}

/** Of values that come while one is being written the last is written. */
export function stateFile(path: string): StateFile {
  let unwritten: (() => object) | undefined;
  let writing: Promise<void> | undefined;

  async function writeAll(): Promise<void> {
    try {
      while (unwritten) {
        const value = unwritten;
        await writeStateFile(path, value());
        if (unwritten === value) unwritten = undefined;
      }
    } finally {
      writing = undefined;
    }
  }

  async function written(): Promise<void> {
    if (unwritten) await (writing ??= writeAll());
  }

  return {
    save(value) {
      unwritten = value;
      written().catch(() => undefined); // whoever depends on it tries again and is told
    },
    written,
  };
}

/** Undefined: there is none. Throws CorruptStateError for what is no JSON object, and for what the disk cannot read. */
export function parseStateFile<T>(path: string): T | undefined {
  if (!existsSync(path)) return undefined;
  try {
    const found: unknown = JSON.parse(readFileSync(path, "utf8"));
    if (typeof found !== "object" || found === null) throw new SyntaxError("it holds no object");
    return found as T;
  } catch (cause) {
    if (cause instanceof SyntaxError || isUnreadable(cause)) throw new CorruptStateError(`${path} is corrupted: ${(cause as Error).message}`, { cause });
    throw cause;
  }
}

/** What the file holds; undefined if there is none, or was none that can be read. `read`: throws CorruptStateError, or a TypeError where something is missing that was written. */
export function readStateFile<T>(path: string, log: Pick<Log, "error">, read: (path: string) => T | undefined = parseStateFile): T | undefined {
  try {
    return read(path);
  } catch (error) {
    if (!(error instanceof CorruptStateError || error instanceof TypeError)) throw error;
    const aside = `${path}.corrupt`;
    try {
      renameSync(path, aside);
    } catch (cause) {
      log.error("a state file is corrupted and cannot be put aside, as on a disk that takes no writes any more: going on without it", { file: path, error, cause });
      return undefined;
    }
    log.error("a state file is corrupted and was put aside, going on without it", { file: path, aside, error });
    return undefined;
  }
}
