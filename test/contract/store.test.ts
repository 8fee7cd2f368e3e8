/** The store contract over the stores that need nothing but this machine. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../core/lifecycle/clock.ts";
import { secretbox } from "../../storage/encryption/ciphers.ts";
import { encryptedStore } from "../../storage/encryption/encryption.ts";
import { MemoryDisk, memoryStore } from "../../storage/memory.ts";
import { openStore } from "../../storage/open.ts";
import type { Store } from "../../storage/store.ts";
import { reopenable, storeContract, type StoreKnobs, type StoreUnderTest } from "./store.ts";

function limits({ backlogMax }: StoreKnobs) {
  return backlogMax === undefined ? {} : { historyRevisionsMax: backlogMax };
}

async function openMemory(knobs: StoreKnobs, volatile: () => boolean): Promise<StoreUnderTest> {
  const disk = new MemoryDisk();
  const open = (): Promise<Store> => memoryStore({ disk, volatile, ...limits(knobs) });
  return reopenable(await open(), open, () => {});
}

async function openLevel(knobs: StoreKnobs): Promise<StoreUnderTest> {
  const path = mkdtempSync(join(tmpdir(), "store-"));
  const open = (): Promise<Store> => openStore({ path, clock: systemClock, ...limits(knobs) });
  return reopenable(await open(), open, () => rmSync(path, { recursive: true }));
}

storeContract("memory", (knobs = {}) => openMemory(knobs, () => false));
storeContract("memory, every key volatile", (knobs = {}) => openMemory(knobs, () => true));
/** Everything sealed: the plain stores know nothing of it. */
async function openEncrypted(knobs: StoreKnobs): Promise<StoreUnderTest> {
  const disk = new MemoryDisk();
  const providers = [secretbox({ name: "key1", secret: Buffer.alloc(32, 7) })];
  const open = async (): Promise<Store> => encryptedStore(await memoryStore({ disk, ...limits(knobs) }), () => providers);
  return reopenable(await open(), open, () => {});
}

storeContract("memory, encrypted", (knobs = {}) => openEncrypted(knobs));
storeContract("LevelDB", (knobs = {}) => openLevel(knobs));
