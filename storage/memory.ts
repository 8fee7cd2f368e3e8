/**
 * The store over a disk that is an object: for tests and for the simulator, which can crash it, fill it and fail it.
 *
 *   const disk = new MemoryDisk();
 *   const store = await memoryStore({ disk });
 *   disk.crash();                                     // the process dies: the next memoryStore({ disk }) finds what was durable
 */
import { storeError } from "./disk.ts";
import type { Engine, EngineWrite, StoreClock } from "./engine.ts";
import { compareKeys } from "./keys.ts";
import { type MvccOptions, openMvcc } from "./mvcc/mvcc.ts";
import type { Store, StoreError } from "./store.ts";

/** What becomes of a batch: written, refused before anything reached the disk, or refused although it did. */
export type MemoryFault = { readonly error: StoreError; readonly landed: boolean };

export class MemoryDisk {
  readonly records = new Map<string, Uint8Array>();
  /** Asked before every batch; what it returns becomes of the batch. */
  fault: ((writes: readonly EngineWrite[]) => MemoryFault | undefined) | undefined;
  /** Until it is over no batch comes back: the disk hangs. */
  hang: Promise<void> | undefined;
  /** Why there is no room, as an engine's `refusal`; also keeps the disk from being opened again. */
  full: StoreError | undefined;
  #unsynced: (readonly EngineWrite[])[] = [];
  #holder: object | undefined;

  /** The process dies: what was not synced is gone, what it had open is not locked any more. */
  crash(): void {
    this.#holder = undefined;
    this.#unsynced = [];
  }

  open({ create }: { readonly create: boolean }): Engine {
    if (this.#holder) throw storeError("locked", { path: "memory" });
    if (this.full && !create) throw this.full;
    const holder = (this.#holder = {});
    let failed: StoreError | undefined;

    const alive = (): void => {
      if (this.#holder !== holder) throw storeError("unavailable", { reason: "the disk is closed" });
      if (failed) throw failed;
    };

    return {
      get: async (key) => {
        alive();
        return this.#view().get(key);
      },
      batch: async (writes, { sync }) => {
        alive();
        const copy = writes.map((write) => (write.type === "put" ? { ...write, value: write.value.slice() } : write));
        await Promise.resolve(); // a disk takes time: a crash can come before the batch
        await this.hang;
        alive();
        const fault = this.fault?.(writes);
        failed = fault?.error;
        if (!fault || fault.landed) this.#unsynced.push(copy);
        if (failed) throw failed;
        if (sync) this.#sync();
      },
      range: (from, to) => this.#range(from, to),
      refusal: () => this.full,
      close: async () => {
        if (this.#holder !== holder) return;
        this.#sync();
        this.#holder = undefined;
      },
    };
  }

  #sync(): void {
    for (const batch of this.#unsynced) apply(this.records, batch);
    this.#unsynced = [];
  }

  #view(): Map<string, Uint8Array> {
    const view = new Map(this.records);
    for (const batch of this.#unsynced) apply(view, batch);
    return view;
  }

  async *#range(from: string, to: string): AsyncGenerator<(readonly [string, Uint8Array])[]> {
    yield [...this.#view()].filter(([key]) => compareKeys(key, from) >= 0 && compareKeys(key, to) < 0).sort(([a], [b]) => compareKeys(a, b));
  }
}

function apply(records: Map<string, Uint8Array>, writes: readonly EngineWrite[]): void {
  for (const write of writes) {
    if (write.type === "put") records.set(write.key, write.value);
    else records.delete(write.key);
  }
}

/** Arrays are frozen unless told otherwise: here a mistake shall be found. */
export interface MemoryStoreOptions extends Partial<MvccOptions> {
  readonly disk?: MemoryDisk;
}

/** Without a clock no time passes: nothing is written behind before `close`, and history is bounded by its size only. */
const NO_TIME: StoreClock = { uptimeMs: () => 0, after: () => ({ cancel() {} }) };

export async function memoryStore({ disk = new MemoryDisk(), ...options }: MemoryStoreOptions = {}): Promise<Store> {
  return openMvcc(async ({ create }) => disk.open({ create }), { clock: NO_TIME, freezeArrays: true, ...options });
}
