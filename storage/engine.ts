/**
 * What mvcc/ needs of a disk: atomic batches that are durable when it says so, and reads in key order.
 *
 * Two implementations: leveldb/ and memory.ts. Reads happen only while a store opens (and in `check`): the store keeps the current rows in
 * memory, so there is no snapshot and no read cache here.
 *
 * Failures are StoreErrors: "full", "corrupt", "locked", "unavailable". After a failed batch it is unknown whether the batch is on disk,
 * and an engine may refuse everything from then on: close it and open another one.
 */
import type { StoreError } from "./store.ts";

export type EngineWrite =
  | { readonly type: "put"; readonly key: string; readonly value: Uint8Array }
  | { readonly type: "del"; readonly key: string };

export interface Engine {
  get(key: string): Promise<Uint8Array | undefined>;
  /** All of it or nothing. With `sync`, resolves once it would survive the loss of power. The engine copies what it is given before it returns. */
  batch(writes: readonly EngineWrite[], options: { readonly sync: boolean }): Promise<void>;
  /** Pages of keys and values with from <= key < to, ordered by the bytes of the keys. */
  range(from: string, to: string): AsyncIterable<readonly (readonly [key: string, value: Uint8Array])[]>;
  /** Why nothing that grows should be written now: there is too little room left. Cheap enough to ask before every batch. */
  refusal(): StoreError | undefined;
  /** Releases the lock. Never fails: there is nothing the caller could do. */
  close(): Promise<void>;
}

/** The part of a Clock that a store uses. */
export interface StoreClock {
  /** Milliseconds since some fixed moment. Never goes backwards. */
  uptimeMs(): number;
  /** Calls `work` once after `ms` unless cancelled first. */
  after(ms: number, work: () => void): { cancel(): void };
}
