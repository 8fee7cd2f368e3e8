/** A server's store that was damaged, on a real disk. */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { silentLog } from "../core/observe/log.ts";
import { backupStore } from "../storage/backup.ts";
import { openStore } from "../storage/open.ts";
import { systemMounts } from "../node/os/mount.ts";
import { copyPath, finishedPath } from "../storage/replace.ts";
import { check } from "./check.ts";
import { hasFuse, silentFileSystem } from "../test/silent-file-system.ts";
import { openMended } from "./mend-datastore.ts";

let directory: string;
let nowMs: number;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "mend-"));
  nowMs = Date.parse("2026-03-01T12:00:00Z");
});
afterEach(() => rmSync(directory, { recursive: true }));

const clock = { uptimeMs: () => performance.now(), after: () => ({ cancel() {} }), nowMs: () => nowMs };
const path = (): string => join(directory, "store");
const snapshots = (): string => join(directory, "snapshots");
const open = (mends = true) => openMended({ path: path(), snapshots: snapshots(), mends, clock, log: silentLog, isVolatile: (key) => key.startsWith("/volatile/"), open: () => openStore({ path: path(), clock, wasUsed: true }) });

async function damagedStore({ snapshot }: { readonly snapshot: boolean }): Promise<void> {
  const { store } = await open();
  if ((await store.get("/a")) === undefined) await store.put("/a", { n: 1 }, 0);
  mkdirSync(snapshots(), { recursive: true });
  if (snapshot) await backupStore(store, join(snapshots(), "snapshot-20260301T110000Z.zst"));
  await store.close();
  for (const name of readdirSync(path()).filter((name) => /^(MANIFEST|\d+\.)/.test(name))) writeFileSync(join(path(), name), new Uint8Array(100).fill(7));
}

