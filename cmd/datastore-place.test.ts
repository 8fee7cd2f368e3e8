import { existsSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, expect, test, vi } from "vitest";
import { systemClock } from "../core/lifecycle/clock.ts";
import { silentLog } from "../core/observe/log.ts";
import { backupStore, restoreStore } from "../storage/backup.ts";
import { mendStore } from "../storage/mend.ts";
import { openStore } from "../storage/open.ts";
import { openDatastore } from "./datastore.ts";
import { forgetEtcd, refuseEmptyEtcd, refuseVanishedStore, refuseWithoutEtcd, rememberEtcd } from "./datastore-place.ts";
import { snapshot } from "./snapshot.ts";

const directory = realpathSync(mkdtempSync(join(tmpdir(), "place-")));
afterAll(() => rmSync(directory, { recursive: true }));
const place = { datastore: join(directory, "datastore"), store: join(directory, "db") };
const etcd = (keys: number) => ({ list: async () => ({ rows: Array.from({ length: keys }, () => ({ key: "/bootstrap/x", revision: 1, value: {} })), revision: 1 }) }) as unknown as Parameters<typeof refuseEmptyEtcd>[1];

beforeEach(() => {
  for (const path of Object.values(place)) rmSync(path, { recursive: true, force: true });
});

function builtIn(): void {
  mkdirSync(place.store);
  writeFileSync(join(place.store, "CURRENT"), "MANIFEST-000001\n");
}

test("a server whose objects are in etcd does not begin an empty cluster of its own when the flag is lost", async () => {
  await refuseWithoutEtcd(place);
  await rememberEtcd(place, "https://e:2379");
  await expect(refuseWithoutEtcd(place)).rejects.toThrow("this server's objects are in etcd: start it with --datastore-endpoint https://e:2379, as before");
  await forgetEtcd(place);
  expect(existsSync(place.datastore)).toBe(false);
  await refuseWithoutEtcd(place);
});

test("a server whose objects are here does not become one of an empty etcd: nodes would believe it", async () => {
  await refuseEmptyEtcd(place, etcd(0)); // a new one
  builtIn();
  await expect(refuseEmptyEtcd(place, etcd(0))).rejects.toThrow(`this server's objects are in ${place.store}, and there are none in etcd`);
  await refuseEmptyEtcd(place, etcd(1)); // of the cluster, as shared-keys.ts sees to
  await rememberEtcd(place, "https://e:2379");
  await expect(refuseEmptyEtcd(place, etcd(0))).rejects.toThrow("there is nothing of this server's cluster in etcd any more"); // it was made anew, or is another one
});

test("a server whose objects are on a disk that is not mounted does not begin an empty cluster in its place", async () => {
  await refuseVanishedStore(place, true); // somebody has removed it
  mkdirSync(place.store);
  await refuseVanishedStore(place, false); // a new server's, which a disk is mounted on
  await expect(refuseVanishedStore(place, true)).rejects.toThrow(`there is nothing of this server's objects in ${place.store}: is the disk mounted that they are on?`);
  writeFileSync(join(place.store, "CURRENT"), "MANIFEST-000001\n");
  await refuseVanishedStore(place, true);
  rmSync(place.store, { recursive: true });
  const disk = join(directory, "disk");
  symlinkSync(disk, place.store);
  for (const wasUsed of [false, true]) await expect(refuseVanishedStore(place, wasUsed)).rejects.toThrow(`${place.store} is a link to what is not there: is the disk mounted that they are on?`);
  mkdirSync(disk);
  await expect(refuseVanishedStore(place, true)).rejects.toThrow(`${place.store}, which is ${disk}: is the disk mounted that they are on?`);
  writeFileSync(join(disk, "CURRENT"), "MANIFEST-000001\n");
  await refuseVanishedStore(place, true);
});

test("a store that is mended or restored takes the place of the one before on the disk that a link leads to", async () => {
  const [data, disk] = [join(directory, "data"), join(directory, "ssd")], path = join(data, "server/db"), snapshots = join(data, "server/snapshots");
  mkdirSync(join(data, "server"), { recursive: true });
  symlinkSync("../../ssd/db", path);
  const store = await openStore({ path: join(disk, "db"), clock: systemClock });
  await store.put("/a", { one: 1 }, 0);
  await backupStore(store, join(snapshots, "snapshot-20260101T000000Z.zst"));
  await store.close();
  rmSync(join(disk, "db/CURRENT"));
  const open = () => openDatastore({ settings: { mendStore: true } as Parameters<typeof openDatastore>[0]["settings"], path, snapshots, wasUsed: true, clock: systemClock, log: silentLog, signal: new AbortController().signal });
  const { store: mended } = await open();
  expect((await mended.get("/a"))?.value).toEqual({ one: 1 });
  await mended.close();
  renameSync(join(disk, "db"), join(disk, "db.finished")); // a loss of power in between
  await refuseVanishedStore({ store: path }, true);
  await (await open()).store.close();
  using _ = vi.spyOn(console, "log").mockReturnValue();
  expect(await snapshot(["restore", "snapshot-20260101T000000Z.zst", "--data-dir", data, "--keep-keys"])).toBe(0);
  expect([readlinkSync(path), readdirSync(disk).toSorted().map((name) => name.replace(/\d.*/, ""))]).toEqual(["../../ssd/db", ["db", "db-before-", "db-damaged-"]]);
});

test.skipIf(process.platform !== "linux")("no other store takes the place of one where a disk is mounted", async () => {
  const [path, clock] = ["/dev/shm", systemClock];
  for (const made of [restoreStore({ file: "/none", path, clock, aside: join(directory, "aside") }), mendStore({ path, aside: join(directory, "aside"), backups: [], clock })])
    await expect(made).rejects.toMatchObject({ code: "unavailable", fields: { reason: "a disk is mounted at this very directory: no other store can take its place" } });
});
