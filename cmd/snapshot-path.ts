/** GET /snapshot: all objects at one revision, and the keys of the cluster, sealed with its token: storage/backup.ts. Administrators may. */
import type { Readable } from "node:stream";
import { fileText } from "../core/lifecycle/file-text.ts";
import type { Random } from "../core/lifecycle/random.ts";
import { sealBundle } from "../core/pki/shared-bundle.ts";
import { ROOT } from "../core/registry/generic/watch-cache.ts";
import type { PathHandler } from "../core/server/scope.ts";
import { backupStream } from "../storage/backup.ts";
import type { Row, Store } from "../storage/store.ts";
import type { Paths } from "./paths.ts";
import { readSharedFiles } from "./shared-keys.ts";

/** In the snapshot beside the objects. */
export const KEYS_ROW = "/snapshot/keys";
/** The bundle's files that are not of the directory of keys: what is encrypted at rest, and how, by our own file and by the one an administrator gave. */
export const ENCRYPTION_FILE = "encryption.yaml";
export const PROVIDER_FILE = "encryption-provider-config.yaml";

export interface SnapshotOptions {
  /** As it lies on disk: what is encrypted at rest stays encrypted. */
  readonly store: Pick<Store, "list">;
  readonly paths: Pick<Paths, "tls" | "encryption">;
  /** The file of encryption-provider-config. */
  readonly providerFile: string | undefined;
  /** The cluster's token, without the CA's hash. */
  readonly secret: string;
  /** Settings without which the objects are of no use, by flag name. */
  readonly settings: Readonly<Record<string, string>>;
  readonly random: Random;
}

/** The bytes of one. */
export async function takeSnapshot({ store, paths, providerFile, secret, settings, random }: SnapshotOptions): Promise<Readable> {
  const encryption = await fileText(paths.encryption);
  const providers = providerFile === undefined ? undefined : await fileText(providerFile);
  const files = {
    ...(await readSharedFiles(paths.tls)),
    ...(encryption === undefined ? {} : { [ENCRYPTION_FILE]: encryption }),
    ...(providers === undefined ? {} : { [PROVIDER_FILE]: providers }),
  };
  const keys: Row = { key: KEYS_ROW, revision: 0, value: await sealBundle({ files, settings }, secret, random) };
  return await backupStream(store, [keys], ROOT); // an etcd has more, as what servers agree by on what is compacted, and that is no JSON
}

export function snapshotPath(options: SnapshotOptions): PathHandler {
  return async ({ method, path }) => {
    if (method !== "GET" || path !== "/snapshot") return undefined;
    return { type: "raw", status: 200, headers: { "content-type": "application/zstd" }, body: await takeSnapshot(options) };
  };
}
