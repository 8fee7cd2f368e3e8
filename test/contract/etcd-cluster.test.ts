/** What the store over etcd does when etcd's members fail: three of them, over TLS with client certificates. */
import { cpSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "../../core/lifecycle/clock.ts";
import { type EtcdOptions, openEtcd } from "../../storage/etcd/etcd.ts";
import { type Store, StoreError, type StoreEvent } from "../../storage/store.ts";
import { testPki } from "../certificates.ts";
import { type Etcd, type EtcdTlsFiles, startEtcd } from "../etcd.ts";

let etcd: Etcd;
let files: EtcdTlsFiles;
let tls: ReturnType<NonNullable<EtcdOptions["tls"]>>;

beforeAll(async () => {
  const { dir } = await testPki();
  const file = (name: string): string => join(dir, name);
  files = { cafile: file("server-ca.crt"), clientCafile: file("client-ca.crt"), servingCertfile: file("serving-kube-apiserver.crt"), servingKeyfile: file("serving-kube-apiserver.key"), certfile: file("client-admin.crt"), keyfile: file("client-admin.key") };
  tls = { ca: readFileSync(files.cafile, "utf8"), cert: readFileSync(files.certfile, "utf8"), key: readFileSync(files.keyfile, "utf8") };
  etcd = await startEtcd({ members: 3, tls: files });
  await healthy();
});
afterAll(async () => await etcd?.[Symbol.asyncDispose]());

function open(options: Partial<EtcdOptions> = {}): Promise<Store> {
  return openEtcd({ endpoints: etcd.endpoints, tls: () => tls, clock: systemClock, ...options });
}

async function failure(call: Promise<unknown>): Promise<StoreError> {
  const error = await call.then(() => undefined, (reason: unknown) => reason);
  expect(error).toBeInstanceOf(StoreError);
  return error as StoreError;
}

async function healthy(): Promise<void> {
  for (let ok = false; !ok; ) ok = await etcd.ctl("endpoint", "health").then(() => true, () => false);
}

/** Everything that happens under `prefix`, until there are `count` events. */
async function collect(store: Store, prefix: string, after: number, count: () => number): Promise<StoreEvent[]> {
  const events: StoreEvent[] = [];
  for await (const batch of store.watch({ prefix, after }, AbortSignal.timeout(50_000))) {
    events.push(...batch.events);
    if (events.length >= count()) break;
  }
  return events;
}

test("a person with etcdctl can read it, and what others write disturbs nobody", async () => {
  const opened: unknown[] = [];
  const store = await open({ onOpen: (facts) => opened.push(facts) });
  expect(opened).toEqual([{ endpoint: etcd.endpoints[0], version: expect.stringMatching(/^3\./), bytes: expect.any(Number) }]);
  const after = store.revision;
  await store.put("/registry/core/configmaps/default/a", { data: { a: "ü" } }, 0);
  expect(await etcd.ctl("get", "--print-value-only", "/registry/core/configmaps/default/a")).toBe('{"data":{"a":"ü"}}\n');
  await etcd.ctl("put", "elsewhere", "no JSON");
  await etcd.ctl("put", "/registry/x", "[1]");
  const b = await store.put("/registry/core/configmaps/default/b", {}, 0);
  expect((await failure(store.get("/registry/x").then((row) => row!.value))).code).toBe("corrupt");
  await etcd.ctl("del", "--prefix", "/registry/"); // one revision
  const events = await collect(store, "/registry/core/", after, () => 4);
  expect(events.map(({ type, row }) => [type, row.key.at(-1), row.revision - b])).toEqual([["put", "a", -3], ["put", "b", 0], ["delete", "a", 1], ["delete", "b", 1]]);
  expect(await store.newestRevision()).toBe(b + 1);
  await store.close();
});

test("without a client certificate, or with another CA, it says why it cannot be opened", async () => {
  const trouble: StoreError[] = [];
  await expect(open({ endpoints: [etcd.endpoints[0]!], tls: () => ({ ca: tls.ca }), callTimeoutMs: 3_000 })).rejects.toThrow(/unavailable/);
  await expect(open({ endpoints: [etcd.endpoints[0]!], tls: () => ({ ...tls, ca: readFileSync(files.clientCafile, "utf8") }), callTimeoutMs: 3_000 })).rejects.toThrow(/certificate/);
  await expect(openEtcd({ endpoints: ["ftp://x"], clock: systemClock })).rejects.toThrow(/is no etcd endpoint/);
  await expect(openEtcd({ endpoints: ["https://root:s3cr3t@x:2379"], clock: systemClock })).rejects.toThrow(/^"https:\/\/…@x:2379" is no etcd endpoint/);
  await expect(openEtcd({ endpoints: ["http://127.0.0.1:1"], clock: systemClock, callTimeoutMs: 300, onTrouble: (error) => trouble.push(error) }, AbortSignal.timeout(3_000))).rejects.toThrow(/timed out/);
  expect(String(trouble.at(-1)?.fields["reason"])).toMatch(/ECONNREFUSED/);
});

describe.each([
  ["killed", (member: Etcd["members"][number]) => member.kill(), (member: Etcd["members"][number]) => member.start()],
  ["hung", async (member: Etcd["members"][number]) => member.pause(), async (member: Etcd["members"][number]) => member.resume()],
])("the member in use is %s", (_, fail, recover) => {
  test("writes go on, none is lost, doubled or told wrongly, and watchers see each once", async () => {
    const failovers: string[] = [];
    const store = await open({ onFailover: ({ from }) => failovers.push(from) });
    const start = store.revision;
    const written = new Map<string, number>();
    let refused = 0, done = false;
    const seen = collect(store, "/w/", start, () => (done ? written.size : Infinity));
    const writer = async (name: string): Promise<void> => {
      for (let i = 0, last = 0; i < 60; i++) {
        const key = `/w/${start}/${name}`;
        last = await store.put(key, { name, i }, last); // a conflict would mean that a write happened and was denied
        written.set(`${name} ${i}`, last);
        await Bun.sleep(10);
      }
    };
    const writers = Promise.all(["a", "b", "c", "d"].map(writer)).catch((error: unknown) => { refused++; throw error; });
    await Bun.sleep(150);
    await fail(etcd.members[0]!);
    await writers;
    done = true;
    const last = await store.put(`/w/${start}/end`, {}, 0);
    written.set("end undefined", last);
    const events = await seen;
    expect(refused).toBe(0);
    expect(events.map(({ row }) => row.revision)).toEqual([...written.values()].sort((a, b) => a - b));
    expect(new Set(events.map(({ row }) => `${row.value["name"] ?? "end"} ${row.value["i"]}`))).toEqual(new Set(written.keys()));
    expect(failovers[0]).toBe(etcd.endpoints[0]);
    expect((await store.list({ prefix: `/w/${start}/` })).rows).toHaveLength(5);
    await store.close();
    await recover(etcd.members[0]!);
    await healthy();
  });
});

test("without a majority nothing is answered; with it again, everything goes on", async () => {
  const store = await open({ callTimeoutMs: 4000 });
  const revision = await store.put("/q/a", {}, 0);
  const seen = collect(store, "/q/", revision, () => 1);
  for (const member of etcd.members.slice(1)) await member.pause();
  expect((await failure(store.put("/q/b", {}, 0))).code).toBe("unavailable");
  expect((await failure(store.newestRevision())).code).toBe("unavailable");
  for (const member of etcd.members.slice(1)) member.resume();
  const written = await store.put("/q/b", {}, 0).catch(async () => (await store.get("/q/b"))!.revision); // the first may have been carried out after all, or be at any moment until now
  expect((await seen).map((event) => event.row.revision)).toEqual([written]);
  await store.close();
});

test("events that were compacted before they arrived: watchers are told to start again", async () => {
  const store = await open({ endpoints: [etcd.endpoints[0]!] });
  const other = await open({ endpoints: [etcd.endpoints[1]!] });
  const start = store.revision;
  const watching = failure(collect(store, "/c/", start, () => Infinity));
  await Bun.sleep(200);
  await etcd.members[0]!.kill();
  let last = 0;
  for (let i = 0; i < 5; i++) last = await other.put("/c/a", { i }, last);
  await other.compact(last);
  await etcd.members[0]!.start();
  expect((await watching).code).toBe("overrun");
  expect((await store.list({ prefix: "/c/" })).rows.map((row) => row.value)).toEqual([{ i: 4 }]);
  const now = await store.newestRevision();
  const next = await other.put("/c/a", { i: 5 }, last);
  expect((await collect(store, "/c/", now, () => 1)).map((event) => event.row.revision)).toEqual([next]);
  await Promise.all([store.close(), other.close()]);
});

test("a write that nobody waits for any more is not carried out when etcd is back", async () => {
  const store = await open();
  await Promise.all(etcd.members.map((member) => member.kill()));
  const stop = new AbortController();
  const refused = failure(store.put("/asked/unwanted", {}, 0, stop.signal));
  const wanted = store.put("/asked/wanted", {}, 0, new AbortController().signal);
  await Bun.sleep(200);
  stop.abort();
  expect((await refused).code).toBe("unavailable");
  expect((await failure(store.put("/asked/late", {}, 0, stop.signal))).code).toBe("unavailable");
  await Promise.all(etcd.members.map((member) => member.start()));
  await wanted;
  await store.put("/asked/then", {}, 0);
  expect((await store.list({ prefix: "/asked/" })).rows.map(({ key }) => key)).toEqual(["/asked/then", "/asked/wanted"]);
  await store.close();
});

test("of all servers one compacts, each time to where etcd was a round ago", async () => {
  const stores = await Promise.all([1, 2, 3].map(() => open({ compactEveryMs: 300 })));
  const first = await stores[0]!.put("/r/a", { n: 1 }, 0);
  const second = await stores[0]!.put("/r/a", { n: 2 }, first);
  for (let code: string | undefined; code !== "compacted"; await Bun.sleep(100))
    code = await stores[1]!.list({ prefix: "/r/", revision: first }).then(() => undefined, (error: StoreError) => error.code);
  expect((await stores[2]!.get("/r/a"))?.revision).toBe(second);
  const rounds = async (): Promise<number> => JSON.parse(await etcd.ctl("get", "compact_rev_key", "-w", "json")).kvs[0].version;
  const [before, fromMs] = [await rounds(), performance.now()];
  await Bun.sleep(1500);
  expect(await rounds() - before).toBeLessThanOrEqual(Math.ceil((performance.now() - fromMs) / 300) + 1); // not three times as many
  await Promise.all(stores.map((store) => store.close()));
});

test("a name is claimed by one, until it is given back or its time is over", async () => {
  const [a, b] = await Promise.all([open(), open()]);
  const release = await a.claim!("/claims/x", { ttlSeconds: 30 });
  expect(await b.claim!("/claims/x", { ttlSeconds: 30 })).toBeUndefined();
  await release!();
  const brief = await b.claim!("/claims/x", { ttlSeconds: 1 });
  expect(brief).toBeDefined();
  await b.close();
  for (let taken: (() => Promise<void>) | undefined; taken === undefined; await Bun.sleep(200)) taken = await a.claim!("/claims/x", { ttlSeconds: 30 });
  await a.close();
});

test("certificates that were renewed are used from the next connection on, those of before no more", async () => {
  const [{ dir }, later] = [await testPki(), await testPki()], own = Object.fromEntries(Object.entries(files).map(([name, path]) => [name, join(dir, basename(path))])) as unknown as EtcdTlsFiles;
  const read = (path: string): string => readFileSync(path, "utf8");
  await using one = await startEtcd({ tls: own });
  const store = await openEtcd({ endpoints: one.endpoints, tls: () => ({ ca: read(own.cafile), cert: read(own.certfile), key: read(own.keyfile) }), clock: systemClock });
  const first = await store.put("/registry/a", { n: 1 }, 0);
  for (const path of Object.values(own)) cpSync(join(later.dir, basename(path)), path);
  await one.members[0]!.kill();
  await one.members[0]!.start();
  const second = await store.put("/registry/a", { n: 2 }, first);
  for await (const { revision } of store.watch({ prefix: "/registry/", after: first }, AbortSignal.timeout(30_000))) if (revision >= second) break;
  await store.close();
}, 60_000);
