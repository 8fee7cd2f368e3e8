/**
 * Unpacks the node components (containerd, runc, CNI plugins, tools: installers/bundle/node-bundle.ts) to <agent>/bin-<hash>, once per version, and points <agent>/current at it.
 *
 * A directory of that name is complete: it was written under another name, brought to disk, then renamed. Streamed: the archive, three times its size unpacked, is never in memory.
 * Were it not any more, because the disk has cut off, changed or lost a file, pods would not start although the node is Ready: how long each file is and its checksum stand in files.json. Lengths are
 * compared at each start; all is read now and then while the node works (whole-components.ts), which at a start would take seconds of a card's time.
 */
import { createHash } from "node:crypto";
import { chmod, lstat, mkdir, open, readdir, readlink, rename, rm, symlink } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { Readable } from "node:stream";
import { crc32, createZstdDecompress } from "node:zlib";
import { existsSync } from "node:fs";
import { fileText, isUnreadable } from "../../core/lifecycle/file-text.ts";
import { ifThere } from "../../core/lifecycle/if-there.ts";
import type { Log } from "../../core/observe/log.ts";
import { identify, isAlive, runningPrograms } from "./process-identity.ts";
import { readTar, type TarEntry } from "./tar-reader.ts";

export interface BundleAsset {
  /** A .tar.zst; may be inside the executable. */
  readonly path: string;
  readonly hash: string;
}

/** Makes `directory`, and in it what the archive holds, on disk. */
export type UnpackArchive = (archive: string, directory: string) => Promise<void>;

export interface Unpacking {
  readonly asset: BundleAsset;
  readonly agentDir: string;
  readonly log: Log;
  /** Who does the work, if not this process. */
  readonly unpack?: UnpackArchive | undefined;
}

/** In that directory, by path. */
const LIST = "files.json";

/** Of a file when it was unpacked: bytes, and CRC-32. A version of before has noted its bytes alone. */
type Noted = number | readonly [bytes: number, crc32: number];

/** What is read of a file at once. */
const PIECE_BYTES = 1024 * 1024;
/** So much is written before it is brought to disk: what others (the store) bring there meanwhile waits for a flash card for as long as that takes, and 50 MB at once are a quarter of a minute. */
const UNSYNCED_BYTES_MAX = 4 * 1024 * 1024;
/** How often to look whether another process has finished. */
const LOOK_MS = 250;
/** Of what this process writes: by its number alone, what a power cut has left would be taken for another's work for as long as some process has that number again. */
const OWN_SUFFIX = `.${process.pid}-${identify(process.pid)?.startTicks ?? 0}.unfinished`;

/** The directory the components are in. */
export async function unpackBundle(options: Unpacking): Promise<string> {
  const { asset, agentDir } = options;
  const name = `bin-${asset.hash}`;
  const directory = join(agentDir, name);
  await mkdir(agentDir, { recursive: true });
  const damaged = existsSync(directory) ? await damagedFile(directory) : undefined;
  if (damaged !== undefined || !existsSync(directory)) await unpackAnew(options, damaged);
  await pointTo(join(agentDir, "current"), name);
  await removeOld(agentDir, name);
  return directory;
}

/**
 * Returns once no other process unpacks the same: what two of them write to a slow card takes each twice as long, and a user who asks again and again never gets an answer.
 * `told`: called once, if there is something to wait for.
 */
export async function waitForUnpacking({ asset, agentDir }: Pick<Unpacking, "asset" | "agentDir">, { sleep, told }: { readonly sleep: (ms: number) => Promise<unknown>; readonly told: () => void }): Promise<void> {
  const isGoingOn = async (): Promise<boolean> => (await readdir(agentDir).catch(() => [])).some((name) => name.startsWith(`bin-${asset.hash}.`) && !name.endsWith(OWN_SUFFIX) && isBeingWritten(name));
  if (!(await isGoingOn())) return;
  told();
  do await sleep(LOOK_MS); while (await isGoingOn());
}

