/** What the contract cannot see from outside: crashes, failing disks, what is written when. */
import { expect, test } from "vitest";
import { settle, TestStoreClock } from "../../test/store-clock.ts";
import { MemoryDisk, memoryStore, type MemoryStoreOptions } from "../memory.ts";
import { type Row, StoreError, type Store, type Value } from "../store.ts";
import { openMvcc } from "./mvcc.ts";

const isLease = (key: string): boolean => key.startsWith("/leases/");

/** A store whose disk notes what each batch writes. */
async function watched(options: MemoryStoreOptions = {}) {
  const disk = options.disk ?? new MemoryDisk();
  const batches: string[][] = [];
  disk.fault = (writes) => void batches.push(writes.map((write) => write.key));
  const clock = new TestStoreClock();
  const store = await memoryStore({ disk, clock, volatile: isLease, ...options });
  batches.length = 0;
  return { disk, store, clock, batches };
}

async function failure(call: Promise<unknown>): Promise<StoreError> {
  const error = await call.then(() => undefined, (reason: unknown) => reason);
  expect(error).toBeInstanceOf(StoreError);
  return error as StoreError;
}

const dump = async (store: Store): Promise<[string, Value][]> => (await store.list({ prefix: "" })).rows.map(({ key, value }) => [key, value]);

test("writes that wait for the disk at the same time share one batch", async () => {
  const { store, batches } = await watched();
  const revisions = await Promise.all(Array.from({ length: 64 }, (_, i) => store.put(`/${i}`, { i }, 0)));
  expect(batches).toHaveLength(1);
  expect(revisions).toEqual(Array.from({ length: 64 }, (_, i) => revisions[0]! + i));
});

test("what is read when the store opens may share parts, and is what it was", async () => {
  const disk = new MemoryDisk();
  const first = await memoryStore({ disk });
  for (const name of ["a", "b"]) await first.put(`/${name}`, { name, spec: { image: "x", ports: [1, 2] } }, 0);
  const before = await dump(first);
  await first.close();
  const spec = { image: "x", ports: [1, 2] };
  const store = await memoryStore({ disk, share: (value) => ({ ...value as object, spec }) });
  expect(await dump(store)).toEqual(before);
  const [a, b] = await Promise.all(["/a", "/b"].map((key) => store.get(key)));
  expect((b!.value as { spec: object }).spec).toBe((a!.value as { spec: object }).spec);
  await store.put("/a", { name: "a" }, a!.revision);
  await store.close();
  expect(await dump(await memoryStore({ disk }))).toEqual([["/a", { name: "a" }], before[1]]);
});

test("nothing is seen before it is on disk, and a crash takes back nothing that was seen", async () => {
  const { disk, store } = await watched();
  await store.put("/a", { n: 1 }, 0);
  const before = store.revision;
  const writing = store.put("/b", { n: 1 }, 0);
  await Promise.resolve();
  expect(await store.get("/b")).toBeUndefined();
  expect(store.revision).toBe(before);
  disk.crash();
  expect((await failure(writing)).code).toBe("unavailable");
  const { store: after } = await watched({ disk });
  expect(await dump(after)).toEqual([["/a", { n: 1 }]]);
  expect(after.revision).toBeGreaterThan(before);
});

test("who writes is told of the row while the disk is at work, which others see once it is there; of what is refused nothing is told", async () => {
  const { disk, store } = await watched();
  let answer = (): void => {};
  disk.hang = new Promise((resolve) => (answer = resolve));
  const told: Row[] = [];
  const put = store.put("/a", { n: 1 }, 0, undefined, (row) => void told.push(row));
  await settle();
  expect(told).toEqual([{ key: "/a", value: { n: 1 }, revision: store.revision + 1 }]);
  expect(await store.get("/a")).toBeUndefined();
  answer();
  expect(await put).toBe(told[0]!.revision);
  expect(await store.get("/a")).toBe(told[0]);
  await failure(store.put("/a", { n: 2 }, 0, undefined, (row) => void told.push(row)));
  expect(told).toHaveLength(1);
});

