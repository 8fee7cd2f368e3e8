/**
 * Writes a set of files so that a reader sees the old set or the new one, never a mixture.
 *
 *   dir/..2026_01_02_03_04_05.123456789/key    the files themselves
 *   dir/..data -> ..2026_…                     swapped by one rename
 *   dir/key -> ..data/key                      what users open
 *
 * Source: kubernetes v1.36 pkg/volume/util/atomic_writer.go (layout and order)
 */
import { constants } from "node:fs";
import { chmod, chown, lchown, mkdir, open, readdir, readFile, readlink, realpath, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import { isUnreadable } from "../../../core/lifecycle/file-text.ts";
import { ifThere } from "../../../core/lifecycle/if-there.ts";
import type { Random } from "../../../core/lifecycle/random.ts";

export interface PayloadFile { readonly data: Uint8Array; readonly mode: number; /** Owner, when it is not root. */ readonly uid?: number | undefined }

/** By path relative to the volume, without leading slash or "..". */
export type Payload = ReadonlyMap<string, PayloadFile>;

const DATA = "..data";
const DATA_NEXT = "..data_tmp";

export interface WriteOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** Called on the directory of the new files before they show. */
  readonly prepare: (path: string) => Promise<void>;
  /** Names that are others' mount points: neither linked nor removed. */
  readonly taken?: ReadonlySet<string> | undefined;
}

/** Returns whether anything had to be written. */
export async function writePayload(directory: string, payload: Payload, { clock, random, prepare, taken = new Set() }: WriteOptions): Promise<boolean> {
  for (const path of payload.keys()) validatePath(path);
  const current = await readlinkIfThere(join(directory, DATA));
  if (current !== undefined && (await holds(join(directory, current), payload))) {
    await syncLinks(directory, payload, taken); // a crash may have come between the swap and the links
    return false;
  }
  const fresh = `..${timestampName(clock.nowMs())}.${Math.floor(random.next() * 1e10)}`;
  try {
    await writeFiles(join(directory, fresh), payload);
    await prepare(join(directory, fresh));
    await swapData(directory, fresh);
  } catch (error) {
    await rm(join(directory, fresh), { recursive: true, force: true }).catch(() => undefined); // what failed first is told; each further try would leave another one, until the disk is full
    throw error;
  }
  await syncLinks(directory, payload, taken);
  for (const { name } of await readdir(directory, { withFileTypes: true })) {
    if (name.startsWith("..") && name !== DATA && name !== fresh) await rm(join(directory, name), { recursive: true, force: true });
  }
  return true;
}

async function writeFiles(directory: string, payload: Payload): Promise<void> {
  await mkdir(directory, { mode: 0o755 });
  await chmod(directory, 0o755);
  for (const [path, { data, mode, uid }] of payload) {
    const target = join(directory, path);
    await mkdir(dirname(target), { recursive: true, mode: 0o755 });
    await writeFile(target, data);
    await chmod(target, mode);
    if (uid !== undefined && process.platform !== "win32") await chown(target, uid, -1);
  }
}

/** Points ..data to `fresh`. Windows cannot rename over a link to a directory: there it is missing for a moment, as it is upstream. */
async function swapData(directory: string, fresh: string): Promise<void> {
  if (process.platform === "win32") return await symlinkAnew(fresh, join(directory, DATA), "dir");
  await symlinkAnew(fresh, join(directory, DATA_NEXT), "dir");
  await rename(join(directory, DATA_NEXT), join(directory, DATA));
}

const PATH_BYTES_MAX = 4096;
const NAME_BYTES_MAX = 255;

/** Throws an Error in upstream's words. */
function validatePath(path: string): void {
  const parts = path.split("/");
  const invalid = (why: string): Error => new Error(`invalid path: ${why}`);
  if (path === "") throw invalid('must not be empty: ""');
  if (path.startsWith("/")) throw invalid(`must be relative path: ${path}`);
  if (Buffer.byteLength(path) > PATH_BYTES_MAX) throw invalid(`must be less than or equal to ${PATH_BYTES_MAX} characters`);
  if (parts.includes("..")) throw invalid(`must not contain '..': ${path}`);
  if (parts.some((part) => Buffer.byteLength(part) > NAME_BYTES_MAX)) throw invalid(`filenames must be less than or equal to ${NAME_BYTES_MAX} characters`);
  if (path.startsWith("..")) throw invalid(`must not start with '..': ${path}`);
}

/** The user's links, one for each first component; those of files that are gone go. */
async function syncLinks(directory: string, payload: Payload, taken: ReadonlySet<string>): Promise<void> {
  const wanted = new Set([...payload.keys()].map((path) => path.split("/")[0]!).filter((name) => !taken.has(name)));
  const typeOf = (name: string): "dir" | "file" => (payload.has(name) ? "file" : "dir");
  const owners = new Map<string, number>(); // gathered once: of empty files there may be as many as a ConfigMap has keys
  for (const [path, { uid }] of payload) if (uid !== undefined && !owners.has(path.split("/")[0]!)) owners.set(path.split("/")[0]!, uid);
  for (const name of wanted) {
    if ((await readlinkIfThere(join(directory, name))) === join(DATA, name)) continue;
    await symlinkAnew(join(DATA, name), join(directory, name), typeOf(name));
    const uid = owners.get(name);
    if (uid !== undefined && process.platform !== "win32") await lchown(join(directory, name), uid, -1);
  }
  for (const { name } of await readdir(directory, { withFileTypes: true })) if (!name.startsWith("..") && !wanted.has(name) && !taken.has(name)) await rm(join(directory, name), { recursive: true, force: true });
}

