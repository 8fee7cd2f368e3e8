/**
 * /var/lib/kubelet: where CSI drivers, device plugins and what watches nodes expect the kubelet's directory, whatever it is called here. Where nobody
 * has that place it becomes a link to ours (where something is mounted there, ours may be bound over it instead), and plugins are told paths below it: that is where their own containers have them mounted.
 */
import { lstat, mkdir, readlink, rmdir, stat, symlink } from "node:fs/promises";
import { dirname, relative, resolve } from "node:path";
import { ifThere } from "../../core/lifecycle/if-there.ts";
import type { Log } from "../../core/observe/log.ts";

/** The name under which others know our directory. */
export async function wellKnownDirectory(dataDir: string, { path, log }: { readonly path: string; readonly log: Log }): Promise<string> {
  if (path === "" || resolve(dataDir) === path) return dataDir;
  try {
    if (await isOurs(path, dataDir)) return path;
    await ifThere(rmdir(path)); // throws where it is not empty, or something is mounted there: somebody else's
    await mkdir(dirname(path), { recursive: true });
    await symlink(dataDir, path);
    return path;
  } catch (error) {
    log.warn("CSI drivers and device plugins must be told where the kubelet's directory is: the usual place is another's", { usual: path, ours: dataDir, error });
    return dataDir;
  }
}

/** A link, or what somebody has mounted there. */
async function isOurs(path: string, dataDir: string): Promise<boolean> {
  const found = await ifThere(lstat(path));
  if (found === undefined) return false;
  if (found.isSymbolicLink() && (await readlink(path)) === dataDir) return true; // ours may be yet to be made
  const [there, here] = await Promise.all([ifThere(stat(path)), ifThere(stat(dataDir))]);
  if (there !== undefined && there.dev === here?.dev && there.ino === here.ino) return true;
  if (found.isSymbolicLink()) throw new Error(`${path} is a link to elsewhere`);
  return false;
}

/** `path` below our directory, as others know it. */
export function knownPath(path: string, dataDir: string, known: string): string {
  return known === dataDir ? path : resolve(known, relative(dataDir, path));
}