test("volatile writes are seen at once, and only their newest values reach the disk, new rows sooner than heartbeats", async () => {
  const { store, clock, batches } = await watched({ flushEveryMs: 60_000, heartbeatFlushEveryMs: 600_000 });
  let revision = 0;
  for (let i = 0; i < 30; i++) revision = await store.put("/leases/node", { i }, revision);
  expect((await store.get("/leases/node"))?.value).toEqual({ i: 29 });
  expect(batches).toEqual([]);
  await clock.advance(60_000);
  expect(batches).toEqual([["s00000", "r/leases/node", "m"]]); // the first with this shape
  for (let i = 0; i < 59; i++) {
    revision = await store.put("/leases/node", { i }, revision);
    await clock.advance(10_000);
  }
  expect(batches).toHaveLength(1);
  await clock.advance(10_000);
  expect(batches.slice(1)).toEqual([["r/leases/node", "m"]]);
  await clock.advance(3_600_000);
  expect(batches).toHaveLength(2); // nothing to write, nothing written
});

/** What has been put where, in the order of a watch. */
async function story(store: Store, after: number, count: number): Promise<[string, number][]> {
  const seen: [string, number][] = [];
  for await (const batch of store.watch({ prefix: "/", after }, AbortSignal.timeout(60_000))) {
    seen.push(...batch.events.map(({ row }): [string, number] => [row.key, row.revision]));
    if (seen.length >= count) break;
  }
  return seen;
}

test("a heartbeat overtakes a batch whose disk hangs, and what was overtaken comes after it: in memory, in watches and on disk", async () => {
  const { disk, store, clock, batches } = await watched();
  const lease = await store.put("/leases/node", { beat: 0 }, 0);
  const pod = await store.put("/pods/a", { n: 0 }, 0);
  const before = store.revision;
  let answer = (): void => {};
  disk.hang = new Promise((resolve) => (answer = resolve));
  batches.length = 0;

  const writing = [store.put("/pods/a", { n: 1 }, pod), store.put("/pods/b", { n: 1 }, 0), store.put("/pods/a", { n: 2 }, before + 2)]; // the heartbeat comes first, although it is put last
  const lost = failure(store.put("/pods/b", { n: 9 }, 7));
  const beating = store.put("/leases/node", { beat: 1 }, lease); // of the same group
  await settle();
  const first = await beating;
  let isThere = false;
  const next = store.put("/leases/node", { beat: 2 }, first).finally(() => (isThere = true));
  await clock.advance(2000);
  expect(isThere).toBe(false); // most disks answer soon, and what is overtaken is written twice
  await clock.advance(1000);
  const second = await next, third = await store.put("/leases/node", { beat: 3 }, second);
  expect([store.revision, (await store.get("/leases/node"))?.value, (await store.get("/pods/b"))]).toEqual([third, { beat: 3 }, undefined]);
  expect((await failure(store.put("/leases/node", { beat: 9 }, second))).code).toBe("conflict");
  expect(batches).toEqual([]);

  answer();
  disk.hang = undefined;
  const [a1, b, a2] = await Promise.all(writing);
  expect([third < a1!, a1! < b!, b! < a2!]).toEqual([true, true, true]);
  const { fields, current } = await lost;
  expect([fields["actual"], current?.revision, current?.value]).toEqual([b, b, { n: 1 }]);
  expect(await story(store, before, 6)).toEqual([["/leases/node", first], ["/leases/node", second], ["/leases/node", third], ["/pods/a", a1], ["/pods/b", b], ["/pods/a", a2]]);
  expect(batches).toHaveLength(2);
  const later = await store.put("/pods/c", { n: 1 }, 0);
  expect([later > a2!, batches.length]).toEqual([true, 3]); // once, as before

  disk.crash();
  const { store: after } = await watched({ disk });
  expect([(await after.get("/pods/a"))?.revision, (await after.get("/pods/b"))?.revision, (await after.get("/pods/c"))?.revision]).toEqual([a2, b, later]);
});

