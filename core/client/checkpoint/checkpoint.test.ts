import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { eventually, fakeApi } from "../../../test/fake-api.ts";
import type { Pod } from "../../api/gen/core.v1.ts";
import { serviceUnavailable } from "../../api/meta/status-error.ts";
import { systemClock } from "../../lifecycle/clock.ts";
import { systemRandom } from "../../lifecycle/random.ts";
import { runAll } from "../../lifecycle/run-all.ts";
import { silentLog } from "../../observe/log.ts";
import { informerFactory } from "../informer-factory.ts";
import { clientOver } from "../resource-client.ts";
import { ENDPOINT_SLICES, PODS, SECRETS, SERVICE_ACCOUNTS } from "../resources.ts";
import type { ApiRequest, Transport } from "../transport.ts";
import { checkpointed } from "./checkpoint.ts";
import { openJournal } from "./journal.ts";
import { reachability } from "./reachability.ts";

const clock = systemClock, random = systemRandom, log = silentLog;
const query = { fieldSelector: "spec.nodeName=node-1" };
const pod = (name: string) => ({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "default" }, spec: { nodeName: "node-1", containers: [{ name: "c", image: "i" }] } });

/** An API whose network can be cut: running watches end, calls fail. */
function cuttable(transport: Transport) {
  let cut = new AbortController();
  let sent = 0;
  const gone = (): Error => serviceUnavailable("cannot reach it");
  const through = (request: ApiRequest): ApiRequest => ({ ...request, signal: AbortSignal.any([request.signal, cut.signal]) });
  return {
    cut: () => cut.abort(),
    mend: () => { cut = new AbortController(); },
    sent: () => sent,
    probe: async () => { if (cut.signal.aborted) throw gone(); },
    transport: {
      async call(request) {
        if (cut.signal.aborted) throw gone();
        sent++;
        return await transport.call(request);
      },
      async *watch(request) {
        if (cut.signal.aborted) throw gone();
        yield* transport.watch(through(request));
        if (cut.signal.aborted && !request.signal.aborted) throw gone();
      },
    } satisfies Transport,
  };
}

/** One life of an agent's process. */
async function life(path: string, wire: ReturnType<typeof cuttable>, work: (agent: { readonly informers: ReturnType<typeof informerFactory>; readonly client: ReturnType<typeof clientOver>; readonly flush: () => Promise<void>; readonly signal: AbortSignal }) => Promise<void>): Promise<void> {
  const journal = openJournal({ path, clock, log });
  const reach = reachability({ servers: () => ["https://server:6443"], probe: wire.probe, clock, random, log });
  const transport = checkpointed(wire.transport, { journal, reach, clock });
  const client = clientOver(transport);
  const informers = informerFactory({ client, clock, random, log });
  const stop = new AbortController();
  const running = runAll([journal, reach, transport, informers], stop.signal);
  try {
    await work({ informers, client, flush: () => journal.flush(), signal: AbortSignal.timeout(60_000) });
  } finally {
    stop.abort();
    await running;
  }
}

