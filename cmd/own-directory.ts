/**
 * What the data directory holds of ours is ours alone, or we do not start: where somebody else has made it, or could write in it, the cluster's keys and Secrets may be read, and links may lie
 * that root would follow. What is merely too open is closed. What administrators put there for us (manifests, executables, images, snapshots from elsewhere) may be anybody's.
 */
import { chmodSync, lstatSync, readdirSync, type Stats } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "./config/config.ts";
import type { Paths } from "./paths.ts";

const OTHERS_WRITE = 0o022, OTHERS_ALL = 0o077;
/** server/tls/copies, server/db/lost: nothing of ours is deeper. */
const DEPTH_MAX = 3;

/** Of what ownDirectory returns. */
export const NOT_OURS = "the data directory belongs to another user, who can put another cluster in the place of this one";

type Used = Pick<Paths, "dataDir" | "server" | "manifests" | "executables" | "snapshots" | "agent" | "native">;

/** Before anything is read from it or written to it. Returns what is to be told: the directory itself may be a disk's, and whose that is its owner has said. Throws ConfigError. */
export function ownDirectory({ dataDir, server, manifests, executables, snapshots, agent, native }: Used, uid: number | undefined = process.getuid?.()): { readonly owner: number } | undefined {
  if (uid === undefined) return undefined; // Windows has other rights
  close(agent, OTHERS_WRITE, { uid, depth: 0 }); // deeper are images, and the pods' own
  close(native, OTHERS_ALL, { uid, depth: 1 });
  close(server, OTHERS_ALL, { uid, depth: DEPTH_MAX, except: [manifests, executables, snapshots] });
  const found = lstatSync(dataDir, { throwIfNoEntry: false });
  if (!found?.isDirectory()) return undefined;
  if (found.uid !== uid) return found.uid === 0 ? undefined : { owner: found.uid };
  shut(dataDir, found, OTHERS_WRITE);
  return undefined;
}

interface How { readonly uid: number; readonly depth: number; readonly except?: readonly string[] }

function close(path: string, closed: number, { uid, depth, except = [] }: How): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (!found || except.includes(path)) return;
  if (found.uid !== uid && found.uid !== 0)
    throw new ConfigError(`${path} belongs to user ${found.uid}, who could read the cluster's keys there or put others in their place: look at what lies there, then chown -R ${uid} it, or choose another directory with --data-dir`);
  if (!found.isDirectory()) return; // a link that an administrator has made leads where they say
  if (found.uid === uid) shut(path, found, closed);
  if (depth > 0) for (const name of readdirSync(path)) close(join(path, name), closed, { uid, depth: depth - 1, except });
}

function shut(path: string, { mode }: Pick<Stats, "mode">, closed: number): void {
  if ((mode & closed) === 0) return;
  try {
    chmodSync(path, mode & 0o7777 & ~closed);
  } catch {
    // a file system without rights of its own, as FAT: whoever mounted it has said who may read it
  }
}
