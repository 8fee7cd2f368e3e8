/**
 * Where other volumes are mounted within one: directories that must be in it before a container starts, for what is mounted read-only can be given none later.
 * Of what is mounted within such a place nothing need be made: it is the other volume's.
 *
 * Source: kubernetes v1.36 pkg/volume/util/nested_volumes.go
 */
import { lstat, mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import { ifThere } from "../../../core/lifecycle/if-there.ts";
import { allContainers } from "../pod-spec.ts";
import { clean } from "./payload.ts";

/** By volume, paths relative to it, each once. A pod may have thousands of volumes: its mounts are gone through once for all of them, when the first is asked about. */
export function nestedMountPoints({ spec }: Pick<Pod, "spec">): (volume: string) => string[] {
  let found: Map<string, Set<string>> | undefined;
  return (volume) => [...((found ??= mountPointsOf(spec)).get(volume) ?? [])];
}

function mountPointsOf(spec: Pod["spec"]): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const { container: { volumeMounts = [] } } of allContainers(spec)) {
    const all = volumeMounts.map(({ mountPath }) => clean(mountPath)).map((path) => ({ path, order: orderOf(path) })).toSorted((a, b) => (a.order < b.order ? -1 : 1)).map(({ path }) => path);
    for (const { name, mountPath } of volumeMounts) {
      const below = topmostBelow(clean(mountPath), all);
      if (below.length === 0) continue;
      const known = found.get(name) ?? new Set();
      for (const path of below) known.add(path);
      found.set(name, known);
    }
  }
  return found;
}

/** So that what is below a path follows it at once, and nothing else stands between: a pod may have tens of thousands. */
function orderOf(path: string): string { return path.replaceAll("/", "\0"); }

/** Of `sorted`, relative to `base`, those below it that are below no other of them. */
function topmostBelow(base: string, sorted: readonly string[]): string[] {
  const found: string[] = [];
  let [from, to] = [0, sorted.length];
  while (from < to) { // the first one behind `base`
    const middle = (from + to) >> 1;
    if (orderOf(sorted[middle]!) <= orderOf(base)) from = middle + 1;
    else to = middle;
  }
  for (let last: string | undefined; sorted[from]?.startsWith(`${base}/`); from++) {
    const path = sorted[from]!;
    if (last !== undefined && (path === last || path.startsWith(`${last}/`))) continue;
    last = path;
    found.push(path.slice(base.length + 1));
  }
  return found;
}

/** Without a slash at its end: "" is the root. */

/**
 * Makes them in `directory`, but for those where the volume has something of its own by that name. Returns the names there that are taken: whoever removes such a
 * directory takes the mount from the container.
 */
export async function makeMountPoints(directory: string, paths: readonly string[], isOwn: (name: string) => boolean): Promise<ReadonlySet<string>> {
  const taken = new Set<string>();
  for (const path of paths) {
    const name = path.split("/", 1)[0]!;
    if (isOwn(name) && !(await isDirectory(join(directory, name)))) continue;
    await mkdir(join(directory, path), { recursive: true, mode: 0o755 });
    taken.add(name);
  }
  return taken;
}

async function isDirectory(path: string): Promise<boolean> { return (await ifThere(lstat(path)))?.isDirectory() ?? false; }
