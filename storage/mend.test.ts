/** Real directories that were damaged: mended without anybody's help, or left as they are. */
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { backupStore, restoreStore } from "./backup.ts";
import { REVISIONS_SKIPPED } from "./check.ts";
import type { StoreClock } from "./engine.ts";
import { isNearlyAll, isOfPast, mendStore, mergeSalvaged } from "./mend.ts";
import { mulberry32 } from "../test/mulberry32.ts";
import { openStore } from "./open.ts";
import { buildingPath, copyPath, finishedPath } from "./replace.ts";
import type { Row, Store } from "./store.ts";

const clock: StoreClock = { uptimeMs: () => performance.now(), after: () => ({ cancel() {} }) };
const made: string[] = [];

afterEach(() => {
  for (const path of made.splice(0)) rmSync(path, { recursive: true, force: true });
});

const open = (path: string, wasUsed = true): Promise<Store> => openStore({ path, clock, wasUsed });
const rowsOf = async (path: string): Promise<readonly Row[]> => {
  const store = await open(path);
  try {
    return (await store.list({ prefix: "" })).rows;
  } finally {
    await store.close();
  }
};
const row = (key: string, revision: number, value: Row["value"] = {}): Row => ({ key, revision, value });

/** A store of 3,000 rows in tables, backed up, then: one row changed, one deleted, 100 added, all of that in the log. */
async function lived() {
  const directory = mkdtempSync(join(tmpdir(), "mend-"));
  made.push(directory);
  const [path, file] = [join(directory, "store"), join(directory, "one.zst")];
  const name = (i: number): string => `/rows/${String(i).padStart(5, "0")}`;
  let store = await open(path);
  for (let i = 0; i < 3000; i += 50) await Promise.all(Array.from({ length: 50 }, (_, j) => store.put(name(i + j), { text: `${i} `.repeat(200) }, 0)));
  await store.close();
  store = await open(path);
  const { revision } = await backupStore(store, file);
  await store.put(name(7), { text: "changed" }, (await store.get(name(7)))!.revision);
  await store.delete(name(8), (await store.get(name(8)))!.revision);
  for (let i = 3000; i < 3100; i++) await store.put(name(i), { text: "late" }, 0);
  const { rows } = await store.list({ prefix: "" });
  await store.close();
  return { path, file, rows, name, backupRevision: revision, aside: join(directory, "aside") };
}

const biggest = (path: string, pattern: RegExp): string => readdirSync(path).filter((name) => pattern.test(name)).map((name) => join(path, name)).toSorted((a, b) => statSync(b).size - statSync(a).size)[0]!;
function garble(path: string, at: number, length: number): void {
  const bytes = readFileSync(path);
  for (let i = 0; i < length; i++) bytes[at + i]! ^= 0xa5;
  writeFileSync(path, bytes);
}
const aTable = (path: string): string => biggest(path, /\.ldb$/);

test("with a backup nothing that was there then is lost, nor what was written later and can be read: a block of a table", async () => {
  const { path, file, rows, name, aside } = await lived();
  garble(aTable(path), statSync(aTable(path)).size >> 1, 200);
  await expect(open(path)).rejects.toMatchObject({ code: "corrupt" });
  const mended = await mendStore({ path, aside, backups: [file], clock });
  const deleted = name(8); // comes back: nobody can tell that it was not lost
  const now = (await rowsOf(path)).filter(({ key }) => key !== deleted);
  expect(now.filter((one, i) => !Bun.deepEquals(one, rows[i])).slice(0, 3)).toEqual([]);
  expect(now).toHaveLength(rows.length);
  expect(mended).toMatchObject({ rows: 3100, backup: { file }, aside });
  expect(existsSync(aside)).toBe(true);
  expect(readdirSync(join(path, "..")).sort()).toEqual(["aside", "one.zst", "store"]);
});

test.each<[string, (path: string) => void]>([
  ["its table of contents is", (path) => garble(biggest(path, /^MANIFEST/), 10, 20)],
  ["nothing is, when it is read once more", () => undefined],
])("of a store of which no row is damaged nothing is lost, and nothing comes back: %s", async (_, damage) => {
  const { path, file, rows, aside } = await lived();
  damage(path);
  expect(await mendStore({ path, aside, backups: [file], clock })).toMatchObject({ rows: rows.length, lost: 0, backup: undefined, aside });
  expect(await rowsOf(path)).toEqual(rows);
});

test("the tables lost, and with them the shapes without which the log cannot be read: the backup", async () => {
  const { path, file, aside } = await lived();
  rmSync(aTable(path));
  expect(await mendStore({ path, aside, backups: [file], clock })).toMatchObject({ rows: 3000, backup: { rows: 3000 } });
});

