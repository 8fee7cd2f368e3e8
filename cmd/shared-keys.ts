/**
 * Servers that share a datastore share their keys through it: the first puts what it made there, sealed with the cluster's token, the others take it.
 *
 *   /bootstrap/<name made of the token>    core/pki/shared-bundle.ts
 *
 * What this machine had before is never replaced: if it is not the cluster's, the start is refused. Authorities that the cluster has replaced since are: what signed here before is trusted still.
 *
 *   followSharedKeys(options)              authorities that are replaced in one server's directory while it runs go to the others, to be taken by core/pki
 */
import { join } from "node:path";
import type { Clock } from "../core/lifecycle/clock.ts";
import { fileText } from "../core/lifecycle/file-text.ts";
import type { Random } from "../core/lifecycle/random.ts";
import type { Log } from "../core/observe/log.ts";
import { authority } from "../core/pki/authority.ts";
import { ensurePrivateDirectory, writeDurably } from "../core/pki/durable-file.ts";
import { AUTHORITY_NAMES } from "../core/pki/identities.ts";
import { certificateHash, parseJoinToken } from "../core/pki/join-token.ts";
import { readCertificatePems } from "../core/pki/pem.ts";
import { ensureSharedKeys, mendSharedFiles, SHARED_FILES } from "../core/pki/pki.ts";
import { bundleName, openBundle, sealBundle, type SharedBundle } from "../core/pki/shared-bundle.ts";
import { type Revision, type Row, type Store, StoreError } from "../storage/store.ts";
import { ConfigError } from "./config/config.ts";
import { canonicalText } from "./config/ranges.ts";

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

export const SHARED_KEYS_PREFIX = "/bootstrap/";
const RANGES: readonly string[] = ["cluster-cidr", "service-cidr"];