test("a second life without a server starts with what the first one knew, and catches up when the server is back", async () => {
  const api = fakeApi();
  const wire = cuttable(api);
  const path = join(mkdtempSync(join(tmpdir(), "checkpoint-")), "journal");
  const direct = api.client;
  const signal = AbortSignal.timeout(60_000);
  const secret = { metadata: { name: "door", namespace: "default" } };
  await direct.resource(PODS).create(pod("a"), { signal });
  await direct.resource(PODS).create(pod("b"), { signal });
  await direct.resource(SECRETS).create({ apiVersion: "v1", kind: "Secret", ...secret, data: { key: "b3Blbg==" } }, { signal });

  await life(path, wire, async ({ informers, client }) => {
    const pods = informers.of(PODS, query);
    await pods.whenSynced(signal);
    await client.resource(SECRETS).get(secret, { signal });
    await direct.resource(PODS).create(pod("c"), { signal });
    await direct.resource(PODS).delete({ metadata: { name: "b", namespace: "default" } }, { gracePeriodSeconds: 0 }, { signal });
    await eventually(() => [...pods.list()].map(({ metadata }) => metadata.name).sort().join(), (names) => names === "a,c");
  });
  expect(statSync(path).mode & 0o777).toBe(0o600);

  wire.cut();
  await direct.resource(PODS).create(pod("d"), { signal }); // while nobody is there to see it
  await life(path, wire, async ({ informers, client }) => {
    const pods = informers.of(PODS, query);
    const changes: string[] = [];
    pods.onChange(({ object, old, deleted }) => void changes.push(`${deleted ? "-" : old ? "~" : "+"}${object.metadata.name}`));
    await pods.whenSynced(signal);
    expect([...pods.list()].map(({ metadata }) => metadata.name).sort()).toEqual(["a", "c"]);
    expect((await client.resource(SECRETS).get(secret, { signal })).data).toEqual({ key: "b3Blbg==" });
    await expect(client.resource(PODS).get({ metadata: { name: "never-read", namespace: "default" } }, { signal })).rejects.toThrow("cannot reach https://server:6443");
    await expect(client.resource(SECRETS).delete(secret, {}, { signal })).rejects.toThrow("cannot reach");
    wire.mend();
    await eventually(() => changes, (all) => all.includes("+d"));
    expect(changes).not.toContain("-a"); // nothing is rebuilt
    await client.resource(PODS).delete({ metadata: { name: "a", namespace: "default" } }, { gracePeriodSeconds: 0 }, { signal });
    await eventually(() => changes, (all) => all.includes("-a"));
  });
});

test("a server that goes away and comes back is not asked in between, and watches go on where they were", async () => {
  const api = fakeApi();
  const wire = cuttable(api);
  const signal = AbortSignal.timeout(60_000);
  const path = join(mkdtempSync(join(tmpdir(), "checkpoint-")), "journal");
  await api.client.resource(PODS).create(pod("a"), { signal });
  await life(path, wire, async ({ informers, client }) => {
    const pods = informers.of(PODS, query);
    await pods.whenSynced(signal);
    wire.cut();
    await expect(client.resource(PODS).create(pod("x"), { signal })).rejects.toThrow("cannot reach");
    await api.client.resource(PODS).create(pod("b"), { signal });
    const before = wire.sent();
    await Bun.sleep(100);
    expect((await client.resource(PODS).list(query, { signal })).items.map(({ metadata }) => metadata.name)).toEqual(["a"]);
    expect(wire.sent()).toBe(before);
    wire.mend();
    await eventually(() => [...pods.list()].length, (count) => count === 2);
  });
});

test("of several servers the first that answers is used, and left when it goes; nothing is asked while all is well", async () => {
  const up = new Set(["https://a", "https://b"]);
  const probes: string[] = [];
  const reach = reachability({ servers: () => ["https://a", "https://b"], clock, random, log, probe: async (server) => { probes.push(server); if (!up.has(server)) throw new Error("down"); } });
  const stop = new AbortController();
  const life = reach.run(stop.signal, () => {});
  await reach.whenOnline(stop.signal);
  const { connection } = reach;
  expect([reach.server(), probes.join()]).toEqual(["https://a", "https://a"]);
  up.delete("https://a");
  reach.suspect();
  await eventually(() => reach.server(), (server) => server === "https://b");
  expect([connection.aborted, reach.connection.aborted, reach.state, probes.join()]).toEqual([true, false, "online", "https://a,https://a,https://b"]);
  up.clear();
  reach.suspect();
  await eventually(() => reach.state, (state) => state === "offline");
  up.add("https://a");
  await reach.whenOnline(AbortSignal.timeout(60_000));
  expect([reach.server(), reach.offlineSinceMs]).toEqual(["https://a", undefined]);
  stop.abort();
  await life;
});