/** Reads all of what is unpacked, and unpacks it anew if it is not what it was; then the first file that was not is returned. `breathe` is called after each MiB, and may throw. */
export async function mendBundle(options: Unpacking, breathe: () => Promise<void> = () => Promise.resolve()): Promise<string | undefined> {
  const directory = join(options.agentDir, `bin-${options.asset.hash}`);
  const damaged = (await damagedFile(directory)) ?? (await changedFile(directory, breathe));
  if (damaged !== undefined) await unpackAnew(options, damaged);
  return damaged;
}

/** What is damaged goes at the last moment, for what runs from there starts itself again by its path; and is kept until nothing does. */
async function unpackAnew({ asset, agentDir, log, unpack = unpackArchive }: Unpacking, damaged: string | undefined): Promise<void> {
  const directory = join(agentDir, `bin-${asset.hash}`);
  if (damaged !== undefined) log.error("node components are damaged, and are unpacked anew", { directory, file: damaged });
  await removeUnfinished(agentDir);
  const unfinished = `${directory}${OWN_SUFFIX}`;
  await unpack(asset.path, unfinished).catch(async (cause: unknown) => {
    if (await isWhole(asset)) throw cause;
    throw new Error("the node components in this executable are damaged: install it again", { cause });
  });
  if (damaged !== undefined) {
    await rm(`${directory}.damaged`, { recursive: true, force: true });
    await rename(directory, `${directory}.damaged`);
  }
  await rename(unfinished, directory).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
    await rm(unfinished, { recursive: true, force: true }); // another process has unpacked the same in the meantime
  });
  await sync(agentDir);
  log.info("node components unpacked", { directory });
}

/** The first that is not as long as it was when it was unpacked. Undefined: none, or nobody has noted it. */
async function damagedFile(directory: string): Promise<string | undefined> {
  const list = await fileText(join(directory, LIST));
  if (list === undefined) return undefined; // unpacked by a version of before
  const noted = parseNoted(list);
  if (noted === undefined) return LIST;
  for (const [path, of] of Object.entries(noted)) {
    const found = await lstat(join(directory, path)).catch(() => undefined); // what cannot be read is damaged, too
    if (found?.size !== (typeof of === "number" ? of : of[0])) return path;
  }
  return undefined;
}

/** The first whose checksum is another one. */
async function changedFile(directory: string, breathe: () => Promise<void>): Promise<string | undefined> {
  const noted = parseNoted((await fileText(join(directory, LIST))) ?? "") ?? {};
  for (const [path, of] of Object.entries(noted)) if (typeof of !== "number" && (await checksumOf(join(directory, path), breathe)) !== of[1]) return path;
  return undefined;
}

/** Undefined: the disk cannot read it. */
async function checksumOf(path: string, breathe: () => Promise<void>): Promise<number | undefined> {
  await using file = await open(path, "r");
  const buffer = Buffer.allocUnsafe(PIECE_BYTES);
  for (let crc = 0; ; await breathe()) {
    const bytesRead = await file.read(buffer).then((found) => found.bytesRead, (error: unknown) => { if (isUnreadable(error)) return undefined; throw error; });
    if (!bytesRead) return bytesRead === undefined ? undefined : crc;
    crc = crc32(buffer.subarray(0, bytesRead), crc);
  }
}

/** By its name. */
async function isWhole({ path, hash }: BundleAsset): Promise<boolean> {
  const found = createHash("sha256");
  for await (const bytes of Bun.file(path).stream()) found.update(bytes);
  return found.digest("hex").startsWith(hash);
}

function parseNoted(text: string): Readonly<Record<string, Noted>> | undefined {
  try {
    const found: unknown = JSON.parse(text);
    return typeof found === "object" && found !== null ? (found as Readonly<Record<string, Noted>>) : undefined;
  } catch {
    return undefined;
  }
}