test("heartbeats go on for as long as a disk hangs again and again, and a batch is written twice at the most", async () => {
  const { disk, store, clock, batches } = await watched();
  let lease = await store.put("/leases/node", { beat: 0 }, 0);
  let answer = (): void => {};
  const hang = (): void => void (disk.hang = new Promise((resolve) => (answer = resolve)));
  hang();
  batches.length = 0;
  const writing = store.put("/pods/a", { n: 1 }, 0);
  await settle();
  await clock.advance(3000);
  lease = await store.put("/leases/node", { beat: 1 }, lease);
  const release = answer;
  hang(); // for the second time it is written
  release();
  await settle();
  expect(batches).toHaveLength(1);
  for (let beat = 2; beat < 50; beat++) lease = await store.put("/leases/node", { beat }, lease);
  answer();
  expect([(await writing) > lease, batches.length]).toEqual([true, 2]);
});

test("an overtaken batch that fails was never written, and of one that a crash takes between its two writes nobody has been told", async () => {
  const { disk, store, clock } = await watched();
  const lease = await store.put("/leases/node", { beat: 0 }, 0);
  let answer = (): void => {};
  disk.hang = new Promise((resolve) => (answer = resolve));
  disk.fault = () => ({ error: new StoreError("unavailable"), landed: true });
  const failed = failure(store.put("/pods/a", { n: 1 }, 0));
  await settle();
  await clock.advance(3000);
  const beat = await store.put("/leases/node", { beat: 1 }, lease);
  answer();
  disk.hang = undefined;
  expect((await failed).code).toBe("unavailable");
  disk.fault = undefined;
  const second = await store.put("/pods/b", { n: 1 }, 0);
  expect([second > beat, await dump(store)]).toEqual([true, [["/leases/node", { beat: 1 }], ["/pods/b", { n: 1 }]]]);

  disk.hang = new Promise((resolve) => (answer = resolve));
  const told: unknown[] = [];
  store.put("/pods/b", { n: 2 }, second).then((revision) => told.push(revision), () => {});
  await settle();
  await clock.advance(3000);
  const last = await store.put("/leases/node", { beat: 2 }, beat);
  const release = answer;
  disk.hang = new Promise(() => {});
  release();
  await settle();
  disk.crash();
  disk.hang = undefined;
  const { store: after } = await watched({ disk });
  expect([told, (await after.get("/pods/b"))?.value, after.revision > last]).toEqual([[], { n: 2 }, true]);
});

test("a heartbeat that is renewed while it is being written behind reaches the disk the next time", async () => {
  const { disk, store, clock } = await watched({ flushEveryMs: 60_000 });
  const lease = await store.put("/leases/node", { beat: 0 }, 0);
  let answer = (): void => {};
  disk.hang = new Promise((resolve) => (answer = resolve));
  await clock.advance(60_000);
  await clock.advance(3000);
  await store.put("/leases/node", { beat: 1 }, lease);
  answer();
  disk.hang = undefined;
  await settle();
  await clock.advance(600_000);
  disk.crash();
  expect(await dump((await watched({ disk })).store)).toEqual([["/leases/node", { beat: 1 }]]);
});

test("what is volatile can depend on the change: a lease that changes hands is durable", async () => {
  const { store, batches } = await watched({ volatile: (_, value, previous) => value !== undefined && value["holder"] === previous?.["holder"] });
  const created = await store.put("/leases/l", { holder: "a" }, 0);
  const renewed = await store.put("/leases/l", { holder: "a", at: 1 }, created);
  expect(batches).toHaveLength(1);
  await store.put("/leases/l", { holder: "b" }, renewed);
  expect(batches).toHaveLength(2);
});

test("after a crash lost volatile writes are as if never written, and no revision comes twice", async () => {
  const disk = new MemoryDisk();
  const seen = new Set<number>();
  for (let life = 0; life < 5; life++) {
    const { store, clock } = await watched({ disk });
    expect(seen.has(store.revision)).toBe(false);
    expect((await store.get("/leases/node"))?.value).toEqual(life === 0 ? undefined : { life: life - 1 });
    let revision = (await store.get("/leases/node"))?.revision ?? 0;
    revision = await store.put("/leases/node", { life }, revision);
    await clock.advance(600_000);
    for (let i = 0; i < 1000; i++) seen.add((revision = await store.put("/leases/node", { life, lost: i }, revision)));
    const last = store.revision;
    disk.crash();
    const { store: after } = await watched({ disk });
    expect(after.revision).toBeGreaterThanOrEqual(last);
    const error = await failure(after.watch({ prefix: "/", after: last }, AbortSignal.timeout(60_000))[Symbol.asyncIterator]().next());
    expect(error.code).toBe("compacted");
    disk.crash();
  }
});