test("the log lost: the backup is newer than what can be read, and is what there is", async () => {
  const { path, file, aside, backupRevision } = await lived();
  rmSync(biggest(path, /\.log$/));
  expect(await mendStore({ path, aside, backups: [file], clock })).toMatchObject({ rows: 3000 });
  const store = await open(path);
  expect(store.revision).toBeGreaterThanOrEqual(backupRevision + REVISIONS_SKIPPED);
  await store.close();
});

test.each<[string, RegExp]>([["a table", /\.ldb$/], ["the log", /\.log$/], ["the list of tables", /^MANIFEST/]])("the disk cannot read %s: as if it were damaged", async (_, pattern) => {
  const { path, file, rows, aside } = await lived();
  const unread = biggest(path, pattern);
  rmSync(unread);
  symlinkSync("/proc/self/mem", unread); // is opened, and answers as a bad sector does
  await expect(open(path)).rejects.toMatchObject({ code: "corrupt", fields: { reason: `the disk cannot read ${basename(unread)}` } });
  const unreadableBackup = join(path, "../other.zst");
  symlinkSync("/proc/self/mem", unreadableBackup);
  const mended = await mendStore({ path, aside, backups: [unreadableBackup, file], clock });
  expect(mended.rows).toBeGreaterThanOrEqual(3000);
  const found = new Set((await rowsOf(path)).map(({ key }) => key));
  expect(rows.filter(({ key }) => Number(key.slice(-5)) < 3000 && !found.has(key))).toEqual([]);
});

test("everything lost: the backup", async () => {
  const { path, file, aside } = await lived();
  for (const name of readdirSync(path)) truncateSync(join(path, name), 0);
  expect(await mendStore({ path, aside, backups: [file], clock })).toMatchObject({ rows: 3000, lost: undefined, backup: { file, rows: 3000 } });
});

test("of backups the newest that can be read, whatever they are called", async () => {
  const { path, file, rows, aside } = await lived();
  const [newer, torn] = [`${file}.a`, `${file}.z`];
  const store = await open(path);
  await backupStore(store, newer);
  await store.close();
  writeFileSync(torn, readFileSync(newer).subarray(0, 1000));
  for (const name of readdirSync(path)) truncateSync(join(path, name), 0);
  expect(await mendStore({ path, aside, backups: [file, newer, torn, `${file}.missing`], clock })).toMatchObject({ backup: { file: newer } });
  expect(await rowsOf(path)).toEqual(rows);
});

test("without a backup: what can be read, if hardly anything is lost", async () => {
  const { path, rows, aside } = await lived();
  garble(aTable(path), statSync(aTable(path)).size >> 1, 200);
  const mended = await mendStore({ path, aside, backups: [], clock });
  const originals = new Map(rows.map((one) => [one.key, one]));
  const kept = await rowsOf(path);
  for (const one of kept) expect(one).toEqual(originals.get(one.key));
  expect(mended.lost).toBe(rows.length - kept.length);
  expect(mended.lost).toBeGreaterThan(0);
});

test.each([0, 0xff, undefined])("pages of a table that hold %s or anything: what LevelDB would make of them ends nobody, and all else is there", async (byte) => {
  const { path, rows, aside } = await lived(), random = mulberry32(byte ?? 3), originals = new Map(rows.map((one) => [one.key, one]));
  for (let turn = 0; turn < 3; turn++) {
    const copy = `${path}-${turn}`, backup = `${path}-${turn}.zst`;
    cpSync(path, copy, { recursive: true });
    const table = aTable(copy), bytes = readFileSync(table), at = Math.floor((random() * statSync(table).size) / 4096) * 4096;
    for (let i = at; i < Math.min(at + 4096, bytes.length); i++) bytes[i] = byte ?? Math.floor(random() * 256);
    writeFileSync(table, bytes);
    const mended = await mendStore({ path: copy, aside: `${aside}-${turn}`, backups: [backup], clock }).catch((error: unknown) => error);
    if (mended instanceof Error) expect(mended).toMatchObject({ code: "corrupt", fields: { reason: expect.stringMatching(/no snapshot$/) } }); // the index
    else for (const one of await rowsOf(copy)) expect(one).toEqual(originals.get(one.key));
  }
});

test("nearly all is there if few rows are lost of a number that is known, and few bytes: with those go changes of rows that can be read as they were before", () => {
  const found = { rows: Array.from({ length: 90 }, (_, i) => row(`/${i}`, i + 1)), lost: 10, reserved: 0, soundAt: 0, unreadableShare: 0.1, hasLast: true };
  expect(isNearlyAll(found)).toBe(true);
  for (const other of [{ lost: 11 }, { lost: undefined }, { unreadableShare: 0.11 }, { rows: [], lost: 0 }]) expect({ other, is: isNearlyAll({ ...found, ...other }) }).toEqual({ other, is: false });
});