test("is mended with the newest snapshot, which is told, and the damaged one is kept", async () => {
  await damagedStore({ snapshot: true });
  const damaged = readFileSync(join(path(), readdirSync(path()).find((name) => name.startsWith("MANIFEST"))!));
  const { store, mended } = await open();
  expect((await store.list({ prefix: "" })).rows.map(({ key }) => key)).toEqual(["/a"]);
  await store.close();
  const kept = join(directory, "store-damaged-20260301T120000Z");
  expect(mended).toMatch(/^The cluster's store was damaged \(.+\) and has been mended: 1 objects, 1 of them as they were in snapshot-20260301T110000Z\.zst; the damaged one is kept in .*store-damaged-20260301T120000Z$/);
  expect(readFileSync(join(kept, readdirSync(kept).find((name) => name.startsWith("MANIFEST"))!))).toEqual(damaged);
  expect((await open()).mended).toBeUndefined();
});

test("of those that were damaged two are kept; a third time within an hour the disk is to be looked at", async () => {
  nowMs = Date.now();
  const damaged = () => readdirSync(directory).filter((name) => name.includes("damaged")).sort();
  for (let i = 0; i < 2; i++) { // within one second
    await damagedStore({ snapshot: true });
    await (await open()).store.close();
  }
  const [first, second] = damaged();
  await damagedStore({ snapshot: true });
  await expect(open()).rejects.toMatchObject({ code: "corrupt" });
  expect(damaged()).toEqual([first, second]);
  nowMs += 2 * 3_600_000;
  await (await open()).store.close();
  expect(damaged()).toEqual([second, expect.stringMatching(/^store-damaged-/)]);
});

test("the one that was just damaged is kept, whatever the clock says", async () => {
  for (const at of ["2026-03-01T12:00:00Z", "2026-03-02T12:00:00Z", "1970-01-01T00:00:10Z"]) {
    nowMs = Date.parse(at);
    await damagedStore({ snapshot: true });
    await (await open()).store.close();
  }
  expect(readdirSync(directory).filter((name) => name.includes("damaged")).sort()).toEqual(["store-damaged-19700101T000010Z", "store-damaged-20260302T120000Z"]);
});

test.each([["there is no snapshot", true, false], ["it is not wanted", false, true]])("stays as it is, with what is wrong, when %s", async (_, mends, snapshot) => {
  await damagedStore({ snapshot });
  await expect(open(mends)).rejects.toMatchObject({ code: "corrupt", fields: { path: path(), remedy: expect.stringContaining("coracle check") } });
  expect(readdirSync(directory).filter((name) => name !== "store.not-mended").sort()).toEqual(["snapshots", "store"]);
});

test("what could not be mended is not tried again until something has changed", async () => {
  await damagedStore({ snapshot: false });
  const told: string[] = [];
  const start = () => openMended({ path: path(), snapshots: snapshots(), mends: true, clock, log: { ...silentLog, error: (message) => void told.push(message) }, isVolatile: () => false, open: () => openStore({ path: path(), clock, wasUsed: true }) });
  for (let i = 0; i < 2; i++) await expect(start()).rejects.toMatchObject({ code: "corrupt" });
  expect(told).toEqual([
    "the store is damaged: making a sound one of what can be read and the newest snapshot", "the store could not be mended",
    "the store is damaged and could not be mended before; nothing has changed since",
  ]);
  const other = join(directory, "other");
  const store = await openStore({ path: other, clock });
  await store.put("/a", { n: 1 }, 0);
  await backupStore(store, join(snapshots(), "snapshot-20260301T110000Z.zst"));
  await store.close();
  const { store: mended } = await start();
  expect((await mended.list({ prefix: "" })).rows.map(({ key }) => key)).toEqual(["/a"]);
  await mended.close();
  expect(readdirSync(directory).sort()).toEqual(["other", "snapshots", "store", "store-damaged-20260301T120000Z"]);
});

test("one that is older than its newest snapshot says what is missing and how to have it again", async () => {
  const { store } = await open();
  await store.put("/a", { n: 1 }, 0);
  await store.close();
  mkdirSync(snapshots());
  const early = join(directory, "early");
  cpSync(path(), early, { recursive: true });
  const later = await open();
  expect(later.behind).toBeUndefined();
  await later.store.put("/b", { n: 1 }, 0);
  const file = join(snapshots(), "snapshot-20260301T110000Z.zst");
  await backupStore(later.store, file);
  await later.store.close();
  const whole = await open();
  expect([whole.behind, (await whole.store.get("/b"))?.value]).toEqual([undefined, { n: 1 }]);
  await whole.store.close();
  rmSync(path(), { recursive: true });
  cpSync(early, path(), { recursive: true }); // as the disk was before
  const cut = await open();
  await cut.store.close();
  expect(cut.behind).toMatch(/^The cluster's store is older \(revision \d+\) than .*snapshot-20260301T110000Z\.zst \(\d+\): 1 objects, or their last changes, are missing\. .*coracle snapshot restore /);
  await backupStore({ list: async () => ({ rows: [{ key: "/volatile/c", revision: 9, value: { n: 1 } }], revision: 9 }) } as never, file);
  const beats = await open();
  await beats.store.close();
  expect(beats.behind).toBeUndefined();
  writeFileSync(file, "");
  const unread = await open();
  await unread.store.close();
  expect(unread.behind).toBeUndefined();
});

test.each(["server/db", "ssd/db"])("coracle check looks at a store that was cut off just before it had its place, at %s", async (place) => {
  const server = join(directory, "server"), lines: string[] = [], { log } = console;
  const { store } = await open();
  await store.put("/a", { n: 1 }, 0);
  await store.close();
  mkdirSync(server);
  if (place !== "server/db") {
    mkdirSync(join(directory, dirname(place)));
    symlinkSync(join(directory, place), join(server, "db"));
  }
  renameSync(path(), finishedPath(join(directory, place)));
  try {
    console.log = (line: string) => void lines.push(line);
    expect(await check(["--data-dir", directory])).toBe(0);
  } finally {
    console.log = log;
  }
  expect([lines[0], lines.at(-1)]).toEqual([expect.stringContaining("/server/db: 1 rows"), "nothing is wrong"]);
});

test.skipIf(process.platform !== "linux" || process.getuid?.() !== 0)("what was cut off before it was complete, and cannot be removed, keeps no store from being opened", async () => {
  const held = join(copyPath(path()), "held"), mounts = systemMounts();
  await damagedStore({ snapshot: true });
  await (await open()).store.close();
  mkdirSync(held, { recursive: true });
  mounts.mount({ source: "none", target: held, fsType: "tmpfs" }); // as good as a directory that the disk cannot read
  try {
    const { store, mended } = await open();
    expect([(await store.get("/a"))?.value, mended]).toEqual([{ n: 1 }, undefined]);
    await store.close();
  } finally {
    mounts.unmount(held);
  }
});

test.skipIf(!hasFuse())("a directory of snapshots that does not answer keeps no server from starting", async () => {
  using silent = silentFileSystem();
  const told: string[] = [], impatient = { ...clock, after(_: number, work: () => void) { setTimeout(work, 10); return { cancel() {} }; } };
  const { store, behind } = await openMended({ path: path(), snapshots: silent.path, mends: true, clock: impatient, log: { ...silentLog, warn: (message, { error }: { error?: Error } = {}) => void told.push(`${message}: ${error?.message}`) }, isVolatile: () => false, open: () => openStore({ path: path(), clock, wasUsed: false }) });
  await store.close();
  expect([behind, told]).toEqual([undefined, ["the newest snapshot cannot be read: the directory of snapshots does not answer within 10 s"]]);
});