test("a store that is closed while something volatile is still to come leaves its disk alone from then on", async () => {
  const { disk, store, clock } = await watched();
  const renewed = store.put("/leases/a", { n: 1 }, 0); // its turn comes when the store is closing
  await store.close();
  await renewed;
  await clock.advance(3_600_000);
  const again = await memoryStore({ disk, volatile: isLease }); // nobody holds it
  expect(await dump(again)).toEqual([["/leases/a", { n: 1 }]]);
});

test("closed in order, the store goes on at the same revision with every volatile write", async () => {
  const { disk, store } = await watched();
  const revision = await store.put("/leases/node", { n: 1 }, 0);
  await store.close();
  const { store: after } = await watched({ disk });
  expect([after.revision, await after.get("/leases/node")]).toEqual([revision, { key: "/leases/node", value: { n: 1 }, revision }]);
});

for (const landed of [false, true]) {
  test(`a full disk refuses durable writes and nothing else, and is used again once there is room (failed batch ${landed ? "landed" : "lost"})`, async () => {
    const disk = new MemoryDisk();
    const { store, clock } = await watched({ disk });
    const a = await store.put("/a", { n: 1 }, 0);
    const gone = await store.put("/gone", { n: 1 }, 0);
    const stop = new AbortController();
    const events = store.watch({ prefix: "/", after: gone }, stop.signal)[Symbol.asyncIterator]();
    await events.next();
    const full = new StoreError("full", { freeBytes: 0 });
    disk.fault = () => ({ error: full, landed });
    disk.full = undefined; // the answer of statfs comes too late: the batch itself fails
    const refused = await Promise.all([store.put("/a", { n: 2 }, a), store.delete("/gone", gone), store.put("/new", {}, 0)].map(failure));
    expect(refused.map((error) => error.code)).toEqual(["full", "full", "full"]);
    disk.full = full;
    const lease = await store.put("/leases/node", { n: 1 }, 0);
    expect((await failure(store.put("/a", { n: 2 }, a))).code).toBe("full");
    expect((await events.next()).value.events.map((event: { row: { key: string } }) => event.row.key)).toEqual(["/leases/node"]);
    expect(await dump(store)).toEqual([["/a", { n: 1 }], ["/gone", { n: 1 }], ["/leases/node", { n: 1 }]]);

    disk.full = disk.fault = undefined;
    await clock.advance(1000);
    const later = await store.put("/a", { n: 3 }, a);
    expect(later).toBeGreaterThan(lease);
    disk.crash();
    const { store: after } = await watched({ disk });
    expect(await dump(after)).toEqual([["/a", { n: 3 }], ["/gone", { n: 1 }]]);
    stop.abort();
  });
}

test("what waits for a full disk is bounded: beyond that nothing volatile is new, and what is known is still renewed", async () => {
  const { disk, store } = await watched();
  disk.full = new StoreError("full", { freeBytes: 0 });
  const made = await Promise.all(Array.from({ length: 20_000 }, (_, i) => store.put(`/leases/${i}`, { n: 1 }, 0)));
  expect((await failure(store.put("/leases/more", {}, 0))).code).toBe("full");
  await store.put("/leases/0", { n: 2 }, made[0]!);
  await store.delete("/leases/1", made[1]!);
  disk.full = undefined;
  await store.put("/leases/more", {}, 0);
});

test("where little room is left, puts are refused and deletes are not", async () => {
  const { disk, store } = await watched();
  const a = await store.put("/a", {}, 0);
  disk.full = new StoreError("full");
  expect((await failure(store.put("/b", {}, 0))).code).toBe("full");
  await store.delete("/a", a);
  disk.full = undefined;
  await store.put("/b", {}, 0);
});