export async function unpackArchive(archive: string, directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  const compressed = Readable.fromWeb(Bun.file(archive).stream() as never);
  const decompressed = compressed.on("error", (error) => decompressed.destroy(error)).pipe(createZstdDecompress()); // read at once: what goes wrong before somebody does is heard by nobody, and ends the process
  const directories = new Set<string>([directory]), noted: Record<string, Noted> = {};
  for await (const entry of readTar(decompressed)) {
    const path = join(directory, safePath(entry.path));
    if (entry.type === "directory") {
      await mkdir(path, { recursive: true });
      directories.add(path);
    } else if (entry.type === "file") {
      noted[safePath(entry.path)] = await writeEntry(path, entry);
      directories.add(dirname(path));
    } else if (entry.type === "symlink") {
      safePath(join(dirname(entry.path), entry.linkTarget));
      await symlink(entry.linkTarget, path);
    } else {
      throw new Error(`${archive}: ${entry.path} is neither a file, a directory nor a link`);
    }
  }
  await writeEntry(join(directory, LIST), { mode: 0o644, content: [Buffer.from(JSON.stringify(noted))] });
  for (const path of directories) {
    await chmod(path, 0o755);
    await sync(path);
  }
}

async function writeEntry(path: string, entry: Pick<TarEntry, "mode"> & { readonly content: AsyncIterable<Uint8Array> | Iterable<Uint8Array> }): Promise<Noted> {
  await mkdir(dirname(path), { recursive: true });
  await using file = await open(path, "wx");
  await file.chmod(entry.mode & 0o777); // whatever the umask
  let size = 0, crc = 0, synced = 0;
  for await (const bytes of entry.content) {
    size += (await file.write(bytes)).bytesWritten;
    crc = crc32(bytes, crc);
    if (size - synced < UNSYNCED_BYTES_MAX) continue;
    await file.datasync();
    synced = size;
  }
  await file.sync();
  return [size, crc];
}

function safePath(path: string): string {
  const normal = normalize(path);
  if (normal.startsWith("/") || normal === ".." || normal.startsWith("../")) throw new Error(`the archive names a path outside of it: ${path}`);
  return normal;
}

/** A link that always leads somewhere: replaced by rename. */
async function pointTo(link: string, target: string): Promise<void> {
  const now = await ifThere(readlink(link));
  if (now === target) return;
  await rm(`${link}.${process.pid}.new`, { force: true });
  await symlink(target, `${link}.${process.pid}.new`);
  await rename(`${link}.${process.pid}.new`, link);
}

/** Other versions' directories, but for those from which something still runs (a shim that has found its own path once uses it again), and those that are being written. */
async function removeOld(agentDir: string, keep: string): Promise<void> {
  const old = (await readdir(agentDir)).filter((name) => name.startsWith("bin-") && name !== keep && !isBeingWritten(name));
  if (old.length === 0) return;
  const programs = runningPrograms();
  for (const name of old)
    if (!programs.some((program) => program.startsWith(join(agentDir, name, "/")))) await rm(join(agentDir, name), { recursive: true, force: true });
}

/** What was cut off, also by this process: it would fill the disk, one attempt after the other. */
async function removeUnfinished(agentDir: string): Promise<void> {
  const doomed = (await readdir(agentDir)).filter((name) => name.endsWith(".unfinished") && (!isBeingWritten(name) || name.endsWith(OWN_SUFFIX)));
  for (const name of doomed) await rm(join(agentDir, name), { recursive: true, force: true });
}

function isBeingWritten(name: string): boolean {
  const [, pid, startTicks] = /\.(\d+)-(\d+)\.unfinished$/.exec(name) ?? [];
  return pid !== undefined && isAlive({ pid: Number(pid), startTicks: Number(startTicks) });
}

async function sync(directory: string): Promise<void> {
  await using handle = await open(directory, "r");
  await handle.sync();
}
