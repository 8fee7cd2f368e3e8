/** Real directories: damaged, locked, full, copied. */
import { appendFileSync, closeSync, copyFileSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { backupStore, backupStream, inspectBackup, restoreStore, saveBackup } from "./backup.ts";
import { checkOpenStore, checkStore, repairStore, REVISIONS_SKIPPED } from "./check.ts";
import type { StoreClock } from "./engine.ts";
import { isOpen, levelEngine } from "./leveldb/leveldb.ts";
import { openStore } from "./open.ts";
import { StoreError, type Row, type Store } from "./store.ts";

/** Nothing here waits: no volatile rows, no age. */
const clock: StoreClock = { uptimeMs: () => performance.now(), after: () => ({ cancel() {} }) };
const made: string[] = [];

afterEach(() => {
  for (const path of made.splice(0)) rmSync(path, { recursive: true, force: true });
});

function scratch(): string {
  const path = mkdtempSync(join(tmpdir(), "store-"));
  made.push(path);
  return path;
}

const open = (path: string): Promise<Store> => openStore({ path, clock });

async function failure(call: Promise<unknown>): Promise<StoreError> {
  const error = await call.then(() => undefined, (reason: unknown) => reason);
  expect(error).toBeInstanceOf(StoreError);
  return error as StoreError;
}

/** A store of 3,000 rows, closed; most lie in tables, the last 100 in the log. */
async function filled(): Promise<{ path: string; rows: readonly Row[]; revision: number }> {
  const path = scratch();
  const put = async (from: number, to: number): Promise<Store> => {
    const store = await open(path);
    for (let i = from; i < to; i += 50) await Promise.all(Array.from({ length: 50 }, (_, j) => store.put(`/rows/${String(i + j).padStart(5, "0")}`, { name: `row-${i + j}`, text: `${i} `.repeat(200) }, 0)));
    return store;
  };
  await (await put(0, 2900)).close();
  const store = await put(2900, 3000);
  const { rows, revision } = await store.list({ prefix: "" });
  await store.close();
  return { path, rows, revision };
}

const files = (path: string, pattern: RegExp): string[] => readdirSync(path).filter((name) => pattern.test(name)).map((name) => join(path, name));
const biggest = (paths: string[]): string => paths.toSorted((a, b) => statSync(b).size - statSync(a).size)[0]!;

function garble(path: string, at: number, length: number): void {
  const bytes = readFileSync(path);
  for (let i = 0; i < length; i++) bytes[at + i]! ^= 0xa5;
  writeFileSync(path, bytes);
}

/** How many of the 3,000 rows are still there: what a table says of the fields of rows is gone with it, for those in the log too. */
const DAMAGES: [what: string, keptMin: number, damage: (path: string) => void][] = [
  ["a table truncated", 0, (path) => truncateSync(biggest(files(path, /\.ldb$/)), 20_000)],
  ["a table garbled in the middle", 2900, (path) => { const table = biggest(files(path, /\.ldb$/)); garble(table, statSync(table).size / 2 | 0, 200); }],
  ["a table lost", 0, (path) => rmSync(biggest(files(path, /\.ldb$/)))],
  ["the log garbled in the middle", 2900, (path) => { const log = biggest(files(path, /\.log$/)); garble(log, statSync(log).size / 3 | 0, 50); }],
  ["the log lost", 2900, (path) => rmSync(biggest(files(path, /\.log$/)))],
  ["CURRENT lost", 3000, (path) => rmSync(join(path, "CURRENT"))],
  ["CURRENT garbled", 3000, (path) => writeFileSync(join(path, "CURRENT"), "nonsense\n")],
  ["the manifest lost", 3000, (path) => { for (const manifest of files(path, /^MANIFEST/)) rmSync(manifest); }],
  ["the manifest garbled", 3000, (path) => garble(files(path, /^MANIFEST/)[0]!, 10, 20)],
  ["the manifest truncated", 3000, (path) => truncateSync(files(path, /^MANIFEST/)[0]!, 0)],
];

test("a store that was in use and has nothing in it is not taken for a new one, unless its directory was removed", async () => {
  const path = scratch();
  await (await open(path)).close();
  for (const log of files(path, /\.log$/)) truncateSync(log, 0);
  const refused = await failure(openStore({ path, clock, wasUsed: true }));
  expect([refused.code, refused.fields["path"], refused.fields["reason"]]).toEqual(["corrupt", path, "nothing is in it, and it has been in use: its log is lost"]);
  expect(await checkStore(path, { wasUsed: true })).toMatchObject({ repair: "impossible", problems: [{ what: refused.fields["reason"] }] });
  expect(await checkStore(path)).toMatchObject({ repair: "not needed", problems: [] });
  rmSync(path, { recursive: true });
  await (await openStore({ path, clock, wasUsed: true })).close();
});

test.each(DAMAGES)("damage is noticed, named and repaired as far as possible: %s", async (_, keptMin, damage) => {
  const { path, rows, revision } = await filled();
  damage(path);
  const refused = await failure(open(path));
  expect([refused.code, refused.fields["path"], refused.fields["remedy"]]).toEqual(["corrupt", path, expect.stringContaining("coracle check")]);
  const report = await checkStore(path);
  expect(report.repair).toBe("possible");
  expect(report.problems.length).toBeGreaterThan(0);
  for (const { what } of report.problems) expect(what).not.toMatch(/[{}]|store: /); // words for people
  expect(await repairStore(path)).toMatchObject({ problems: [], repair: "not needed" });
  const store = await open(path);
  expect(store.revision).toBeGreaterThan(revision + REVISIONS_SKIPPED / 2);
  const originals = new Map(rows.map((row) => [row.key, row]));
  const kept = (await store.list({ prefix: "" })).rows;
  for (const row of kept) expect(row).toEqual(originals.get(row.key));
  expect(kept.length).toBeGreaterThanOrEqual(keptMin);
  await store.put("/after", {}, 0);
  await store.close();
});

test("a sound store is found sound", async () => {
  const { path, revision } = await filled();
  expect(await checkStore(path)).toMatchObject({ problems: [], repair: "not needed", rows: 3000, revision, closedInOrder: true });
});

test("half a batch at the end of the log is what a crash leaves: nothing is wrong with that", async () => {
  const { path, rows } = await filled();
  const log = biggest(files(path, /\.log$/));
  truncateSync(log, statSync(log).size - 7);
  appendFileSync(log, new Uint8Array(4096)); // and the file had already grown
  const store = await open(path);
  expect((await store.list({ prefix: "" })).rows).toEqual(rows); // only the last meta record was torn off: the note that the store was closed in order
  await store.close();
});

test("a store that was just being made when the process died is made again", async () => {
  for (const left of [["MANIFEST-000001"], ["MANIFEST-000001", "CURRENT"], ["LOCK", "LOG"]]) {
    const path = scratch();
    const store = await open(path);
    await store.close();
    for (const name of readdirSync(path)) rmSync(join(path, name));
    for (const name of left) writeFileSync(join(path, name), name === "CURRENT" ? "MANIFEST-000001\n" : "");
    expect((await failure(checkStore(path))).fields["reason"]).toBe("there is no store here");
    if (left.includes("CURRENT")) continue; // LevelDB would not write it before the manifest is whole
    await (await open(path)).close();
  }
});

test("who comes second is told that the store is locked", async () => {
  const path = scratch();
  const store = await open(path);
  expect((await failure(open(path))).code).toBe("locked");
  expect((await failure(checkStore(path))).code).toBe("locked");
  await store.close();
  await (await open(path)).close();
});

test.runIf(process.platform === "linux")("a lock of a file of another file system with the same number is not the store's", async () => {
  const path = scratch(), locks = join(scratch(), "locks");
  const store = await open(path);
  const held = readFileSync("/proc/locks", "utf8");
  expect(isOpen(path)).toBe(true);
  await store.close();
  writeFileSync(locks, held);
  expect([isOpen(path), isOpen(path, locks)]).toEqual([false, false]);
  const file = openSync(join(path, "LOCK"), "r");
  expect(isOpen(path, locks)).toBe(true);
  closeSync(file);
  writeFileSync(locks, held.replaceAll(/ \d+ (?=[^ ]+:\d+ )/g, " -1 ")); // a lock that is no process's
  expect(isOpen(path, locks)).toBe(true);
});

test("a damaged store that a server has open is neither repaired nor replaced: the server goes on with it", async () => {
  const { path, rows, revision } = await filled();
  const file = join(scratch(), "copy.zst");
  const store = await open(path);
  await backupStore(store, file);
  expect(checkOpenStore(path)).toMatchObject({ path, problems: [] });
  const table = biggest(files(path, /\.ldb$/));
  garble(table, statSync(table).size / 2 | 0, 200);
  const damaged = readFileSync(table), there = readdirSync(path);
  expect((await failure(checkStore(path))).code).toBe("locked");
  expect((await failure(repairStore(path))).code).toBe("locked");
  expect((await failure(restoreStore({ file, path, clock, aside: join(scratch(), "aside") }))).code).toBe("locked");
  expect([readFileSync(table), readdirSync(path)]).toEqual([damaged, there]);
  expect(checkOpenStore(path).problems).toEqual([{ what: expect.stringMatching(/^the table \d+\.ldb is damaged$/) }]);
  const next = await store.put("/after", {}, 0); // it has all of it in memory
  expect((await store.list({ prefix: "/rows/" })).rows).toEqual(rows);
  expect(next).toBeGreaterThan(revision);
  await store.close();
});

test("a path that cannot be a store is explained", async () => {
  const path = join(scratch(), "file");
  writeFileSync(path, "");
  expect((await failure(open(path))).fields["reason"]).toMatch(/not a directory/i);
  expect((await failure(checkStore(join(path, "..", "nothing")))).fields["reason"]).toBe("there is no store here");
});

test("a store may be copied while it is closed, and is readable by its owner only", async () => {
  const { path, rows } = await filled();
  const copy = join(scratch(), "copy");
  mkdirSync(copy);
  for (const name of readdirSync(path)) copyFileSync(join(path, name), join(copy, name));
  const store = await open(copy);
  expect((await store.list({ prefix: "" })).rows).toEqual(rows);
  await store.close();
  const fresh = join(scratch(), "a", "b");
  await (await open(fresh)).close();
  expect(statSync(fresh).mode & 0o77).toBe(0);
});

test("a store whose disk has no room is not read to be opened again", async () => {
  const { path } = await filled();
  truncateSync(biggest(files(path, /\.ldb$/)), 20_000); // told by whoever reads it
  expect((await failure(levelEngine({ path, clock, freeBytesMin: Infinity }))).code).toBe("full");
  expect((await failure(levelEngine({ path, clock }))).code).toBe("corrupt");
});

test("a backup is the state at one revision, and makes the same store again, far in the future", async () => {
  const path = scratch();
  const file = join(scratch(), "backups", "one.zst");
  const store = await open(path);
  for (let i = 0; i < 2500; i++) void store.put(`/a/${i}`, { i, labels: { "a/b": "c" }, __proto__: undefined }, 0);
  await store.put("/odd", JSON.parse('{"data":{"__proto__":"x"},"text":"ü\\u2028\\n"}'), 0);
  const before = await store.list({ prefix: "" });
  const backing = backupStore(store, file);
  await store.put("/later", {}, 0);
  expect(await backing).toEqual({ rows: 2501, revision: before.revision });
  await store.close();
  expect(statSync(file).mode & 0o77).toBe(0);

  expect((await failure(restoreStore({ file, path, clock }))).fields["reason"]).toBe("there is a store already");
  const restored = join(scratch(), "restored");
  expect(await restoreStore({ file, path: restored, clock })).toEqual({ rows: 2501, revision: before.revision + REVISIONS_SKIPPED });
  const after = await open(restored);
  expect(await after.list({ prefix: "" })).toEqual({ ...before, revision: before.revision + REVISIONS_SKIPPED });
  await after.close();
});

test("a backup that is restored twice makes a store that goes on behind the first, and behind all that is known to have been", async () => {
  const path = join(scratch(), "db"), file = `${path}.zst`;
  const lives = async (): Promise<readonly [begins: number, ends: number]> => {
    const store = await open(path), begins = store.revision;
    const ends = await store.put(`/a/${begins}`, {}, 0);
    if (begins === 1) await backupStore(store, file);
    await store.close();
    return [begins, ends];
  };
  let [, handedOut] = await lives();
  for (const aside of ["-1", "-2", "-3"].map((ending) => path + ending)) {
    await restoreStore({ file, path, clock, aside });
    const [begins, ends] = await lives();
    expect(begins).toBeGreaterThan(handedOut);
    handedOut = ends;
  }
  rmSync(path, { recursive: true });
  await restoreStore({ file, path, clock, known: handedOut });
  expect((await lives())[0]).toBeGreaterThan(handedOut);
});

test("a store is replaced once nobody has it open, and kept; rows that were only added to a backup are none of the store", async () => {
  const path = join(scratch(), "db");
  const [file, aside] = [`${path}.zst`, `${path}-before`];
  const store = await open(path);
  await store.put("/a", { n: 1 }, 0);
  await saveBackup(await backupStream(store, [{ key: "/snapshot/keys", revision: 0, value: { sealed: "x" } }]), file);
  expect((await inspectBackup(file)).find("/snapshot/keys")).toEqual({ sealed: "x" });
  await store.put("/b", {}, 0);
  expect((await failure(restoreStore({ file, path, clock, aside }))).code).toBe("locked");
  await store.close();
  expect(await restoreStore({ file, path, clock, aside })).toMatchObject({ rows: 1 });
  for (const [where, keys] of [[path, ["/a"]], [aside, ["/a", "/b"]]] as const) {
    const one = await open(where);
    expect((await one.list({ prefix: "" })).rows.map(({ key }) => key)).toEqual(keys);
    await one.close();
  }
  expect((await failure(restoreStore({ file, path, clock, aside }))).fields["reason"]).toBe("there is something already");
});

test("what whoever takes a backup cannot be given is no fault of the disk, and nothing is left of it", async () => {
  const directory = scratch(), gone = new Error("cannot reach https://127.0.0.1:6443/snapshot: is the server running?");
  await expect(saveBackup((async function* () { yield Buffer.from("half"); throw gone; })(), join(directory, "one.zst"))).rejects.toBe(gone);
  expect(readdirSync(directory)).toEqual([]);
});

test("a row that cannot be read is told to whoever reads the backup, also one who comes late to it, and ends nothing else", async () => {
  const directory = scratch(), row: Row = { key: "/b", revision: 2, get value(): never { throw new StoreError("corrupt", { key: "/b" }); } };
  const bytes = await backupStream({ list: async () => ({ rows: [{ key: "/a", revision: 1, value: {} }, row], revision: 2 }) } as never);
  await Bun.sleep(50);
  expect(await failure(saveBackup(bytes, join(directory, "one.zst")))).toMatchObject({ code: "corrupt", fields: { key: "/b" } });
  expect(readdirSync(directory)).toEqual([]);
});

test("a damaged backup makes no store at all", async () => {
  const path = scratch();
  const file = join(path, "one.zst");
  const store = await open(join(path, "store"));
  for (let i = 0; i < 100; i++) await store.put(`/a/${i}`, { i, text: String(Math.sin(i)) }, 0);
  await backupStore(store, file);
  await store.close();
  const sound = readFileSync(file);
  const lines = Bun.zstdDecompressSync(sound).toString().split("\n");
  for (const [what, bytes] of [
    ["truncated", sound.subarray(0, sound.length - 20)],
    ["garbled", sound.map((byte, i) => (i === sound.length >> 1 ? byte ^ 4 : byte))],
    ["a row missing", Bun.zstdCompressSync(lines.toSpliced(7, 1).join("\n"))],
    ["the end missing", Bun.zstdCompressSync(lines.slice(0, -2).join("\n"))],
    ["something else", Bun.zstdCompressSync('{"kind":"List"}\n')],
    ["no zstd", Buffer.from("hello")],
    ["empty", Buffer.alloc(0)],
  ] as const) {
    writeFileSync(file, bytes);
    const error = await failure(restoreStore({ file, path: join(path, "restored"), clock }));
    expect([what, ["corrupt", "unavailable"].includes(error.code), readdirSync(path).sort()]).toEqual([what, true, ["one.zst", "store"]]);
  }
});