test("each time room becomes short it is told once, and once when it is over; urgent rows are still overwritten while a little is left", async () => {
  const told: string[] = [];
  const { disk, store } = await watched({ urgent: (key, value) => key === "/node" || value["going"] === true, onRoom: (full) => told.push(full?.code ?? "room") });
  const node = await store.put("/node", { n: 1 }, 0);
  const pod = await store.put("/pod", {}, 0);
  disk.full = new StoreError("full", { freeBytes: 20 << 20 });
  for (const key of ["/a", "/b"]) expect((await failure(store.put(key, {}, 0))).code).toBe("full");
  const overwritten = await store.put("/node", { n: 2 }, node);
  expect((await failure(store.put("/pod", { going: false }, pod))).code).toBe("full");
  await store.put("/pod", { going: true }, pod);
  disk.full = new StoreError("full", { freeBytes: 1 << 20 });
  expect((await failure(store.put("/node", { n: 3 }, overwritten))).code).toBe("full");
  expect(told).toEqual(["full"]);
  disk.full = undefined;
  await store.put("/a", {}, 0);
  disk.full = new StoreError("full", { freeBytes: 0 });
  expect((await failure(store.put("/b", {}, 0))).code).toBe("full");
  expect(told).toEqual(["full", "room", "full"]);
});

test("a store that takes long to be opened again, in vain, is not opened all the time", async () => {
  const disk = new MemoryDisk(), clock = new TestStoreClock(), opened: number[] = [];
  let broken: StoreError | undefined;
  const store = await openMvcc(async ({ create }) => {
    opened.push(clock.uptimeMs());
    if (broken) await clock.advance(700);
    if (broken) throw broken;
    return disk.open({ create });
  }, { clock });
  broken = new StoreError("unavailable", { reason: "the file system is read-only" });
  disk.fault = () => ({ error: broken!, landed: false });
  for (const key of ["/a", "/b", "/c", "/d"]) {
    expect((await failure(store.put(key, {}, 0))).code).toBe("unavailable");
    await clock.advance(4000);
  }
  expect(opened).toEqual([0, 4000, 4000 + 700 + 8000]);
  await clock.advance(4000);
  [broken, disk.fault] = [undefined, undefined];
  await store.put("/e", {}, 0);
  expect((await dump(store)).map(([key]) => key)).toEqual(["/e"]);
});

test("a disk that hung for minutes before it failed is tried again half a minute later", async () => {
  const disk = new MemoryDisk(), clock = new TestStoreClock();
  let hangs = false;
  const store = await openMvcc(async ({ create }) => {
    if (hangs) await clock.advance(180_000);
    if (hangs) throw new StoreError("unavailable", { reason: "input/output error" });
    return disk.open({ create });
  }, { clock });
  hangs = true;
  disk.fault = () => ({ error: new StoreError("unavailable", {}), landed: false });
  for (const key of ["/a", "/b"]) expect((await failure(store.put(key, {}, 0))).code).toBe("unavailable");
  [hangs, disk.fault] = [false, undefined];
  await clock.advance(30_000);
  await store.put("/c", {}, 0);
  expect((await dump(store)).map(([key]) => key)).toEqual(["/c"]);
});

test("whose disk takes writes again when it is closed is closed in order, however lately it was tried in vain", async () => {
  const { disk, store } = await watched();
  await store.put("/leases/a", { holder: "x" }, 0);
  const full = new StoreError("full", {});
  disk.fault = () => ({ error: full, landed: false });
  expect((await failure(store.put("/a", {}, 0))).code).toBe("full");
  disk.full = full;
  expect((await failure(store.put("/b", {}, 0))).code).toBe("full");
  [disk.fault, disk.full] = [undefined, undefined];
  const { revision } = store;
  await store.close();
  const again = await memoryStore({ disk });
  expect([await dump(again), again.revision - revision < 10]).toEqual([[["/leases/a", { holder: "x" }]], true]);
});

