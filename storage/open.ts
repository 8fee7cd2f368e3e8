/**
 * The store on this machine's disk: mvcc/ over LevelDB, in a directory of its own.
 *
 *   const store = await openStore({ path: join(dataDir, "store"), clock: systemClock, volatile });
 *   …
 *   await store.close();            // without this the next start skips some revisions and volatile writes may be lost, nothing else
 *
 * Throws "locked" (another process has it open), "corrupt" (some row is not as it was written; see check.ts), "full" (no room even to open)
 * or "unavailable" (permissions, a read-only disk, a store of a newer program). `fields.reason` and `fields.remedy` say what and what to do.
 */
import { isLevelStore, levelEngine } from "./leveldb/leveldb.ts";
import { type MvccOptions, openMvcc } from "./mvcc/mvcc.ts";
import { finishReplacing, removeUnfinished } from "./replace.ts";
import { type Store, StoreError } from "./store.ts";

export interface OpenStoreOptions extends MvccOptions {
  readonly path: string;
  /** Below this much free space puts are refused as "full"; deletes and volatile writes are not. Default 32 MiB. */
  readonly freeBytesMin?: number;
}

export async function openStore(options: OpenStoreOptions): Promise<Store> {
  const { path, clock, freeBytesMin } = options;
  finishReplacing(path);
  const wasUsed = options.wasUsed === true && isLevelStore(path); // whoever removes the directory wants a new one
  try {
    const store = await openMvcc(({ create }) => levelEngine({ path, clock, create, ...(freeBytesMin !== undefined && { freeBytesMin }) }), { ...options, wasUsed });
    removeUnfinished(path);
    return store;
  } catch (error) {
    throw error instanceof StoreError && error.fields["path"] === undefined ? new StoreError(error.code, { path, ...error.fields }, { cause: error.cause }) : error;
  }
}
