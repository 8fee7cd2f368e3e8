/**
 * A path inside a volume, bound to a place of the kubelet's own before a container gets it, so that nothing the container does to the volume
 * later (a link to /etc, say) leads out of it. The way down is walked by file descriptors that follow no link. The volume may be a disk of another machine, which does not answer: all of it is asked beside
 * the event loop.
 *
 * Source: kubernetes v1.36 pkg volume/util/subpath/subpath_linux.go (the same guarantees)
 */
import { constants } from "node:fs";
import { chmod, type FileHandle, lstat, mkdir, open, realpath, rmdir, stat, unlink, writeFile } from "node:fs/promises";
import { dirname, isAbsolute, join, relative, sep } from "node:path";
import { ifThere } from "../../../core/lifecycle/if-there.ts";
import type { Mounts } from "../../os/mount.ts";
import { isThere } from "./volume-directory.ts";

/** O_PATH: a place in the file system, not its content. */
const O_PATH = 0o10000000;

export interface SubPath {
  readonly volumePath: string;
  readonly subPath: string;
  /** Where it is bound: pods/<uid>/volume-subpaths/<volume>/<container>/<index>. */
  readonly target: string;
}

/** What is missing of a path could not be made. */
export class SubPathNotMade extends Error {
  constructor(path: string, cause: Error) {
    super(`${path} could not be made: ${cause.message}`, { cause });
    this.name = "SubPathNotMade";
  }
}

/** Throws SubPathNotMade, and an Error when the path leads out of the volume. Returns the target. */
export async function bindSubPath({ volumePath, subPath, target }: SubPath, mounts: Mounts): Promise<string> {
  const root = await realpath(volumePath);
  await makeDirectories(root, subPath);
  const inside = relative(root, await realpath(join(root, subPath)));
  if (inside === ".." || inside.startsWith(`..${sep}`)) throw new Error(`subpath "${join(volumePath, subPath)}" not within volume path "${volumePath}"`);
  const place = await walk(root, inside);
  try {
    mounts.unmountAll(target); // of an earlier start of this container
    const isDirectory = (await place.stat()).isDirectory();
    await removeOther(target, isDirectory);
    if (isDirectory) await mkdir(target, { recursive: true, mode: 0o750 });
    else if (!(await isThere(target))) {
      await mkdir(dirname(target), { recursive: true, mode: 0o750 });
      await writeFile(target, "", { mode: 0o640 });
    }
    mounts.bind(`/proc/self/fd/${place.fd}`, target);
    return target;
  } finally {
    await place.close();
  }
}

/** Of an earlier start, when there was a directory where there is a file now, or the other way around. */
async function removeOther(target: string, isDirectory: boolean): Promise<void> {
  const found = await ifThere(lstat(target));
  if (found === undefined || found.isDirectory() === isDirectory) return;
  if (found.isDirectory()) await rmdir(target);
  else await unlink(target);
}

/** On Windows, where nothing can be bound: the path itself, made if it is missing. Throws an Error when it leads out of the volume. */
export async function resolveSubPath({ volumePath, subPath }: Pick<SubPath, "volumePath" | "subPath">): Promise<string> {
  const root = await realpath(volumePath);
  await makeDirectories(root, subPath);
  const found = await realpath(join(root, subPath));
  const inside = relative(root, found);
  if (inside === ".." || inside.startsWith(`..${sep}`) || isAbsolute(inside)) throw new Error(`subpath "${join(volumePath, subPath)}" not within volume path "${volumePath}"`);
  return found;
}

/** Opens `path` below `root`, component by component, following no links: the place, not its content. Whoever asks closes it. */
export async function walk(root: string, path: string): Promise<FileHandle> {
  let at = await open(root, O_PATH | constants.O_NOFOLLOW);
  for (const name of path.split(sep).filter((part) => part !== "")) {
    const parent = at;
    try {
      at = await open(`/proc/self/fd/${parent.fd}/${name}`, O_PATH | constants.O_NOFOLLOW);
    } finally {
      await parent.close();
    }
    if ((await at.stat()).isSymbolicLink()) {
      await at.close();
      throw new Error(`"${name}" became a symbolic link while it was being looked at`);
    }
  }
  return at;
}

/** Makes what is missing of the path, with the rights of the volume, and nothing outside of it, whatever containers that have the volume make of the path meanwhile. */
async function makeDirectories(root: string, subPath: string): Promise<void> {
  if (await isThere(join(root, subPath))) return;
  try {
    await makeMissing(root, subPath);
  } catch (cause) {
    throw new SubPathNotMade(join(root, subPath), cause as Error);
  }
}

async function makeMissing(root: string, subPath: string): Promise<void> {
  const mode = (await stat(root)).mode & 0o7777;
  const names = subPath.split("/").filter((part) => part !== "" && part !== ".");
  let count = 0; // of what is there
  while (count < names.length && (await isThere(join(root, ...names.slice(0, count + 1))))) count++;
  if (count === names.length) return;
  const there = join(root, ...names.slice(0, count));
  const inside = relative(root, await realpath(there));
  if (inside === ".." || inside.startsWith(`..${sep}`) || isAbsolute(inside)) throw new Error(`subpath "${there}" not within volume path "${root}"`);
  if (process.platform === "win32") return void (await mkdir(join(there, ...names.slice(count)), { recursive: true }));
  let at = await walk(root, inside);
  try {
    for (const name of names.slice(count)) {
      const isOurs = await make(`/proc/self/fd/${at.fd}/${name}`, mode);
      const made = await open(`/proc/self/fd/${at.fd}/${name}`, O_PATH | constants.O_NOFOLLOW | constants.O_DIRECTORY);
      await at.close();
      at = made;
      if (isOurs) await chmod(`/proc/self/fd/${at.fd}`, mode); // whatever the umask
    }
  } finally {
    await at.close();
  }
}

/** False: another container of the volume has made it meanwhile. */
async function make(directory: string, mode: number): Promise<boolean> {
  try {
    await mkdir(directory, { mode });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}
