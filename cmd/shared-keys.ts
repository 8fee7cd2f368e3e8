/**
 * Servers that share a datastore share their keys through it: the first puts what it made there, sealed with the cluster's token, the others take it.
 *
 *   /bootstrap/<name made of the token>    core/pki/shared-bundle.ts
 *
 * What this machine had before is never replaced: if it is not the cluster's, the start is refused.
 */
import { join } from "node:path";
import type { Clock } from "../core/lifecycle/clock.ts";
import type { Random } from "../core/lifecycle/random.ts";
import type { Log } from "../core/observe/log.ts";
import { ensurePrivateDirectory, readIfExists, writeDurably } from "../core/pki/durable-file.ts";
import { certificateHash, parseJoinToken } from "../core/pki/join-token.ts";
import { readCertificatePems } from "../core/pki/pem.ts";
import { ensureSharedKeys, SHARED_FILES } from "../core/pki/pki.ts";
import { bundleName, openBundle, sealBundle, type SharedBundle } from "../core/pki/shared-bundle.ts";
import { type Store, StoreError } from "../storage/store.ts";
import { ConfigError } from "./config/config.ts";

export interface SharedKeysOptions {
  readonly store: Pick<Store, "get" | "list" | "put">;
  /** <data-dir>/server/tls */
  readonly dir: string;
  /** The cluster's token without the CA's hash, and all of what was given. */
  readonly secret: string;
  readonly given: string | undefined;
  /** Settings that must be the same on all servers, by flag name. */
  readonly settings: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly releasedMs: number;
}

const PREFIX = "/bootstrap/";
const RANGES: readonly string[] = ["cluster-cidr", "service-cidr"];

/** Call before openPki: afterwards the directory has the cluster's keys. Throws ConfigError when this server does not belong to the cluster. */
export async function shareKeys(options: SharedKeysOptions): Promise<void> {
  const { store, dir, secret, settings, random, log } = options;
  const key = PREFIX + (await bundleName(secret));
  const before = await readSharedFiles(dir);
  let row = await store.get(key);
  if (!row) {
    if ((await store.list({ prefix: PREFIX, limit: 1 })).rows.length > 0) throw new ConfigError("--token: the datastore is of a cluster with another token: give the one in <data-dir>/server/token of its first server");
    await ensureSharedKeys(options);
    try {
      await store.put(key, await sealBundle({ files: await readSharedFiles(dir), settings }, secret, random), 0);
      log.info("keys of the cluster put into the datastore");
      return;
    } catch (error) {
      if (!(error instanceof StoreError) || error.code !== "conflict" || !error.current) throw error;
      row = error.current; // another server was first
    }
  }
  const bundle = await openBundle(row.value, secret).catch((cause: unknown) => {
    throw new ConfigError(`the keys of the cluster in the datastore (${key}) cannot be read with this token`, { cause });
  });
  refuseOtherCluster(bundle, { ...options, before });
  await writeSharedFiles(dir, bundle.files);
  log.info("keys of the cluster taken from the datastore");
}

function refuseOtherCluster({ files, settings: shared }: SharedBundle, { dir, given, settings, before }: SharedKeysOptions & { readonly before: SharedBundle["files"] }): void {
  for (const [name, wanted] of Object.entries(shared))
    if (settings[name] !== undefined && settings[name] !== wanted && !isOneOfBoth(name, wanted, settings[name])) throw new ConfigError(`--${name} is ${JSON.stringify(wanted)} on the other servers of this cluster, not ${JSON.stringify(settings[name])}`);
  for (const [name, text] of Object.entries(before))
    if (files[name] !== text) throw new ConfigError(`${join(dir, name)} is not that of the cluster in the datastore: this machine was part of another one; move ${dir} away to join`);
  const hash = given === undefined ? undefined : parseJoinToken(given).caHash;
  const [ca] = readCertificatePems(files["server-ca.crt"] ?? "");
  if (hash !== undefined && (!ca || certificateHash(ca) !== hash)) throw new ConfigError("--token: the CA in it is not that of the cluster in the datastore");
}

/** A cluster of one family of addresses may become one of both, a server after the other: the range it has, and one more. */
function isOneOfBoth(name: string, before: string, now: string): boolean { return RANGES.includes(name) && !before.includes(",") && now.startsWith(`${before},`); }

/** Those of SHARED_FILES that are there. */
export async function readSharedFiles(dir: string): Promise<Record<string, string>> {
  const found = await Promise.all(SHARED_FILES.map(async (name) => [name, await readIfExists(join(dir, name))] as const));
  return Object.fromEntries(found.flatMap(([name, text]) => (text === undefined ? [] : [[name, text]])));
}

export async function writeSharedFiles(dir: string, files: SharedBundle["files"]): Promise<void> {
  await ensurePrivateDirectory(dir);
  for (const name of SHARED_FILES) {
    const text = files[name];
    if (text !== undefined && (await readIfExists(join(dir, name))) !== text) await writeDurably(join(dir, name), text, name.endsWith(".crt") ? { mode: 0o644 } : {});
  }
}
