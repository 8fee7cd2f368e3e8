/** The store contract over a real etcd. One etcd for all tests: each finds it empty, as a new store. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { takeSnapshot } from "../../cmd/snapshot-path.ts";
import "../../core/net/spent-connections.ts";
import { systemClock } from "../../core/lifecycle/clock.ts";
import { systemRandom } from "../../core/lifecycle/random.ts";
import { readBackupRows, saveBackup } from "../../storage/backup.ts";
import { openEtcd } from "../../storage/etcd/etcd.ts";
import type { Store, StoreError } from "../../storage/store.ts";
import { type Etcd, startEtcd } from "../etcd.ts";
import { lateStreams } from "../late-streams.ts";
import { slowLink } from "../slow-link.ts";
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

test("a connection that has no numbers left for calls is left for another one, and a watch on it goes on", async () => {
  using _ = lateStreams(5);
  await using opened = await openEmpty({});
  const { store } = opened, stop = new AbortController(), seen: string[] = [];
  const watching = (async () => { for await (const { events } of store.watch({ prefix: "/registry/", after: store.revision }, stop.signal)) seen.push(...events.map(({ row }) => row.key)); })();
  const keys = Array.from({ length: 12 }, (_, i) => `/registry/core/configmaps/default/${String(i).padStart(2, "0")}`);
  for (const key of keys) await store.put(key, { a: key }, 0);
  await expect.poll(() => seen).toEqual(keys);
  stop.abort();
  await watching;
});

test("a snapshot has the objects of the cluster, whatever else is in its etcd", async () => {
  await using opened = await openEmpty({});
  const { store } = opened, directory = mkdtempSync(join(tmpdir(), "snapshot-")), file = join(directory, "one.zst");
  try {
    await store.put("/registry/core/configmaps/default/a", { a: 1 }, 0);
    await store.put("/bootstrap/x", { keys: "sealed" }, 0);
    await etcd.ctl("put", "compact_rev_key", "7"); // as compactor.ts does after five minutes
    await saveBackup(await takeSnapshot({ store, paths: { tls: directory, encryption: join(directory, "none") }, providerFile: undefined, secret: "s", settings: {}, random: systemRandom }), file);
    expect((await readBackupRows(file)).map(({ key }) => key)).toEqual(["/registry/core/configmaps/default/a"]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("a store that is larger than what a slow link brings in the time of one call is read even so", async () => {
  await using opened = await openEmpty({});
  const keys = Array.from({ length: 80 }, (_, i) => `/registry/core/configmaps/default/${String(i).padStart(2, "0")}`), data = "x".repeat(100_000);
  await Promise.all(keys.map((key) => opened.store.put(key, { data }, 0)));
  await using link = await slowLink(etcd.members[0]!.clientPort, 2_000_000);
  const store = await openEtcd({ endpoints: [`http://127.0.0.1:${link.port}`], clock: systemClock });
  const { rows, revision, more } = await store.list({ prefix: "/registry/" });
  expect([rows.map(({ key }) => key), revision, more]).toEqual([keys, opened.store.revision, false]);
  await store.close();
}, 60_000);

test("what is compacted away while it is listed is listed anew, unless it was asked for by its revision", async () => {
  await using opened = await openEmpty({});
  const { store } = opened, keys = Array.from({ length: 30 }, (_, i) => `/registry/core/configmaps/default/${String(i).padStart(2, "0")}`), data = "x".repeat(100_000);
  await Promise.all(keys.map((key) => store.put(key, { data }, 0)));
  await using link = await slowLink(etcd.members[0]!.clientPort, 2_000_000);
  const slow = await openEtcd({ endpoints: [`http://127.0.0.1:${link.port}`], clock: systemClock });
  const then = store.revision, listings = [slow.list({ prefix: "/registry/" }), slow.list({ prefix: "/registry/", revision: then })].map((listing) => listing.then(({ rows }) => rows.length, (error: StoreError) => error.code));
  await Bun.sleep(200);
  await store.compact(await store.put("/registry/core/configmaps/default/zz", {}, 0));
  expect(await Promise.all(listings)).toEqual([31, "compacted"]);
  await slow.close();
}, 60_000);