test("without a backup and much lost: refused, and left as it is", async () => {
  const { path, aside } = await lived();
  for (const name of readdirSync(path)) if (name.endsWith(".ldb")) rmSync(join(path, name));
  const before = readdirSync(path).sort();
  await expect(mendStore({ path, aside, backups: [], clock })).rejects.toMatchObject({ code: "corrupt", fields: { reason: expect.stringMatching(/lost.* and there is no snapshot$/) } });
  expect([readdirSync(path).sort(), existsSync(aside), readdirSync(join(path, "..")).sort()]).toEqual([before, false, ["one.zst", "store"]]);
});

test("a store that another process has open is left alone", async () => {
  const { path, file, aside } = await lived();
  const holder = Bun.spawn([process.execPath, "-e", `const { openStore } = await import(${JSON.stringify(join(import.meta.dirname, "open.ts"))}); await openStore({ path: ${JSON.stringify(path)}, clock: { uptimeMs: () => 0, after: () => ({ cancel() {} }) } }); console.log("open"); await Bun.sleep(1e9);`], { stdout: "pipe" });
  try {
    await holder.stdout.getReader().read();
    await expect(mendStore({ path, aside, backups: [file], clock })).rejects.toMatchObject({ code: "locked" });
  } finally {
    holder.kill("SIGKILL");
    await holder.exited;
  }
});

test("what was deleted after the backup and rewritten later: revisions decide", () => {
  const backup = { revision: 10, rows: [row("/a", 3), row("/b", 5), row("/c", 10)] };
  expect(mergeSalvaged([row("/a", 12, { new: 1 }), row("/b", 4, { stale: 1 }), row("/d", 9, { "gone before": 1 }), row("/e", 11)], backup)).toEqual({
    rows: [row("/b", 5), row("/c", 10), row("/a", 12, { new: 1 }), row("/e", 11)], fromBackup: 2,
  });
});

test("a backup of another cluster is not this one's past, however new it is", async () => {
  const [here, there] = [await lived(), await lived()];
  const store = await open(there.path);
  for (const { key, revision } of (await store.list({ prefix: "" })).rows) await store.put(key, { text: "there" }, revision);
  const foreign = `${there.file}.foreign`;
  await backupStore(store, foreign);
  await store.close();
  garble(aTable(here.path), statSync(aTable(here.path)).size >> 1, 200);
  expect(await mendStore({ path: here.path, aside: here.aside, backups: [here.file, foreign], clock })).toMatchObject({ rows: 3100, backup: { file: here.file } });
  expect((await rowsOf(here.path)).filter(({ value }) => value["text"] === "there")).toEqual([]);
});

test("of the past is what has a row of that time as it still is", () => {
  const backup = { revision: 10, rows: [row("/a", 3, { uid: "x" }), row("/b", 5)] };
  const cases: [rows: Row[], expected: boolean][] = [[[], true], [[row("/z", 11)], true], [[row("/a", 3, { uid: "x" }), row("/b", 4)], true], [[row("/a", 3, { uid: "y" })], false], [[row("/a", 2, { uid: "x" }), row("/c", 5)], false]];
  expect(cases.map(([rows]) => isOfPast(backup, rows))).toEqual(cases.map(([, expected]) => expected));
});

test("mended twice without a write that can be read in between, no revision is handed out twice", async () => {
  const { path, file, aside } = await lived();
  const heads: number[] = [];
  for (const turn of [1, 2]) {
    garble(biggest(path, /^MANIFEST/), 10, 20);
    await mendStore({ path, aside: `${aside}-${turn}`, backups: [file], clock });
    const store = await open(path);
    heads.push(store.revision);
    await store.close();
  }
  expect(heads[1]! - heads[0]!).toBeGreaterThanOrEqual(REVISIONS_SKIPPED);
});

test("a cut of power while a store is replaced leaves the old one or the new one, never none", async () => {
  const { path, file, rows, aside } = await lived();
  cpSync(path, `${path}.copy`, { recursive: true });
  rmSync(aTable(path));
  await mendStore({ path, aside, backups: [file], clock });
  // cut before the old one is moved away
  renameSync(path, finishedPath(path));
  renameSync(`${path}.copy`, path);
  expect(await rowsOf(path)).toEqual(rows);
  expect(existsSync(finishedPath(path))).toBe(false);
  // cut after
  renameSync(path, finishedPath(path));
  expect(await rowsOf(path)).toEqual(rows);
  expect(existsSync(finishedPath(path))).toBe(false);
  // cut after, and restored again: what is there by then is kept
  renameSync(path, finishedPath(path));
  await restoreStore({ file, path, clock, aside: `${aside}-again` });
  expect(await rowsOf(`${aside}-again`)).toEqual(rows);
});

test("what was cut off before it was complete takes no room for ever: the next opening removes it", async () => {
  const { path, rows } = await lived();
  for (const left of [buildingPath(path), copyPath(path)]) cpSync(path, left, { recursive: true });
  expect(await rowsOf(path)).toEqual(rows);
  expect([buildingPath(path), copyPath(path)].filter((left) => existsSync(left))).toEqual([]);
});