test("a server behind a slow link is found, though it is taken for gone at first, and then given the time it needs", async () => {
  const states: string[] = [], stop = new AbortController();
  const hundredfold: typeof clock = { ...clock, uptimeMs: () => clock.uptimeMs() * 100, after: (ms, act) => clock.after(ms / 100, act), sleep: (ms, signal) => clock.sleep(ms / 100, signal) };
  let isSilent = false;
  const reach = reachability({
    servers: () => ["https://far"], clock: hundredfold, random, log: { ...log, warn: () => void states.push("offline"), info: () => void states.push("online") },
    probe: (_server, signal) => clock.sleep(isSilent ? 60_000 : 90, signal).then(() => signal.throwIfAborted()), // nine seconds
  });
  const life = reach.run(stop.signal, () => {});
  await reach.whenOnline(AbortSignal.timeout(60_000));
  expect(states).toEqual(["offline", "online"]);
  for (let i = 0; i < 3; i++) {
    reach.suspect();
    await clock.sleep(150, stop.signal);
  }
  expect([states.length, reach.state, reach.connection.aborted]).toEqual([2, "online", false]);
  isSilent = true;
  reach.suspect();
  await eventually(() => reach.state, (state) => state === "offline");
  stop.abort();
  await life;
});

test("why no server can be reached is told once for each loss, and again when it is for another reason: one that comes back may be another cluster's", async () => {
  const told: unknown[] = [], stop = new AbortController();
  let why: string | undefined = "down";
  const quick: typeof clock = { ...clock, after: (ms, act) => clock.after(Math.min(ms, 1), act), sleep: (_, signal) => clock.sleep(1, signal) };
  const reach = reachability({
    servers: () => ["https://a"], clock: quick, random, log: { ...log, warn: (_: string, fields?: Readonly<Record<string, unknown>>) => void told.push((fields?.["error"] as Error | undefined)?.message) },
    async probe() { if (why !== undefined) throw new Error(why); },
  });
  const life = reach.run(stop.signal, () => {});
  await eventually(() => told.length, (count) => count === 1);
  await clock.sleep(50, stop.signal); // some more looks
  why = "another CA";
  await eventually(() => told.length, (count) => count === 2);
  why = undefined;
  await reach.whenOnline(AbortSignal.timeout(60_000));
  why = "down";
  reach.suspect();
  await eventually(() => told.length, (count) => count === 3);
  stop.abort();
  await life;
  expect(told).toEqual(["down", "another CA", "down"]);
});

