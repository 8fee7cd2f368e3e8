/**
 * Room that is kept back on the store's disk. Who starts on a disk without any could not even open the store; then no kubelet would run that frees some, and nobody might come by for months.
 *
 *   const store = await openWithReserve({ path, log, open });   gives the room away if there is none
 *   await keepReserve(path)                                     takes some again, once there is plenty
 */
import { randomFillSync } from "node:crypto";
import { open as openFile, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Log } from "../core/observe/log.ts";
import { freeBytes } from "../storage/disk.ts";
import { StoreError } from "../storage/store.ts";

/** Twice what LevelDB writes when it opens: its log of 4 MiB becomes a table. */
const BYTES = 8 * 1024 * 1024;
/** Less is not plenty: others need it more. */
const PLENTY_BYTES = 32 * BYTES;

interface Options<S> {
  /** The store's. */
  readonly path: string;
  readonly log: Pick<Log, "error">;
  open(): Promise<S>;
}

/** Throws what `open` throws. */
export async function openWithReserve<S>({ path, log, open }: Options<S>): Promise<S> {
  try {
    return await open();
  } catch (error) {
    if (!(error instanceof StoreError) || error.code !== "full" || !(await giveReserve(path))) throw error;
    log.error("there is no room on the store's disk: what was kept back for this is given away", { path, bytes: BYTES });
    return await open();
  }
}

/** Beside the store. Writes nothing if it is there; throws if it cannot be written. */
export async function keepReserve(path: string): Promise<void> {
  const file = reserveOf(path);
  if ((await sizeOf(file)) === BYTES || (freeBytes(dirname(path)) ?? 0) < PLENTY_BYTES) return;
  {
    await using handle = await openFile(`${file}.next`, "w", 0o600);
    await handle.writeFile(randomFillSync(Buffer.allocUnsafe(BYTES))); // zeros take no room where a file system compresses
    await handle.sync();
  }
  await rename(`${file}.next`, file);
}

/** False: there was none. */
async function giveReserve(path: string): Promise<boolean> {
  const bytes = (await sizeOf(reserveOf(path))) + (await sizeOf(`${reserveOf(path)}.next`));
  for (const file of [reserveOf(path), `${reserveOf(path)}.next`]) await rm(file, { force: true });
  return bytes > 0;
}

async function sizeOf(file: string): Promise<number> {
  return await stat(file).then(({ size }) => size, () => 0);
}

function reserveOf(path: string): string { return join(dirname(path), "reserve"); }
