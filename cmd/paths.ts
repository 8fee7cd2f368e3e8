/** Where things are in a data directory. */
import { lstatSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { ifThereSync } from "../core/lifecycle/if-there.ts";

export function paths(dataDir: string) {
  return {
    dataDir,
    server: join(dataDir, "server"),
    store: join(dataDir, "server", "db"),
    tls: join(dataDir, "server", "tls"),
    encryption: join(dataDir, "server", "encryption.yaml"),
    restoredProviders: join(dataDir, "server", "encryption-provider-config.yaml"),
    token: join(dataDir, "server", "token"),
    datastore: join(dataDir, "server", "datastore"),
    snapshots: join(dataDir, "server", "snapshots"),
    manifests: join(dataDir, "server", "manifests"),
    /** For machines of other kinds than this one: <target>/coracle. */
    executables: join(dataDir, "server", "executables"),
    native: join(dataDir, "native"),
    agent: join(dataDir, "agent"),
    kubelet: join(dataDir, "agent", "kubelet"),
    images: join(dataDir, "agent", "images"),
    nodeTls: join(dataDir, "agent", "tls"),
  } as const;
}

export type Paths = ReturnType<typeof paths>;

/** As the kernel calls it in its table of mounts: the data directory may be behind a link. What is not there yet is taken as it is written, or where a link says that it is. */
export function withoutLinks(path: string): string {
  const there = ifThereSync(() => realpathSync(path));
  if (there !== undefined || dirname(path) === path) return there ?? path;
  const parent = withoutLinks(dirname(path)), own = join(parent, basename(path));
  return lstatSync(own, { throwIfNoEntry: false })?.isSymbolicLink() ? withoutLinks(resolve(parent, readlinkSync(own))) : own;
}
