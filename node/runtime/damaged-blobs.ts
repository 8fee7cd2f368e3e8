/**
 * What a disk has damaged of containerd's files, and containerd does not get over.
 *
 * Of images: containerd takes a file of the name that it wants for what it wants, so an image whose manifest or configuration was cut off could neither be used nor imported or
 * pulled again; were it that of the pods' sandboxes, the node would not be Ready any more.
 *
 * Their names are checksums. Those of small files are compared, which manifests and configurations are; layers are unpacked already, and take too long to read at each start.
 */
import { createHash } from "node:crypto";
import { existsSync, rmSync } from "node:fs";
import { readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { fileTextSync, isUnreadable } from "../../core/lifecycle/file-text.ts";
import type { Log } from "../../core/observe/log.ts";
import { type Exec, exec } from "../os/exec.ts";
import { NAMESPACE } from "./images.ts";
import type { RuntimePaths } from "./paths.ts";

const SMALL_BYTES_MAX = 256 * 1024;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\s*$/i;

interface Options { readonly log: Pick<Log, "error">; readonly signal: AbortSignal; readonly run?: Exec }

/** So that they can be had again; returns their digests. Images that miss something because of it are imported or pulled anew by whoever wants them. */
export async function removeDamagedBlobs(paths: Pick<RuntimePaths, "root" | "binDir" | "socket">, { log, signal, run = exec }: Options): Promise<string[]> {
  const directory = join(paths.root, "io.containerd.content.v1.content/blobs/sha256");
  const damaged: string[] = [];
  for (const name of existsSync(directory) ? await readdir(directory) : []) {
    if (signal.aborted) break;
    if (!(await isDamaged(join(directory, name), name))) continue;
    log.error("a file of an image was damaged, and is removed: the image has to be had again", { digest: `sha256:${name}` });
    await rm(join(directory, name), { force: true });
    await run(join(paths.binDir, "ctr"), ["--address", paths.socket, "--namespace", NAMESPACE, "content", "rm", `sha256:${name}`], { signal }); // it may not know of it
    damaged.push(`sha256:${name}`);
  }
  return damaged;
}

/** Before containerd starts: it makes one where there is none, and never answers where it is cut off. */
export function removeDamagedUuid({ root }: Pick<RuntimePaths, "root">, log: Pick<Log, "error">): void {
  const path = join(root, "io.containerd.grpc.v1.introspection/uuid");
  const text = fileTextSync(path);
  if (text === undefined || UUID.test(text)) return;
  log.error("containerd's name for itself was damaged, it gets another one", { path });
  rmSync(path);
}

async function isDamaged(path: string, checksum: string): Promise<boolean> {
  try {
    return (await stat(path)).size <= SMALL_BYTES_MAX && createHash("sha256").update(await readFile(path)).digest("hex") !== checksum;
  } catch (error) {
    return isUnreadable(error); // gone meanwhile is nobody's loss
  }
}