async function holds(directory: string, payload: Payload): Promise<boolean> {
  const names = await filesIn(directory, "");
  if (names === undefined || names.length !== payload.size) return false;
  for (const name of names) {
    const wanted = payload.get(name);
    const path = join(directory, name);
    if (!wanted || !(await isHeld(path, wanted.data))) return false;
    const { mode, uid } = await stat(path);
    if (process.platform === "win32") continue; // it has other rights, and no owners by number
    if ((mode & 0o700) !== (wanted.mode & 0o700) || (wanted.uid !== undefined && uid !== wanted.uid)) return false; // group bits change with fsGroup
  }
  return true;
}

/** Not by sectors that cannot be read. */
async function isHeld(path: string, data: Uint8Array): Promise<boolean> {
  try {
    return Buffer.from(data).equals(await readFile(path));
  } catch (error) {
    if (isUnreadable(error)) return false;
    throw error;
  }
}

async function filesIn(directory: string, prefix: string): Promise<string[] | undefined> {
  const entries = await ifThere(readdir(directory, { withFileTypes: true }));
  const nested = entries && await Promise.all(entries.map(async (entry) => (entry.isDirectory() ? (await filesIn(join(directory, entry.name), `${prefix}${entry.name}/`)) ?? [] : [`${prefix}${entry.name}`])));
  return nested?.flat();
}

/** `type` matters to Windows only, which must know before whether it is a directory. */
async function symlinkAnew(target: string, path: string, type: "dir" | "file"): Promise<void> {
  await rm(path, { recursive: true, force: true });
  await symlink(target, path, type);
}

async function readlinkIfThere(path: string): Promise<string | undefined> {
  try {
    return await readlink(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "EINVAL") return undefined; // nothing there, or no link
    throw error;
  }
}

/** Go's 2006_01_02_15_04_05. */
function timestampName(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replace(/[-T:]/g, "_");
}

/** What a file system may answer that knows no groups, is read-only, or whose server lets nobody give anything away: no other try changes that. */
const REFUSALS: ReadonlySet<string> = new Set(["EPERM", "EACCES", "EROFS", "EINVAL", "ENOSYS", "ENOTSUP", "EOPNOTSUPP"]);

interface Ownership {
  readonly gid: number;
  readonly readOnly: boolean;
  readonly onlyIfRootDiffers: boolean;
  /** Is called for each file. */
  readonly count?: (() => void) | undefined;
  /** Is called for each file that stays as it is because the file system wants that. */
  readonly onRefused?: ((error: unknown) => void) | undefined;
}

/**
 * Gives a volume to a group: everything in it belongs to `gid` and may be read (and written) by it; new files inherit the group. Where the file system does not
 * give it, the volume is used as it is.
 *
 * Source: kubernetes v1.36 pkg/volume/volume_linux.go
 */
export async function setVolumeOwnership(root: string, { gid, readOnly, onlyIfRootDiffers, count, onRefused }: Ownership): Promise<void> {
  if (process.platform === "win32") return; // fsGroup is Linux' alone
  const setgid = 0o2000;
  const rights = readOnly ? 0o440 : 0o660;
  const wantedDirectory = (mode: number): number => (mode & 0o7777) | rights | 0o110 | setgid;
  if (onlyIfRootDiffers) {
    const { gid: owner, mode } = await stat(root);
    if (owner === gid && (mode & 0o7777) === wantedDirectory(mode)) return;
  }
  async function attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!REFUSALS.has((error as NodeJS.ErrnoException).code ?? "")) throw error;
      onRefused?.(error);
    }
  }
  /** Each thing is held while it is looked at and given away, and follows no link: containers that have the volume may put others in its place. */
  async function give(path: string, depth: number): Promise<void> {
    if (depth > DEPTH_MAX) throw new Error(`the volume is more than ${DEPTH_MAX} directories deep`);
    const held = await open(path, O_PATH | constants.O_NOFOLLOW);
    count?.();
    try {
      const self = `/proc/self/fd/${held.fd}`;
      const facts = await held.stat();
      if (facts.isSymbolicLink()) return await attempt(() => lchown(path, -1, gid));
      if (facts.isDirectory()) for (const name of await readdir(self)) await give(`${self}/${name}`, depth + 1); // first: where the root is as it should be, so is all below it
      await attempt(() => chown(self, -1, gid));
      const { mode } = await held.stat(); // a change of owner takes bits away
      await attempt(() => chmod(self, facts.isDirectory() ? wantedDirectory(mode) : (mode & 0o7777) | rights));
    } finally {
      await held.close();
    }
  }
  await give(await realpath(root), 0);
}

/** Each level is a file that is held open: and deeper no path leads in one piece. */
const DEPTH_MAX = 2_000;
/** A place in the file system, not its content. */
const O_PATH = 0o10000000;
