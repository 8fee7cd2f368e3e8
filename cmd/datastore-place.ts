/**
 * Where a server's objects are: in its data directory, or in an etcd. One that is started for the other place would be a server of nothing, or of what was there long ago, with the same authorities:
 * nodes believe it, and end the pods that it does not know.
 *
 *   <data-dir>/server/datastore    the etcd this server is one of; absent: its objects are in its data directory
 */
import { existsSync } from "node:fs";
import { lstat, realpath, rm } from "node:fs/promises";
import { fileText } from "../core/lifecycle/file-text.ts";
import { ifThere } from "../core/lifecycle/if-there.ts";
import { writeDurably } from "../core/pki/durable-file.ts";
import { isLevelStore } from "../storage/leveldb/leveldb.ts";
import { finishedPath } from "../storage/replace.ts";
import type { Store } from "../storage/store.ts";
import { ConfigError } from "./config/config.ts";
import { type Paths, withoutLinks } from "./paths.ts";
import { SHARED_KEYS_PREFIX } from "./shared-keys.ts";

type Place = Pick<Paths, "datastore" | "store">;

/** Before the built-in store is opened. Throws ConfigError. */
export async function refuseWithoutEtcd({ datastore }: Place): Promise<void> {
  const etcd = (await fileText(datastore))?.trim();
  if (etcd === undefined) return;
  throw new ConfigError(`this server's objects are in etcd: start it with --datastore-endpoint ${etcd || "…"}, as before; without it the cluster would be empty, and nodes would end their pods. To have it here from now on restore a snapshot (coracle snapshot restore FILE), or remove ${datastore} to begin anew`);
}

/**
 * Before the built-in store is opened. Its directory may be on another disk, mounted there or by a link: without that disk there is nothing in it. Whoever removes the directory wants a new store; one that
 * is about to take its place is put there when it is opened.
 * `wasUsed`: this server has had one. Throws ConfigError.
 */
export async function refuseVanishedStore({ store: path }: Pick<Place, "store">, wasUsed: boolean): Promise<void> {
  if ((await ifThere(lstat(path))) === undefined || existsSync(finishedPath(withoutLinks(path)))) return;
  const there = await ifThere(realpath(path));
  if (there !== undefined && (!wasUsed || isLevelStore(there))) return;
  const place = there === undefined ? `${path} is a link to what is not there` : `there is nothing of this server's objects in ${path}${there === path ? "" : `, which is ${there}`}`;
  throw new ConfigError(`${place}: is the disk mounted that they are on? Without it the cluster would be empty, and nodes would end their pods. If they are lost, remove ${path} and restore a snapshot (coracle snapshot restore FILE); to begin with an empty cluster, remove it`);
}

/** Before anything is put into etcd. Throws ConfigError. */
export async function refuseEmptyEtcd({ datastore, store: path }: Place, etcd: Pick<Store, "list">): Promise<void> {
  const wasIts = (await fileText(datastore)) !== undefined;
  if (!wasIts && !isLevelStore(path)) return;
  if ((await etcd.list({ prefix: SHARED_KEYS_PREFIX, limit: 1 })).rows.length > 0) return; // of this cluster, or shared-keys.ts tells that it is of another one
  if (wasIts) throw new ConfigError(`there is nothing of this server's cluster in etcd any more: the cluster would be empty, and nodes would end their pods. Restore etcd with its own tools, or give the --datastore-endpoint of before; to begin with an empty cluster remove ${datastore}`);
  throw new ConfigError(`this server's objects are in ${path}, and there are none in etcd: with --datastore-endpoint the cluster would be empty, and nodes would end their pods. Start it without, as before; or move ${path} away to begin with an empty cluster`);
}

/** Once this server is one of those that share it. */
export async function rememberEtcd({ datastore }: Place, endpoint: string): Promise<void> {
  if ((await fileText(datastore)) !== `${endpoint}\n`) await writeDurably(datastore, `${endpoint}\n`);
}

/** The objects are in the data directory from now on. */
export async function forgetEtcd({ datastore }: Place): Promise<void> {
  await rm(datastore, { force: true });
}