test("where all rows take what they may, none is made, those that there are can be overwritten and deleted, and there is room again once some are gone", async () => {
  const told: string[] = [];
  const { disk, store } = await watched({ bytesMax: 10_000, onRoom: (full) => told.push(full ? String(full.fields["reason"]) : "room") });
  const text = "x".repeat(1000);
  const revisions: number[] = [];
  for (let i = 0; i < 9; i++) revisions.push(await store.put(`/${i}`, { text }, 0));
  const refused = await failure(store.put("/9", { text }, 0));
  expect([refused.code, refused.fields["reason"], refused.fields["bytesMax"]]).toEqual(["full", "etcdserver: mvcc: database space exceeded", 10_000]);
  revisions[0] = await store.put("/0", { text: `${text}${text}` }, revisions[0]!); // a little more than all may have
  expect((await failure(store.put("/1", { text: text.repeat(3) }, revisions[1]!))).code).toBe("full");
  expect((await failure(store.put("/small", {}, 0))).code).toBe("full");
  expect(told).toEqual(["etcdserver: mvcc: database space exceeded"]);
  await store.close();

  const { store: again } = await watched({ disk, bytesMax: 10_000 }); // it counts what it finds
  expect((await failure(again.put("/9", { text }, 0))).code).toBe("full");
  await again.put("/0", { text }, revisions[0]);
  for (const i of [1, 2]) await again.delete(`/${i}`, revisions[i]!);
  await again.put("/9", { text }, 0);
});

test("what takes many times the memory of its JSON takes as much more of the room, also when it is found there", async () => {
  const { disk, store } = await watched({ bytesMax: 100_000 });
  const brackets = { all: Array.from({ length: 2_000 }, () => []) };
  const revision = await store.put("/a", brackets, 0); // 6 kB of JSON
  expect((await failure(store.put("/b", brackets, 0))).code).toBe("full");
  await store.close();

  const { store: again } = await watched({ disk, bytesMax: 100_000 });
  expect((await failure(again.put("/b", brackets, 0))).code).toBe("full");
  await again.delete("/a", revision);
  await again.put("/b", brackets, 0);
});

test("where all rows take what they may, what need not wait for the disk is refused as well, and told so", async () => {
  const { store } = await watched({ bytesMax: 2_000, volatile: (key) => key.startsWith("/events/") });
  await store.put("/a", { text: "x".repeat(1_900) }, 0);
  expect((await failure(store.put("/events/a", { text: "x".repeat(200) }, 0))).code).toBe("full");
});

test("where nothing that there is may grow any more, what is urgent may, a little: also where more is found than all may take", async () => {
  const disk = new MemoryDisk(), text = "x".repeat(1_000);
  const { store: before } = await watched({ disk });
  const [plain, urgent] = [await before.put("/plain", { text }, 0), await before.put("/urgent", { text }, 0)];
  await before.close();

  const { store } = await watched({ disk, bytesMax: 1_000, urgent: (key) => key === "/urgent" });
  const grown = await store.put("/plain", { text: `${text}${"x".repeat(124)}` }, plain);
  expect((await failure(store.put("/plain", { text: `${text}${"x".repeat(126)}` }, grown))).code).toBe("full");
  expect((await failure(store.put("/urgent", { text: `${text}${text}` }, urgent))).code).toBe("full");
  await store.put("/urgent", { text: `${text} is to go` }, urgent);
});

test("a store that is found with more than all may take, as after an upgrade that counts otherwise, takes none, and goes on: what there is is written anew, grows a little, and goes", async () => {
  const disk = new MemoryDisk(), text = "x".repeat(1_000);
  const { store: before } = await watched({ disk });
  const [pod, lease, other] = [await before.put("/pod", { text }, 0), await before.put("/lease", { text }, 0), await before.put("/other", { text }, 0)];
  await before.close();

  const { store } = await watched({ disk, bytesMax: 1_600 });
  await store.put("/lease", { text: text.replace("x", "y") }, lease);
  await store.put("/pod", { text: `${text}, and was started again` }, pod);
  expect((await failure(store.put("/new", {}, 0))).code).toBe("full");
  await store.delete("/other", other);
  await store.delete("/lease", (await store.get("/lease"))!.revision);
  await store.put("/new", {}, 0);
});

test("a write that met another one of its group is refused with it if the disk fails", async () => {
  const { disk, store } = await watched();
  disk.fault = () => ({ error: new StoreError("full"), landed: false });
  const [first, second] = await Promise.all([failure(store.put("/a", { n: 1 }, 0)), failure(store.put("/a", { n: 2 }, 0))]);
  expect([first.code, second.code]).toEqual(["full", "full"]);
});

