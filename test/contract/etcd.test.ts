/** The store contract over a real etcd. One etcd for all tests: each finds it empty, as a new store. */
import { afterAll, beforeAll } from "vitest";
import { systemClock } from "../../core/lifecycle/clock.ts";
import { openEtcd } from "../../storage/etcd/etcd.ts";
import type { Store } from "../../storage/store.ts";
import { type Etcd, startEtcd } from "../etcd.ts";
import { storeContract, type StoreKnobs, type StoreUnderTest } from "./store.ts";

let etcd: Etcd;
beforeAll(async () => { etcd = await startEtcd(); }, 120_000);
afterAll(async () => await etcd?.[Symbol.asyncDispose]());

async function openEmpty({ backlogMax }: StoreKnobs): Promise<StoreUnderTest> {
  const open = (): Promise<Store> => openEtcd({ endpoints: etcd.endpoints, clock: systemClock, ...(backlogMax !== undefined && { historyRevisionsMax: backlogMax }) });
  let store = await open();
  await etcd.ctl("del", "", "--from-key");
  await store.close();
  store = await open();
  return {
    get store() { return store; },
    async reopen() {
      await store.close();
      return (store = await open());
    },
    [Symbol.asyncDispose]: () => store.close(),
  };
}

storeContract("etcd", (knobs = {}) => openEmpty(knobs));