/** Call before openPki: afterwards the directory has the cluster's keys. Throws ConfigError when this server does not belong to the cluster. */
export async function shareKeys(options: SharedKeysOptions): Promise<void> {
  const { store, dir, secret, settings, random, log } = options;
  const key = SHARED_KEYS_PREFIX + (await bundleName(secret));
  await mendSharedFiles(dir, log);
  const before = await readSharedFiles(dir);
  let row = await store.get(key);
  if (!row) {
    if ((await store.list({ prefix: SHARED_KEYS_PREFIX, limit: 1 })).rows.length > 0) throw new ConfigError("--token: the datastore is of a cluster with another token: give the one in <data-dir>/server/token of its first server");
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
  const bundle = await openRow(row, secret);
  refuseOtherCluster(bundle, { ...options, before });
  await writeSharedFiles(dir, bundle.files);
  log.info("keys of the cluster taken from the datastore");
}

async function openRow({ key, value }: Pick<Row, "key" | "value">, secret: string): Promise<SharedBundle> {
  return await openBundle(value, secret).catch((cause: unknown) => {
    throw new ConfigError(`the keys of the cluster in the datastore (${key}) cannot be read with this token`, { cause });
  });
}

/** Asked now and then, after shareKeys. Throws when the datastore does. */
export async function followSharedKeys({ store, dir, secret, random, log }: Pick<SharedKeysOptions, "store" | "dir" | "secret" | "random" | "log">): Promise<{ look(): Promise<void> }> {
  const key = SHARED_KEYS_PREFIX + (await bundleName(secret));
  let known = authoritiesOf(await readSharedFiles(dir)), knownAt: Revision | undefined;
  return {
    async look() {
      const row = await store.get(key), local = authoritiesOf(await readSharedFiles(dir));
      if (!row) return;
      if (row.revision !== knownAt) {
        const { files } = await openRow(row, secret);
        if (!isSame(authoritiesOf(files), known)) {
          await writeSharedFiles(dir, authoritiesOf(files));
          log.info("other authorities of the cluster taken from the datastore");
        }
        [known, knownAt] = [authoritiesOf(files), row.revision];
        return; // what this machine has else is looked at next time
      }
      if (isSame(local, known) || !areWhole(local, random)) return;
      const bundle = await openRow(row, secret);
      try {
        knownAt = await store.put(key, await sealBundle({ ...bundle, files: { ...bundle.files, ...local } }, secret, random), row.revision);
        known = local;
        log.info("other authorities of the cluster put into the datastore");
      } catch (error) {
        if (!(error instanceof StoreError) || error.code !== "conflict") throw error; // another server was first
      }
    },
  };
}

function authoritiesOf(files: SharedBundle["files"]): Record<string, string> { return Object.fromEntries(Object.entries(files).filter(([name]) => AUTHORITY_NAMES.some((one) => name.startsWith(`${one}.`)))); }

function isSame(a: SharedBundle["files"], b: SharedBundle["files"]): boolean { return SHARED_FILES.every((name) => a[name] === b[name]); }

/** No other server is given what could not be used here. */
function areWhole(files: SharedBundle["files"], random: Random): boolean {
  try {
    for (const name of AUTHORITY_NAMES) authority(files[`${name}.crt`] ?? "", files[`${name}.key`] ?? "", random);
    return true;
  } catch {
    return false; // half written, or told of by core/pki
  }
}

function refuseOtherCluster({ files, settings: shared }: SharedBundle, { dir, given, settings, before }: SharedKeysOptions & { readonly before: SharedBundle["files"] }): void {
  for (const [name, text] of Object.entries(shared)) {
    const wanted = canonicalText(text); // an older server has written it as its owner did
    if (settings[name] !== undefined && settings[name] !== wanted && !isOneOfBoth(name, wanted, settings[name]))
      throw new ConfigError(`--${name} is ${JSON.stringify(wanted)} on the other servers of this cluster, not ${JSON.stringify(settings[name])}`);
  }
  for (const [name, text] of Object.entries(before))
    if (files[name] !== text && !isSucceeded(name, before, files)) throw new ConfigError(`${join(dir, name)} is not that of the cluster in the datastore: this machine was part of another one; move ${dir} away to join`);
  const hash = given === undefined ? undefined : parseJoinToken(given).caHash;
  const cas = readCertificatePems(files["server-ca.crt"] ?? "").map(certificateHash);
  if (hash !== undefined && !cas.includes(hash)) throw new ConfigError("--token: the CA in it is not that of the cluster in the datastore");
}

/** The cluster's authorities were replaced while this server was off: what signed before is trusted still. */
function isSucceeded(file: string, before: SharedBundle["files"], files: SharedBundle["files"]): boolean {
  const name = AUTHORITY_NAMES.find((one) => file.startsWith(`${one}.`));
  if (name === undefined) return false;
  const [signed] = readCertificatePems(before[`${name}.crt`] ?? "");
  return signed !== undefined && readCertificatePems(files[`${name}.crt`] ?? "").some((one) => certificateHash(one) === certificateHash(signed));
}

/** A cluster of one family of addresses may become one of both, a server after the other: the range it has, and one more. */
function isOneOfBoth(name: string, before: string, now: string): boolean { return RANGES.includes(name) && !before.includes(",") && now.startsWith(`${before},`); }

/** Those of SHARED_FILES that are there. */
export async function readSharedFiles(dir: string): Promise<Record<string, string>> {
  const found = await Promise.all(SHARED_FILES.map(async (name) => [name, await fileText(join(dir, name))] as const));
  return Object.fromEntries(found.flatMap(([name, text]) => (text === undefined ? [] : [[name, text]])));
}

export async function writeSharedFiles(dir: string, files: SharedBundle["files"]): Promise<void> {
  await ensurePrivateDirectory(dir);
  for (const name of SHARED_FILES) {
    const text = files[name];
    if (text !== undefined && (await fileText(join(dir, name))) !== text) await writeDurably(join(dir, name), text, name.endsWith(".crt") ? { mode: 0o644 } : {});
  }
}
