/**
 * The data directory is ours alone, or we do not start: in one that somebody else has made, or could write in, the cluster's keys and Secrets may be read, and links may lie that root would
 * follow. What is merely too open is closed.
 */
import { chmodSync, lstatSync, readdirSync, type Stats } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "./config/config.ts";
import type { Paths } from "./paths.ts";

const OTHERS_WRITE = 0o022, OTHERS_ALL = 0o077;
/** server/tls/copies, server/db/lost: nothing of ours is deeper. */
const DEPTH_MAX = 3;

/** Before anything is read from it or written to it. Throws ConfigError. */
export function ownDirectory({ dataDir, server, agent, native }: Pick<Paths, "dataDir" | "server" | "agent" | "native">, uid: number | undefined = process.getuid?.()): void {
  if (uid === undefined) return; // Windows has other rights
  close(dataDir, OTHERS_WRITE, uid, 1);
  close(agent, OTHERS_WRITE, uid, 1); // deeper are the pods' own
  close(native, OTHERS_ALL, uid, 1);
  close(server, OTHERS_ALL, uid, DEPTH_MAX);
}

function close(path: string, closed: number, uid: number, depth: number): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (!found) return;
  mustBeOurs(path, found, uid);
  if (!found.isDirectory()) return; // a link that an administrator has made leads where they say
  if ((found.mode & closed) !== 0 && found.uid === uid) shut(path, found.mode & 0o7777 & ~closed);
  for (const name of readdirSync(path)) {
    const inner = join(path, name);
    if (depth > 1) close(inner, closed, uid, depth - 1);
    else mustBeOurs(inner, lstatSync(inner, { throwIfNoEntry: false }), uid);
  }
}

function mustBeOurs(path: string, found: Stats | undefined, uid: number): void {
  if (found && found.uid !== uid && found.uid !== 0)
    throw new ConfigError(`${path} belongs to user ${found.uid}, who could read the cluster's keys there or put others in their place: look at what lies there, then chown -R ${uid} it, or choose another directory with --data-dir`);
}

function shut(path: string, mode: number): void {
  try {
    chmodSync(path, mode);
  } catch {
    // a file system without rights of its own, as FAT: whoever mounted it has said who may read it
  }
}