test("tokens that were issued are good for the next life", async () => {
  const path = join(mkdtempSync(join(tmpdir(), "checkpoint-")), "journal");
  const signal = AbortSignal.timeout(60_000);
  let issued = 0;
  const wire = cuttable({ call: async ({ body }) => ({ ...(body as object), status: { token: `t${++issued}`, expirationTimestamp: "2030-01-01T00:00:00Z" } }), async *watch() {} });
  const ask = (client: ReturnType<typeof clientOver>, uid: string) => client.resource(SERVICE_ACCOUNTS).createSubresource<{ readonly status: { readonly token: string } }>({ metadata: { name: "default", namespace: "default" } }, "token",
    { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", metadata: {}, spec: { audiences: [], boundObjectRef: { uid } } }, { signal });
  await life(path, wire, async ({ client }) => {
    expect((await ask(client, "1")).status.token).toBe("t1");
    expect((await ask(client, "1")).status.token).toBe("t2");
  });
  wire.cut();
  await life(path, wire, async ({ client }) => {
    expect((await ask(client, "1")).status.token).toBe("t2");
    await expect(ask(client, "2")).rejects.toThrow("cannot reach");
  });
});

test("what does not matter is not written, what is torn is dropped, what is erased is gone from the file", async () => {
  const path = join(mkdtempSync(join(tmpdir(), "checkpoint-")), "journal");
  const open = () => openJournal({ path, clock, log });
  const first = open();
  first.put("a ü", '{"v":"ä"}', "soon");
  first.put("b", '{"secret":1}', "soon");
  await first.flush();
  const size = statSync(path).size;
  first.put("b", '{"secret":1}', "soon");
  await first.flush();
  expect(statSync(path).size).toBe(size);
  appendFileSync(path, '00000000 ["c",{}]\n0123');
  const torn = statSync(path).size, second = open();
  expect([second.keys("").toSorted(), second.get("a ü"), second.get("b"), statSync(path).size]).toEqual([["a ü", "b"], '{"v":"ä"}', '{"secret":1}', torn]); // a disk that takes no writes any more is read all the same
  second.put("c", "1", "soon");
  await second.flush();
  expect([statSync(path).size, open().get("c")]).toEqual([size + 17, "1"]);
  second.delete("b", { erase: true });
  second.put("d", "1", "later");
  await second.flush();
  expect(readFileSync(path, "utf8")).not.toContain("secret");
  expect([open().keys("").toSorted(), open().get("d")]).toEqual([["a ü", "c", "d"], "1"]);
  for (let i = 0; i < 400; i++) {
    second.put("big", JSON.stringify("x".repeat(2000) + i), "later");
    await second.flush();
  }
  expect(statSync(path).size).toBeLessThan(300_000);
  expect(open().get("big")).toContain("x399");
});

test("a disk that damages the file costs what stood there, and not the start, nor what can be asked for again", async () => {
  const directory = mkdtempSync(join(tmpdir(), "checkpoint-")), path = join(directory, "journal");
  const first = openJournal({ path, clock, log });
  for (const key of ["a", "b", "c"]) first.put(key, JSON.stringify(key.repeat(20)), "soon");
  await first.flush();
  const text = readFileSync(path, "utf8");
  writeFileSync(path, text.replace("bbbb", "bXbb"));
  expect([first.get("b"), first.get("c")]).toEqual([undefined, JSON.stringify("c".repeat(20))]);
  const second = openJournal({ path, clock, log });
  expect(second.keys("")).toEqual(["a", "c"]);
  second.put("b", "2", "soon");
  await second.flush();
  expect(["a", "b", "c"].map((key) => openJournal({ path, clock, log }).get(key))).toEqual([JSON.stringify("a".repeat(20)), "2", JSON.stringify("c".repeat(20))]);

  const unreadable = join(directory, "unreadable");
  mkdirSync(unreadable); // as good as a bad block: it cannot be read
  const third = openJournal({ path: unreadable, clock, log });
  third.put("a", "1", "soon");
  await third.flush();
  expect(third.get("a")).toBe("1");
  rmdirSync(unreadable);
  await third.flush();
  expect(openJournal({ path: unreadable, clock, log }).get("a")).toBe("1");
});

test("what is to be erased is erased, although the new file could not be begun at first", async () => {
  const path = join(mkdtempSync(join(tmpdir(), "checkpoint-")), "journal");
  const journal = openJournal({ path, clock, log });
  journal.put("a", '{"secret":1}', "soon");
  await journal.flush();
  mkdirSync(`${path}.next`);
  journal.delete("a", { erase: true });
  await journal.flush();
  rmdirSync(`${path}.next`);
  await journal.flush();
  expect(readFileSync(path, "utf8")).not.toContain("secret");
});

test("a heartbeat of a node is no change, a pod's new phase is one at once", async () => {
  const { keptForm, hasteOf } = await import("./kept.ts");
  const running = { ...pod("a"), metadata: { name: "a", namespace: "default", uid: "u", resourceVersion: "7", creationTimestamp: "" }, status: { phase: "Running" } } as Pod;
  const kept = keptForm("pods", running);
  expect(kept.metadata.resourceVersion).toBe("");
  const changed = (status: Pod["status"]) => hasteOf("pods", kept, keptForm("pods", { ...running, status } as Pod));
  expect(changed({ phase: "Running", message: "all is well" })).toBe("later");
  expect(changed({ phase: "Running", podIPs: [{ ip: "10.0.0.1" }] })).toBe("thrifty");
  expect(changed({ phase: "Succeeded" })).toBe("soon");
  expect(["services", "endpointslices", "networkpolicies"].map((resource) => hasteOf(resource, kept, kept))).toEqual(["thrifty", "thrifty", "thrifty"]);
  const node = (heartbeat: string) => ({ apiVersion: "v1", kind: "Node", metadata: { name: "n", uid: "n", resourceVersion: heartbeat, creationTimestamp: "" }, spec: { podCIDR: "10.42.1.0/24" }, status: { addresses: [{ type: "InternalIP", address: "10.0.0.1" }], conditions: [{ type: "Ready", status: "True", lastHeartbeatTime: heartbeat }] } });
  expect(JSON.stringify(keptForm("nodes", node("1")))).toBe(JSON.stringify(keptForm("nodes", node("2"))));
  expect(keptForm("nodes", Object.assign(node("1"), { status: { volumesInUse: ["v"] } }))).toMatchObject({ status: { addresses: [], volumesInUse: ["v"] } });
});

test("what routes traffic is on the disk within a second, but an endpoint that comes and goes does not wear it out", async () => {
  const path = join(mkdtempSync(join(tmpdir(), "checkpoint-")), "journal");
  let nowMs = 0;
  let next: { readonly atMs: number; readonly work: () => void } | undefined;
  const after = (ms: number, work: () => void) => {
    const one = { atMs: nowMs + ms, work };
    next = one;
    return { cancel: () => { if (next === one) next = undefined; } };
  };
  const journal = openJournal({ path, clock: { ...clock, uptimeMs: () => nowMs, after }, log });
  /** After how long what has just been put is written. */
  const written = async (): Promise<number> => {
    const { atMs, work } = next!;
    const waitMs = atMs - nowMs;
    nowMs = atMs;
    work();
    await journal.flush();
    return waitMs;
  };
  const delays: number[] = [];
  for (let i = 0; i < 12; i++) {
    journal.put("endpoints", String(i), "thrifty");
    delays.push(await written());
  }
  expect(delays).toEqual([...Array<number>(10).fill(1000), 30_000, 1000]); // one more each half minute
  journal.put("endpoints", "none", "thrifty");
  journal.put("pod", "{}", "soon"); // takes along what waits
  expect(await written()).toBe(1000);
  expect(openJournal({ path, clock, log }).get("endpoints")).toBe("none");
  journal.put("pod", '{"status":{}}', "later");
  expect(await written()).toBe(30_000);
  nowMs += 300_000;
  journal.put("endpoints", "[]", "thrifty");
  expect(await written()).toBe(1000);
});

test("while no server can be reached, a pod of this node that has become ready is an endpoint here, and no longer when it is not; what the server said is not taken away, and is the truth again when it is back", async () => {
  const api = fakeApi();
  const wire = cuttable(api);
  const path = join(mkdtempSync(join(tmpdir(), "checkpoint-")), "journal");
  const signal = AbortSignal.timeout(60_000);
  const endpoint = (uid: string, ready: boolean) => ({ addresses: [`10.0.0.${uid.length}`], conditions: { ready, serving: ready, terminating: false }, targetRef: { kind: "Pod", name: uid, uid } });
  await api.client.resource(ENDPOINT_SLICES).create({ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", metadata: { name: "web-1", namespace: "default" }, addressType: "IPv4", endpoints: [endpoint("late", false), endpoint("other", false), endpoint("fallen", true)] } as never, { signal });
  await life(path, wire, async ({ informers, client }) => {
    const slices = informers.of(ENDPOINT_SLICES);
    await slices.whenSynced(signal);
    const ready = (): string => [...slices.list()].flatMap(({ endpoints }) => (endpoints ?? []).filter(({ conditions }) => conditions?.ready).map(({ targetRef }) => targetRef!.uid!)).toSorted().join();
    const says = (uid: string, value: "True" | "False") => void client.resource(PODS).patch({ metadata: { name: uid, namespace: "default" } }, "application/strategic-merge-patch+json", { metadata: { uid }, status: { conditions: [{ type: "Ready", status: value }] } }, { subresource: "status", signal }).catch(() => undefined);
    expect(ready()).toBe("fallen");
    wire.cut();
    await expect(client.resource(SECRETS).get({ metadata: { name: "unread", namespace: "default" } }, { signal })).rejects.toThrow("cannot reach");
    await eventually(() => { says("late", "True"); return ready(); }, (now) => now === "fallen,late");
    says("fallen", "False");
    says("late", "False");
    await eventually(ready, (now) => now === "fallen");
    says("late", "True");
    await eventually(ready, (now) => now === "fallen,late");
    wire.mend();
    await eventually(ready, (now) => now === "fallen"); // nobody has told the server yet
    wire.cut();
    await expect(client.resource(SECRETS).get({ metadata: { name: "unread", namespace: "default" } }, { signal })).rejects.toThrow("cannot reach");
    await eventually(() => { says("other", "True"); return ready(); }, (now) => now.includes("other"));
    expect(ready()).toBe("fallen,other"); // what was said before does not count any more
  });
});
