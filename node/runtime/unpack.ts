/**
 * Unpacks the node components (containerd, runc, CNI plugins, tools: installers/bundle/node-bundle.ts) to <agent>/bin-<hash>, once per version, and points <agent>/current at it.
 *
 * A directory of that name is complete: it was written under another name, brought to disk, then renamed. Streamed: the archive, three times its size unpacked, is never in memory.
 * Were it not any more, because the disk has cut off or lost a file, pods would not start although the node is Ready: how long each file is stands in files.json, and is compared at each start.
 */
import { chmod, lstat, mkdir, open, readdir, readlink, rename, rm, symlink } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { Readable } from "node:stream";
import { createZstdDecompress } from "node:zlib";
import { existsSync } from "node:fs";
import { fileText } from "../../core/lifecycle/file-text.ts";
import type { Log } from "../../core/observe/log.ts";
import { identify, runningPrograms } from "./process-identity.ts";
import { readTar, type TarEntry } from "./tar-reader.ts";

export interface BundleAsset {
  /** A .tar.zst; may be inside the executable. */
  readonly path: string;
  readonly hash: string;
}

/** Makes `directory`, and in it what the archive holds, on disk. */
export type UnpackArchive = (archive: string, directory: string) => Promise<void>;

/** In that directory: bytes, by path. */
const LIST = "files.json";

/** The directory the components are in. `unpack`: who does the work, if not this process. */
export async function unpackBundle({ asset, agentDir, log, unpack = unpackArchive }: { asset: BundleAsset; agentDir: string; log: Log; unpack?: UnpackArchive | undefined }): Promise<string> {
  const name = `bin-${asset.hash}`;
  const directory = join(agentDir, name);
  await mkdir(agentDir, { recursive: true });
  if (existsSync(directory)) await putAsideDamaged(directory, log);
  if (!existsSync(directory)) {
    await removeUnfinished(agentDir);
    const unfinished = `${directory}.${process.pid}.unfinished`;
    await unpack(asset.path, unfinished);
    await rename(unfinished, directory).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
      await rm(unfinished, { recursive: true, force: true }); // another process has unpacked the same in the meantime
    });
    await sync(agentDir);
    log.info("node components unpacked", { directory });
  }
  await pointTo(join(agentDir, "current"), name);
  await removeOld(agentDir, name);
  return directory;
}

/** What still runs from there goes on, and keeps it from being removed. */
async function putAsideDamaged(directory: string, log: Log): Promise<void> {
  const damaged = await damagedFile(directory);
  if (damaged === undefined) return;
  log.error("node components are damaged, and are unpacked anew", { directory, file: damaged });
  await rm(`${directory}.damaged`, { recursive: true, force: true });
  await rename(directory, `${directory}.damaged`);
}

/** The first that is not as long as it was when it was unpacked. Undefined: none, or nobody has noted it. */
async function damagedFile(directory: string): Promise<string | undefined> {
  const list = await fileText(join(directory, LIST));
  if (list === undefined) return undefined; // unpacked by a version of before
  const sizes = parseSizes(list);
  if (sizes === undefined) return LIST;
  for (const [path, bytes] of Object.entries(sizes)) {
    const found = await lstat(join(directory, path)).catch(() => undefined); // what cannot be read is damaged, too
    if (found?.size !== bytes) return path;
  }
  return undefined;
}

function parseSizes(text: string): Readonly<Record<string, number>> | undefined {
  try {
    const found: unknown = JSON.parse(text);
    return typeof found === "object" && found !== null ? (found as Readonly<Record<string, number>>) : undefined;
  } catch {
    return undefined;
  }
}

export async function unpackArchive(archive: string, directory: string): Promise<void> {
  const compressed = Readable.fromWeb(Bun.file(archive).stream() as never);
  const decompressed = compressed.on("error", (error) => decompressed.destroy(error)).pipe(createZstdDecompress());
  const directories = new Set<string>([directory]), sizes: Record<string, number> = {};
  await mkdir(directory, { recursive: true });
  for await (const entry of readTar(decompressed)) {
    const path = join(directory, safePath(entry.path));
    if (entry.type === "directory") {
      await mkdir(path, { recursive: true });
      directories.add(path);
    } else if (entry.type === "file") {
      sizes[safePath(entry.path)] = await writeEntry(path, entry);
      directories.add(dirname(path));
    } else if (entry.type === "symlink") {
      safePath(join(dirname(entry.path), entry.linkTarget));
      await symlink(entry.linkTarget, path);
    } else {
      throw new Error(`${archive}: ${entry.path} is neither a file, a directory nor a link`);
    }
  }
  await writeEntry(join(directory, LIST), { mode: 0o644, content: [Buffer.from(JSON.stringify(sizes))] });
  for (const path of directories) {
    await chmod(path, 0o755);
    await sync(path);
  }
}

/** Returns the bytes. */
async function writeEntry(path: string, entry: Pick<TarEntry, "mode"> & { readonly content: AsyncIterable<Uint8Array> | Iterable<Uint8Array> }): Promise<number> {
  await mkdir(dirname(path), { recursive: true });
  await using file = await open(path, "wx");
  await file.chmod(entry.mode & 0o777); // whatever the umask
  let size = 0;
  for await (const bytes of entry.content) size += (await file.write(bytes)).bytesWritten;
  await file.sync();
  return size;
}

function safePath(path: string): string {
  const normal = normalize(path);
  if (normal.startsWith("/") || normal === ".." || normal.startsWith("../")) throw new Error(`the archive names a path outside of it: ${path}`);
  return normal;
}

/** A link that always leads somewhere: replaced by rename. */
async function pointTo(link: string, target: string): Promise<void> {
  const now = await readlink(link).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
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

/** What was cut off, also under this process's number in an earlier life of the machine: it would fill the disk, one attempt after the other. */
async function removeUnfinished(agentDir: string): Promise<void> {
  const doomed = (await readdir(agentDir)).filter((name) => name.endsWith(".unfinished") && (!isBeingWritten(name) || name.endsWith(`.${process.pid}.unfinished`)));
  for (const name of doomed) await rm(join(agentDir, name), { recursive: true, force: true });
}

function isBeingWritten(name: string): boolean {
  const pid = /\.(\d+)\.unfinished$/.exec(name)?.[1];
  return pid !== undefined && identify(Number(pid)) !== undefined;
}

async function sync(directory: string): Promise<void> {
  await using handle = await open(directory, "r");
  await handle.sync();
}