test("any row that is not as it was last written is noticed when the store opens", async () => {
  const damages: [string, (records: Map<string, Uint8Array>) => unknown][] = [
    ["a bit of a value", (records) => (records.get("r/b")![20]! ^= 1)],
    ["a row lost", (records) => records.delete("r/b")],
    ["a row older than it was", (records) => records.set("r/a", old)],
    ["a row under another key", (records) => records.set("r/c", records.get("r/b")!)],
    ["a deleted row that came back", (records) => records.set("r/deleted", deleted)],
    ["a shape lost", (records) => records.delete("s00000")],
    ["the meta record lost", (records) => records.delete("m")],
    ["the meta record damaged", (records) => (records.get("m")![15]! ^= 1)],
  ];
  let old = new Uint8Array();
  let deleted = new Uint8Array();
  for (const [what, damage] of damages) {
    const { disk, store } = await watched();
    const a = await store.put("/a", { name: "a" }, 0);
    old = disk.records.get("r/a")!.slice();
    await store.put("/a", { name: "A" }, a);
    await store.put("/b", { name: "b", nested: { field: "some text" } }, 0);
    const gone = await store.put("/deleted", { name: "d" }, 0);
    deleted = disk.records.get("r/deleted")!.slice();
    await store.delete("/deleted", gone);
    await store.close();
    damage(disk.records);
    expect([what, (await failure(memoryStore({ disk }))).code]).toEqual([what, "corrupt"]);
  }
});

test("a second store on the same disk is refused", async () => {
  const { disk } = await watched();
  expect((await failure(memoryStore({ disk }))).code).toBe("locked");
});

test("history is forgotten by number, by bytes and by age", async () => {
  const clock = new TestStoreClock();
  const big = { text: "x".repeat(1000) };
  for (const [limits, kept] of [[{ historyRevisionsMax: 10 }, 10], [{ historyBytesMax: 11_500 }, 10], [{ historyMs: 9_500 }, 10]] as const) {
    const { store } = await watched({ clock, ...limits });
    const start = store.revision;
    let revision = 0;
    for (let i = 0; i < 40; i++) {
      revision = await store.put("/a", big, revision);
      await clock.advance(1000);
    }
    revision = await store.put("/a", big, revision);
    const oldest = revision - kept;
    expect((await store.list({ prefix: "/", revision: oldest })).rows[0]?.revision).toBe(oldest);
    expect((await failure(store.list({ prefix: "/", revision: oldest - 1 }))).code).toBe("compacted");
    expect(start).toBeLessThan(oldest);
  }
});

test("a value that the history has forgotten is held no longer", async () => {
  const { store } = await watched({ historyRevisionsMax: 10 });
  const values: WeakRef<object>[] = [];
  let revision = 0;
  for (let i = 0; i < 400; i++) {
    const value = { text: `${i}${"x".repeat(1000)}` };
    values.push(new WeakRef(value));
    revision = await store.put("/a", value, revision);
  }
  await new Promise((resolve) => setTimeout(resolve, 0)); // a WeakRef holds what it refers to until then
  Bun.gc(true);
  expect(values.filter((one) => one.deref() !== undefined).length).toBeLessThan(50);
  expect((await store.get("/a"))?.revision).toBe(revision);
});

test("values are frozen, also those that were put, and are no JSON only by mistake", async () => {
  const { store } = await watched();
  const value = { spec: { list: [{ a: 1 }] } };
  await store.put("/a", value, 0);
  expect((await store.get("/a"))?.value).toBe(value); // one copy of the world
  expect(() => { value.spec.list[0]!.a = 2; }).toThrow(TypeError);
  for (const odd of [{ a: new Date(0) }, { a: Number.NaN }, { a: () => 1 }, { a: 2n ** 63n }, [1], "text", null]) await expect(store.put("/b", odd as never, 0)).rejects.toThrow(TypeError);
  for (const key of ["", "\ud800"]) await expect(store.put(key, {}, 0)).rejects.toThrow(TypeError);
});
