/** `coracle snapshot save|list|delete|restore`: copies of all objects in one file each, taken while the server runs, and a server made from one: storage/backup.ts. */
import { existsSync, rmSync, statSync } from "node:fs";
import { rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { systemClock } from "../core/lifecycle/clock.ts";
import { fileText } from "../core/lifecycle/file-text.ts";
import { parseJoinToken } from "../core/pki/join-token.ts";
import type { SealedBundle } from "../core/pki/shared-bundle.ts";
import { backupRevision, inspectBackup, restoreStore, saveBackup } from "../storage/backup.ts";
import { type Revision, StoreError } from "../storage/store.ts";
import { connect } from "./admin-client.ts";
import { apiServerArgs } from "./apiserver-args.ts";
import { setNativeDirectory } from "./assets.ts";
import { criticalSettings } from "./cluster-settings.ts";
import { ConfigError } from "./config/config.ts";
import { withOwnAddresses } from "./config/ranges.ts";
import { forgetEtcd, refuseVanishedStore } from "./datastore-place.ts";
import { stateFile } from "./encryption.ts";
import { type Paths, paths as pathsIn, withoutLinks } from "./paths.ts";
import { freePath, newSnapshotFile, pruneSnapshots, snapshotNames, stamp } from "./snapshot-files.ts";
import { planKeys } from "./snapshot-keys.ts";
import { KEYS_ROW } from "./snapshot-path.ts";
import { formerSecrets, givenToken } from "./token-file.ts";
import { machineSettings, mustReach } from "./tools.ts";

const USAGE = `Usage: coracle snapshot save [FILE] [--keep N]     copies all objects and the cluster's keys, while the server runs
       coracle snapshot list                       snapshots in the server's directory of them
       coracle snapshot delete NAME…               deletes some of them
       coracle snapshot restore FILE|NAME          puts a snapshot in the place of the store; the server must be stopped

  --keep           of the snapshots in that directory keep the newest N
  --kubeconfig     of save: an administrator's; default: $KUBECONFIG, else the one the server wrote
  --data-dir       of this machine's server; default: what it was told
  --token          of restore, on a machine that has lost it: the cluster's token, as it stood in <data-dir>/server/token; or --token-file
  --keep-keys      of restore: the objects alone; the server keeps its keys, or makes new ones

The directory is <data-dir>/server/snapshots, or the server's --snapshot-dir. With --snapshot-every 12h the server takes snapshots by itself.
A snapshot holds Secrets and, sealed with the cluster's token, the CAs' keys and those of encryption at rest (not what a key service holds): keep it where only administrators
look, and the token somewhere else. Nodes and clients go on after a restore; what was written since the snapshot is gone.`;

export async function snapshot(argv: readonly string[]): Promise<number> {
  const [command, ...rest] = argv;
  if (command === undefined || command === "help" || argv.includes("--help") || argv.includes("-h")) {
    console.log(USAGE);
    return command === undefined ? 2 : 0;
  }
  const known = new Map(Object.entries({ save: ["keep", "kubeconfig", "data-dir"], list: ["data-dir"], delete: ["data-dir"], restore: ["data-dir", "token", "token-file", "keep-keys"] })).get(command);
  if (!known) throw new ConfigError(`unknown command ${JSON.stringify(command)}\n\n${USAGE}`);
  const { flags, words } = readFlags(rest, known);
  const settings = machineSettings(flags["data-dir"] === undefined ? [] : ["--data-dir", String(flags["data-dir"])]);
  const paths = pathsIn(settings.dataDir);
  const directory = settings.snapshotDir ?? paths.snapshots;
  if (command !== "save") mustReach(directory);
  switch (command) {
    case "save": return await save(words, { directory, server: join(settings.dataDir, "server"), keep: flags["keep"], kubeconfig: flags["kubeconfig"] });
    case "list":
      if (words.length > 0) throw new ConfigError(`"coracle snapshot list" takes no names, and there is ${JSON.stringify(words[0])}`);
      return await list(directory);
    case "delete": return remove(directory, words);
    default: {
      if (settings.datastoreEndpoint !== undefined) throw new ConfigError("this server keeps its objects in etcd (--datastore-endpoint): restore etcd with its own tools; a snapshot becomes a store of a server without etcd");
      return await restore(words, {
        paths, directory, given: givenToken({ token: flags["token"], tokenFile: flags["token-file"] }), keepKeys: flags["keep-keys"] === true,
        providerFile: apiServerArgs(settings.kubeApiserverArg).text("encryption-provider-config"), settings: criticalSettings(withOwnAddresses(settings)),
      });
    }
  }
}

interface Flags { readonly [name: string]: unknown; readonly keep?: string; readonly kubeconfig?: string; readonly token?: string; readonly "token-file"?: string; readonly "data-dir"?: string; readonly "keep-keys"?: boolean }

function readFlags(argv: readonly string[], known: readonly string[]): { readonly flags: Flags; readonly words: readonly string[] } {
  try {
    const options = Object.fromEntries(known.map((name) => [name, { type: name === "keep-keys" ? "boolean" : "string" } as const]));
    const { values, positionals } = parseArgs({ args: [...argv], options, allowPositionals: true });
    return { flags: values as Flags, words: positionals };
  } catch (cause) {
    throw new ConfigError(`${(cause as Error).message}\n\n${USAGE}`);
  }
}

async function save(words: readonly string[], { directory, server, keep, kubeconfig }: { readonly directory: string; readonly server: string; readonly keep: string | undefined; readonly kubeconfig: string | undefined }): Promise<number> {
  const count = keep === undefined ? undefined : Number(keep);
  if (count !== undefined && (!Number.isInteger(count) || count < 1)) throw new ConfigError(`--keep ${JSON.stringify(keep)}: must be a number, at least 1`);
  if (words.length > 1) throw new ConfigError("one FILE at a time");
  if (words[0] === undefined && !existsSync(server)) throw new ConfigError("there is no server on this machine: name a FILE to write to");
  const cluster = connect(kubeconfig, "coracle-snapshot"); // before a name is taken, which would stay
  const file = words[0] === undefined ? await newSnapshotFile(directory, systemClock.nowMs()) : resolve(words[0]);
  if (existsSync(file)) throw new ConfigError(`${file}: is there already`);
  if (words[0] !== undefined && !existsSync(dirname(file))) throw new ConfigError(`${dirname(file)}: no such directory: make it first; if it is on another disk, is that mounted?`);
  const { rows, revision } = await saveBackup(cluster.download("/snapshot", AbortSignal.timeout(10 * 60_000)), file);
  console.log(`${file}: ${rows} rows, revision ${revision}, ${statSync(file).size} bytes`);
  if (count === undefined) return 0;
  for (const name of await pruneSnapshots(directory, count, words[0] === undefined ? file : undefined)) console.log(`${name} is deleted`);
  return 0;
}

async function list(directory: string): Promise<number> {
  const rows = [["NAME", "SIZE", "CREATED", "ROWS", "REVISION"]];
  for (const name of await snapshotNames(directory)) {
    const file = join(directory, name);
    const found = statSync(file, { throwIfNoEntry: false }); // the server may have deleted it meanwhile, and a link may lead nowhere
    if (!found) continue;
    const read = await inspectBackup(file).catch(() => undefined); // told in the table
    rows.push([name, String(found.size), found.mtime.toISOString().replace(/\.\d+Z$/, "Z"), String(read?.rows ?? "damaged"), String(read?.revision ?? "-")]);
  }
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  for (const row of rows) console.log(row.map((cell, column) => cell.padEnd(widths[column]!)).join("   ").trimEnd());
  return 0;
}

async function remove(directory: string, words: readonly string[]): Promise<number> {
  if (words.length === 0) throw new ConfigError("which snapshot? see: coracle snapshot list");
  const names = await snapshotNames(directory);
  for (const word of words) if (!names.includes(word)) throw new ConfigError(`there is no snapshot ${JSON.stringify(word)} in ${directory}`);
  for (const word of words) {
    rmSync(join(directory, word));
    console.log(`${word} is deleted`);
  }
  return 0;
}

/** Of all snapshots that can be read: the store may be gone that they were taken of. */
async function newestRevision(directory: string): Promise<Revision> {
  const files = (await snapshotNames(directory)).map((name) => join(directory, name));
  return Math.max(0, ...(await Promise.all(files.map((file) => backupRevision(file).catch(() => 0)))));
}

interface Restoring { readonly paths: Paths; readonly directory: string; readonly given: string | undefined; readonly keepKeys: boolean; readonly providerFile: string | undefined; readonly settings: Readonly<Record<string, string>> }

async function restore(words: readonly string[], { paths, directory, given, keepKeys, providerFile, settings }: Restoring): Promise<number> {
  const [word, ...more] = words;
  if (word === undefined || more.length > 0) throw new ConfigError("restore which FILE? see: coracle snapshot list");
  const file = [resolve(word), join(directory, word)].find((path) => existsSync(path));
  if (file === undefined) throw new ConfigError(`${word}: no such file, and no snapshot of that name in ${directory}`);
  const at = stamp(systemClock.nowMs());
  const { find } = await inspectBackup(file);
  const token = given ?? (await fileText(paths.token));
  const secrets = [...(token === undefined ? [] : [parseJoinToken(token.trim()).secret]), ...(given === undefined ? await formerSecrets(paths.token) : [])];
  const keys = keepKeys ? undefined : await planKeys({ paths, providerFile, sealed: find(KEYS_ROW) as SealedBundle | undefined, secrets, stamp: at, settings });
  setNativeDirectory(paths.native);
  await refuseVanishedStore(paths, false);
  const store = withoutLinks(paths.store); // on its disk
  const aside = await freePath(`${store}-before-${at}`);
  const had = existsSync(store);
  const { rows, revision } = await restoreStore({ file, path: store, clock: systemClock, aside, known: await newestRevision(directory) }).catch((error: unknown) => {
    if (error instanceof StoreError && error.code === "locked") throw new ConfigError("the server is running: stop it first");
    throw error;
  });
  await keys?.apply();
  await rm(stateFile(paths.encryption), { force: true }); // it told of the objects of before: keys could be forgotten that these are under
  await forgetEtcd(paths);
  console.log(`${store}: ${rows} rows of ${basename(file)}, revision ${revision}${keys ? `; ${keys.told}` : ""}`);
  if (had && existsSync(aside)) console.log(`the store of before is kept in ${aside}: remove it when all is well`);
  console.log(keys && keys.flags.length > 0 ? `start the server with ${keys.flags.join(" ")}, as the cluster had it` : "start the server");
  return 0;
}
