/**
 * The disk under the store: how much room is left, and what the machine's errors mean.
 */
import { closeSync, fsyncSync, openSync, statfsSync } from "node:fs";
import { access, mkdir, open, statfs } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { StoreError, type StoreErrorCode } from "./store.ts";

/** What to do about each refusal, in the words of someone who has to fix it. */
const REMEDY: Partial<Record<StoreErrorCode, string>> = {
  full: "free some space on this file system; the store goes on by itself",
  corrupt: "stop here and run `coracle check`: it tells what is damaged and whether it can be repaired; otherwise restore a snapshot",
  locked: "stop that first",
  unavailable: "the store could not read or write its files: see the cause",
};

/** Bytes that an unprivileged process may still write where `path` is; undefined if the system cannot tell. */
export function freeBytes(path: string): number | undefined {
  try {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize;
  } catch {
    return undefined; // some network and virtual file systems have no answer: then the write itself will tell
  }
}

/** As freeBytes, beside the event loop: of a disk that may be another machine's, which does not answer. */
export async function askFreeBytes(path: string): Promise<number | undefined> {
  return await statfs(path).then(({ bavail, bsize }) => bavail * bsize, () => undefined);
}

/** Makes `path` and what is missing above it, readable by its owner only, and makes sure that it is still there after a loss of power. */
export async function makeDirectory(path: string): Promise<void> {
  const missing: string[] = [];
  for (let at = resolve(path); !(await access(at).then(() => true, () => false)); at = dirname(at)) missing.push(at);
  if (missing.length === 0) return;
  await mkdir(path, { recursive: true, mode: 0o700 });
  if (process.platform !== "win32") for (const made of missing) await syncPath(dirname(made), "r");
}

/** Makes a file, or the names in a directory, durable. */
export async function syncPath(path: string, flags: "r" | "r+"): Promise<void> {
  const handle = await open(path, flags);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Makes the names in a directory durable. Windows does that by itself and cannot open a directory. */
export function syncDirectory(path: string): void {
  if (process.platform === "win32") return;
  const handle = openSync(path, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** Whether the disk could not read what is there: a bad sector, or a file system that finds itself damaged. */
export function isUnreadable(error: unknown): boolean { return /^(EIO|EUCLEAN|EBADMSG)$/.test(String((error as { code?: unknown } | undefined)?.code)); }

const FAILING = "the disk may be failing: the system's log tells (dmesg); check it and mount it again, or restore a snapshot on another one";
const MEANINGS: readonly [pattern: RegExp, code: StoreErrorCode, reason: string, remedy?: string][] = [
  [/ENOSPC|No space left|not enough space/i, "full", "no space left on the device"],
  [/EDQUOT|quota exceeded/i, "full", "the disk quota is used up"],
  [/LEVEL_LOCKED|already held by process|unable to lock/i, "locked", "another process has the store open"],
  [/LEVEL_CORRUPTION|Corruption:/i, "corrupt", "LevelDB's files are damaged"],
  [/LEVEL_IO_ERROR.*No such file/i, "corrupt", "a file of LevelDB is missing"],
  [/LEVEL_IO_ERROR.*\.(ldb|sst): Invalid argument/i, "corrupt", "a table of LevelDB is cut off"], // it reads behind the end of a mapped file
  [/EACCES|EPERM|Permission denied|Operation not permitted/i, "unavailable", "permission denied"],
  [/EROFS|Read-only file system/i, "unavailable", "the file system is read-only", FAILING],
  [/ENOENT|No such file/i, "unavailable", "no such file or directory"],
  [/ENOTDIR|Not a directory/i, "unavailable", "the path is not a directory"],
  [/EMFILE|ENFILE|Too many open files/i, "unavailable", "too many open files"],
  [/EIO|Input\/output error/i, "unavailable", "the device reports an input/output error", FAILING],
];

/** The StoreError that an error of the system or of LevelDB amounts to. */
export function explain(error: unknown, path: string): StoreError {
  if (error instanceof StoreError) return error;
  const text = causes(error).map((cause) => `${(cause as { code?: unknown }).code ?? ""} ${cause.message}`).join("; ");
  const found = MEANINGS.find(([pattern]) => pattern.test(text));
  // Windows words its errors in the user's language, so an unknown error on a disk without room means: full.
  const code = found?.[1] ?? ((freeBytes(path) ?? Infinity) < NO_ROOM_BYTES ? "full" : "unavailable");
  return storeError(code, { path, reason: found?.[2] ?? text, ...(found?.[3] && { remedy: found[3] }) }, error);
}

/** Less than this is no room at all: LevelDB cannot even start a file. */
const NO_ROOM_BYTES = 64 * 1024;

export function storeError(code: StoreErrorCode, fields: Record<string, unknown>, cause?: unknown): StoreError {
  const remedy = REMEDY[code];
  return new StoreError(code, { ...(remedy && { remedy }), ...fields }, cause === undefined ? undefined : { cause });
}

function causes(error: unknown): Error[] {
  const chain: Error[] = [];
  for (let at = error; at instanceof Error && chain.length < 10; at = at.cause) chain.push(at);
  return chain;
}
