/**
 * The keys of a cluster that a snapshot of it holds: without them nobody who trusts the cluster's CA would believe a server made from its objects.
 *
 * They are sealed with the cluster's token. What a server has of its own is not replaced by another cluster's.
 */
import { join } from "node:path";
import { fileText } from "../core/lifecycle/file-text.ts";
import { writeDurably } from "../core/pki/durable-file.ts";
import { formatJoinToken } from "../core/pki/join-token.ts";
import { openBundle, type SealedBundle, type SharedBundle } from "../core/pki/shared-bundle.ts";
import { ConfigError } from "./config/config.ts";
import { canonicalText } from "./config/ranges.ts";
import type { Paths } from "./paths.ts";
import { readSharedFiles, writeSharedFiles } from "./shared-keys.ts";
import { freePath } from "./snapshot-files.ts";
import { ENCRYPTION_FILE, PROVIDER_FILE } from "./snapshot-path.ts";

export interface KeysPlan {
  /** What is to be done with the keys, for people. */
  readonly told: string;
  /** Flags the server must be started with. */
  readonly flags: readonly string[];
  apply(): Promise<void>;
}

interface Options {
  readonly paths: Pick<Paths, "tls" | "token" | "encryption" | "restoredProviders">;
  /** The file of encryption-provider-config as this machine's server is told. */
  readonly providerFile: string | undefined;
  readonly sealed: SealedBundle | undefined;
  /** Tokens of the cluster, without the CA's hash: the one of now, and those it had before. */
  readonly secrets: readonly string[];
  /** What is kept of before gets this at the end of its name. */
  readonly stamp: string;
  /** Those of this machine, by flag name, that must be the cluster's. */
  readonly settings: Readonly<Record<string, string>>;
}

const CA_FILE = "server-ca.crt";
const BESIDE: ReadonlySet<string> = new Set([ENCRYPTION_FILE, PROVIDER_FILE]);

/** Changes nothing yet. Throws ConfigError if the keys cannot be had, or are not those that are there. */
export async function planKeys({ paths, providerFile, sealed, secrets, stamp, settings }: Options): Promise<KeysPlan> {
  if (!sealed) throw new ConfigError("there are no keys in this file: --keep-keys restores the objects alone");
  if (secrets.length === 0) throw new ConfigError("the keys in the snapshot are sealed with the cluster's token: give it with --token (it stood in <data-dir>/server/token), or restore the objects alone with --keep-keys");
  const { files, settings: shared, secret } = await openWith(sealed, secrets);
  const present = await readSharedFiles(paths.tls);
  for (const [name, text] of Object.entries(present))
    if (files[name] !== text) throw new ConfigError(`${join(paths.tls, name)} is not the snapshot's: it is of another cluster. Move ${paths.tls} away to take the snapshot's keys, or keep these with --keep-keys`);
  const missing = Object.keys(files).some((name) => !BESIDE.has(name) && present[name] === undefined);
  const wanted = files[ENCRYPTION_FILE];
  const providers = files[PROVIDER_FILE];
  const ownProviders = providers === undefined || (providerFile !== undefined && (await fileText(providerFile)) === providers);
  return {
    told: missing ? `the cluster's keys are restored to ${paths.tls}` : "the cluster's keys were there",
    flags: Object.entries(shared).filter(([name, value]) => settings[name] !== canonicalText(value)).map(([name, value]) => `--${name} ${value}`).concat(ownProviders ? [] : [`--kube-apiserver-arg encryption-provider-config=${paths.restoredProviders}`]),
    async apply() {
      await writeSharedFiles(paths.tls, files);
      const ca = files[CA_FILE];
      // of a machine that becomes a server of this cluster now: the token it may have was another's. A server of it may have been given a new one since the snapshot
      if (ca !== undefined && (present[CA_FILE] === undefined || (await fileText(paths.token)) === undefined)) await replace(paths.token, `${formatJoinToken(ca, secret)}\n`, stamp);
      // the objects are encrypted under the keys of then
      if (wanted !== undefined) await replace(paths.encryption, wanted, stamp);
      if (!ownProviders) await replace(paths.restoredProviders, providers, stamp);
    },
  };
}

async function openWith(sealed: SealedBundle, secrets: readonly string[]): Promise<SharedBundle & { readonly secret: string }> {
  let cause: unknown;
  for (const secret of secrets) {
    try {
      return { ...(await openBundle(sealed, secret)), secret };
    } catch (error) {
      cause ??= error;
    }
  }
  throw new ConfigError("the keys in the snapshot cannot be read with this token: --token must be the one that the snapshot's cluster had then; where the cluster's keys are still there, --keep-keys restores the objects alone", { cause });
}

/** What was there is kept beside it. */
async function replace(path: string, text: string, stamp: string): Promise<void> {
  const before = await fileText(path);
  if (before === text) return;
  if (before !== undefined) await writeDurably(await freePath(`${path}.before-${stamp}`), before);
  await writeDurably(path, text);
}
