/**
 * A path inside a volume, bound to a place of the kubelet's own before a container gets it, so that nothing the container does to the volume
 * later (a link to /etc, say) leads out of it. The way down is walked by file descriptors that follow no link.
 *
 * Source: kubernetes v1.36 pkg volume/util/subpath/subpath_linux.go (the same guarantees)
 */
import { chmodSync, closeSync, constants, existsSync, fstatSync, lstatSync, mkdirSync, openSync, realpathSync, rmdirSync, statSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname, isAbsolute, join, relative, sep } from "node:path";
import type { Mounts } from "../../os/mount.ts";

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
export function bindSubPath({ volumePath, subPath, target }: SubPath, mounts: Mounts): string {
  const root = realpathSync(volumePath);
  makeDirectories(root, subPath);
  const inside = relative(root, realpathSync(join(root, subPath)));
  if (inside === ".." || inside.startsWith(`..${sep}`)) throw new Error(`subpath "${join(volumePath, subPath)}" not within volume path "${volumePath}"`);
  const place = walk(root, inside);
  try {
    mounts.unmountAll(target); // of an earlier start of this container
    const isDirectory = fstatSync(place).isDirectory();
    removeOther(target, isDirectory);
    if (isDirectory) mkdirSync(target, { recursive: true, mode: 0o750 });
    else if (!existsSync(target)) {
      mkdirSync(dirname(target), { recursive: true, mode: 0o750 });
      writeFileSync(target, "", { mode: 0o640 });
    }
    mounts.bind(`/proc/self/fd/${place}`, target);
    return target;
  } finally {
    closeSync(place);
  }
}

/** Of an earlier start, when there was a directory where there is a file now, or the other way around. */
function removeOther(target: string, isDirectory: boolean): void {
  const found = lstatSync(target, { throwIfNoEntry: false });
  if (found === undefined || found.isDirectory() === isDirectory) return;
  if (found.isDirectory()) rmdirSync(target);
  else unlinkSync(target);
}

/** On Windows, where nothing can be bound: the path itself, made if it is missing. Throws an Error when it leads out of the volume. */
export function resolveSubPath({ volumePath, subPath }: Pick<SubPath, "volumePath" | "subPath">): string {
  const root = realpathSync(volumePath);
  makeDirectories(root, subPath);
  const found = realpathSync(join(root, subPath));
  const inside = relative(root, found);
  if (inside === ".." || inside.startsWith(`..${sep}`) || isAbsolute(inside)) throw new Error(`subpath "${join(volumePath, subPath)}" not within volume path "${volumePath}"`);
  return found;
}

/** Opens `path` below `root`, component by component, following no links: the place, not its content. Whoever asks closes it. */
export function walk(root: string, path: string): number {
  let at = openSync(root, O_PATH | constants.O_NOFOLLOW);
  for (const name of path.split(sep).filter((part) => part !== "")) {
    const parent = at;
    try {
      at = openSync(`/proc/self/fd/${parent}/${name}`, O_PATH | constants.O_NOFOLLOW);
    } finally {
      closeSync(parent);
    }
    if (fstatSync(at).isSymbolicLink()) {
      closeSync(at);
      throw new Error(`"${name}" became a symbolic link while it was being looked at`);
    }
  }
  return at;
}

/** Makes what is missing of the path, with the rights of the volume, and nothing outside of it, whatever containers that have the volume make of the path meanwhile. */
function makeDirectories(root: string, subPath: string): void {
  if (existsSync(join(root, subPath))) return;
  try {
    makeMissing(root, subPath);
  } catch (cause) {
    throw new SubPathNotMade(join(root, subPath), cause as Error);
  }
}

function makeMissing(root: string, subPath: string): void {
  const mode = statSync(root).mode & 0o7777;
  const names = subPath.split("/").filter((part) => part !== "" && part !== ".");
  const missing = names.findIndex((_, i) => !existsSync(join(root, ...names.slice(0, i + 1))));
  if (missing < 0) return;
  const there = join(root, ...names.slice(0, missing));
  const inside = relative(root, realpathSync(there));
  if (inside === ".." || inside.startsWith(`..${sep}`) || isAbsolute(inside)) throw new Error(`subpath "${there}" not within volume path "${root}"`);
  if (process.platform === "win32") return void mkdirSync(join(there, ...names.slice(missing)), { recursive: true });
  let at = walk(root, inside);
  try {
    for (const name of names.slice(missing)) {
      mkdirSync(`/proc/self/fd/${at}/${name}`, { mode });
      const made = openSync(`/proc/self/fd/${at}/${name}`, O_PATH | constants.O_NOFOLLOW | constants.O_DIRECTORY);
      closeSync(at);
      at = made;
      chmodSync(`/proc/self/fd/${at}`, mode); // whatever the umask
    }
  } finally {
    closeSync(at);
  }
}
