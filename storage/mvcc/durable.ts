/**
 * What is on disk, and the only way to change it: one batch at a time, each with the rows, the shapes they need and a new meta record.
 *
 * After a batch that failed, nobody knows whether it is there. Its keys become suspects and its engine is closed. Before anything else is
 * written, a new engine is opened and gets all suspects as the store has them in memory, so that batch or no batch ends the same.
 */
import type { Engine, EngineWrite, StoreClock } from "../engine.ts";
import { explain, storeError } from "../disk.ts";
import { META_KEY, rowKey, shapeKey } from "../keys.ts";
import type { Revision, Row, StoreError } from "../store.ts";
import type { LoadedRow } from "./load.ts";
import { encodeMeta, encodeRecord, FORMAT_JSON, type Payload } from "./record.ts";
import type { ValueCodec } from "./values.ts";

export interface BatchReport {
  readonly writes: number;
  readonly bytes: number;
  readonly durationMs: number;
}

/** Key → the row as it shall be on disk; no row: the key shall not be there. */
export type Changes = ReadonlyMap<string, { readonly row: Row | undefined; readonly payload?: Payload | undefined }>;

export interface DurableOptions {
  readonly engine: Engine;
  /** Opens the same store again after a failure. */
  readonly connect: () => Promise<Engine>;
  readonly clock: Pick<StoreClock, "uptimeMs">;
  readonly codec: ValueCodec;
  readonly rows: readonly LoadedRow[];
  readonly digest: number;
  readonly reserved: Revision;
  readonly onBatch?: ((report: BatchReport) => void) | undefined;
  readonly onDisk?: ((busy: boolean, refused?: StoreError) => void) | undefined;
}

/** Revisions reserved at once: what a crash may skip. At the two volatile writes a second of a small cluster, a reservation lasts for hours. */
const RESERVE = 100_000;
/** How long to wait before opening the store again once that has failed. */
const RETRY_MS_MIN = 1000;
/** And so many times as long as it took: all of the store is read then, by whoever should be answering clients. */
const RETRY_PER_MS = 10;
/** But no longer: what took so long was a disk that hung, which is there again a moment later. */
const RETRY_MS_MAX = 30_000;

export class Durable {
  readonly codec: ValueCodec;
  readonly #connect: () => Promise<Engine>;
  readonly #clock: Pick<StoreClock, "uptimeMs">;
  readonly #onBatch: ((report: BatchReport) => void) | undefined;
  readonly #onDisk: ((busy: boolean, refused?: StoreError) => void) | undefined;
  readonly #stored = new Map<string, number>(); // key → checksum of its record on disk
  readonly #suspects = new Set<string>();
  #engine: Engine | undefined;
  #down: { readonly error: StoreError; readonly untilMs: number } | undefined; // why there is no engine, and when to try again
  #digest: number;
  #reserved: Revision;

  constructor(options: DurableOptions) {
    this.codec = options.codec;
    this.#engine = options.engine;
    this.#connect = options.connect;
    this.#clock = options.clock;
    this.#onBatch = options.onBatch;
    this.#onDisk = options.onDisk;
    for (const { row, crc } of options.rows) this.#stored.set(row.key, crc);
    this.#digest = options.digest;
    this.#reserved = options.reserved;
  }

  /** Revisions up to this one may be handed out to writes that do not wait for the disk. */
  get reserved(): Revision {
    return this.#reserved;
  }

  has(key: string): boolean {
    return this.#stored.has(key);
  }

  /** Opens a new engine if the last one failed. Returns why nothing can be written. `isLast`: there will be no other time to try. */
  async ready({ rows, head, isLast = false }: { rows: { get(key: string): Row | undefined }; head: Revision; isLast?: boolean }): Promise<StoreError | undefined> {
    if (this.#engine) return undefined;
    if (!isLast && this.#down && this.#clock.uptimeMs() < this.#down.untilMs) return this.#down.error;
    const startMs = this.#clock.uptimeMs();
    try {
      this.#engine = await this.#connect();
      await this.write(new Map([...this.#suspects].map((key) => [key, { row: rows.get(key) }])), { head, clean: false });
      this.#suspects.clear();
      this.#down = undefined;
      return undefined;
    } catch (cause) {
      const error = explain(cause, "");
      const nowMs = this.#clock.uptimeMs();
      this.#down = { error, untilMs: nowMs + Math.min(RETRY_MS_MAX, Math.max(RETRY_MS_MIN, RETRY_PER_MS * (nowMs - startMs))) };
      return error;
    }
  }

  /** Why nothing that grows should be written now. */
  refusal(): StoreError | undefined {
    return this.#engine?.refusal();
  }

  /** Resolves once `changes` are on disk, with `head` as the newest revision. After a failure, ask `ready` before the next write. */
  async write(changes: Changes, { head, clean }: { readonly head: Revision; readonly clean: boolean }): Promise<void> {
    const engine = this.#engine;
    if (!engine) throw this.#down?.error ?? storeError("unavailable", { reason: "the store is not open" });
    const reserved = this.#reserved - head < RESERVE / 2 ? head + RESERVE : this.#reserved;
    const rowWrites: EngineWrite[] = [];
    const crcs = new Map<string, number | undefined>();
    let digest = this.#digest;
    for (const [key, { row, payload }] of changes) {
      const engineKey = rowKey(key);
      const record = row && encodeRecord(engineKey, row.revision, payload ?? this.codec.encode(row.value));
      rowWrites.push(record ? { type: "put", key: engineKey, value: record.bytes } : { type: "del", key: engineKey });
      crcs.set(key, record?.crc);
      digest ^= (this.#stored.get(key) ?? 0) ^ (record?.crc ?? 0);
    }
    digest >>>= 0;
    let rows = this.#stored.size;
    for (const [key, crc] of crcs) rows += (crc === undefined ? 0 : 1) - (this.#stored.has(key) ? 1 : 0);
    const meta = encodeRecord(META_KEY, head, encodeMeta({ head, reserved, rows, digest, clean }));
    const writes: EngineWrite[] = [...this.#freshShapes(), ...rowWrites, { type: "put", key: META_KEY, value: meta.bytes }];
    const shapes = this.codec.shapeCount; // more may come while the batch is on its way: those are not in it

    const startMs = this.#clock.uptimeMs();
    this.#onDisk?.(true);
    try {
      await engine.batch(writes, { sync: true });
      this.#onDisk?.(false);
    } catch (error) {
      this.#onDisk?.(false, explain(error, ""));
      for (const key of changes.keys()) this.#suspects.add(key);
      this.#engine = undefined;
      await engine.close();
      throw error;
    }
    for (const [key, crc] of crcs) {
      if (crc === undefined) this.#stored.delete(key);
      else this.#stored.set(key, crc);
    }
    this.#digest = digest;
    this.#reserved = reserved;
    this.codec.markDurable(shapes);
    this.#onBatch?.({ writes: writes.length, bytes: sizeOf(writes), durationMs: this.#clock.uptimeMs() - startMs });
  }

  async close(): Promise<void> {
    await this.#engine?.close();
    this.#engine = undefined;
  }

  #freshShapes(): EngineWrite[] {
    return this.codec.fresh.map(([id, fields]) => {
      const key = shapeKey(id);
      return { type: "put", key, value: encodeRecord(key, 0, { format: FORMAT_JSON, bytes: Buffer.from(JSON.stringify(fields)) }).bytes };
    });
  }
}

function sizeOf(writes: readonly EngineWrite[]): number {
  return writes.reduce((sum, write) => sum + write.key.length + (write.type === "put" ? write.value.length : 0), 0);
}
