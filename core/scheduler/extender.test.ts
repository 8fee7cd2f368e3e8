import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { afterAll, expect, test } from "vitest";
import { eventually } from "../../test/eventually.ts";
import type { Pod } from "../api/gen/core.v1.ts";
import { systemClock as clock } from "../lifecycle/clock.ts";
import { silentLog as log } from "../observe/log.ts";
import { P521_CERT, P521_SERVER } from "../../test/p521.ts";
import { node, pod, schedulingCluster } from "../../test/scheduling-cluster.ts";
import { filterByExtenders, scoresOfExtenders, victimsByExtenders } from "./ask-extenders.ts";
import type { ExtenderConfig } from "./config/configuration.ts";
import { chosen } from "./preempt.ts";
import type { NodeRejection } from "./rejection.ts";
import { Extender } from "./extender.ts";

const seen: { path: string; body: Record<string, unknown> }[] = [];
const answers: Record<string, unknown> = {};
const server = Bun.serve({
  port: 0, hostname: "127.0.0.1",
  async fetch(request) {
    const { pathname } = new URL(request.url);
    seen.push({ path: pathname, body: (await request.json()) as Record<string, unknown> });
    if (typeof answers[pathname] === "string") return new Response(answers[pathname]);
    return pathname in answers ? Response.json(answers[pathname]) : new Response("no", { status: 500 });
  },
});
afterAll(() => server.stop(true));

const { signal } = new AbortController();
const cluster = schedulingCluster({ nodes: [node("a"), node("b"), node("c")], placed: [[pod("low"), "a"]] });
const all = cluster.nodes();
const extender = (config: Partial<ExtenderConfig>): Extender => new Extender({ urlPrefix: `http://127.0.0.1:${server.port}/x/`, ...config }, { clock });
const wanted: Pod = pod("p", { container: { resources: { requests: { "example.com/gpu": "1" } } } });

test("names or whole nodes go out; those it keeps and its reasons come back", async () => {
  answers["/x/names"] = { NodeNames: ["a", "b"], FailedNodes: { c: "too far" } };
  answers["/x/nodes"] = { Nodes: { items: [{ metadata: { name: "b" } }] }, FailedAndUnresolvableNodes: { a: "never" } };
  const rejections = new Map<string, NodeRejection>();
  const extenders = [extender({ filterVerb: "names", nodeCacheCapable: true }), extender({ filterVerb: "nodes" })];
  const left = await filterByExtenders(wanted, all, rejections, { extenders, log, signal });
  expect(left.map(({ name }) => name)).toEqual(["b"]);
  expect(Object.fromEntries(rejections)).toEqual({ a: { filter: "Extender", reasons: ["never"], resolvable: false }, c: { filter: "Extender", reasons: ["too far"], resolvable: true } });
  expect(seen.map(({ path, body }) => [path, body["NodeNames"], ((body["Nodes"] as { items?: { metadata: { name: string } }[] } | null)?.items ?? []).map(({ metadata }) => metadata.name)])).toEqual([["/x/names", ["a", "b", "c"], []], ["/x/nodes", null, ["a", "b"]]]);
  expect(seen.map(({ body }) => Object.keys(body["Pod"] as Pod))).toEqual([["metadata", "spec"], ["metadata", "spec"]]);
});

test("scores are multiplied by the weight and brought to our scale; one that fails adds nothing", async () => {
  answers["/x/score"] = [{ Host: "a", Score: 3 }, { Host: "b", Score: 10 }];
  const scores = await scoresOfExtenders(wanted, all, { extenders: [extender({ prioritizeVerb: "score", weight: 2 }), extender({ prioritizeVerb: "broken", weight: 1 })], log, signal });
  expect(Object.fromEntries(scores)).toEqual({ a: 60, b: 200 });
});

test("only pods that ask for what it manages concern it; it may be ignored or not", async () => {
  expect(extender({ managedResources: [{ name: "example.com/gpu" }] }).isInterestedIn(wanted)).toBe(true);
  expect(extender({ managedResources: [{ name: "example.com/fpga" }] }).isInterestedIn(wanted)).toBe(false);
  const broken = { filterVerb: "broken" };
  expect(await filterByExtenders(wanted, all, new Map(), { extenders: [extender({ ...broken, ignorable: true })], log, signal })).toEqual(all);
  await expect(filterByExtenders(wanted, all, new Map(), { extenders: [extender(broken)], log, signal })).rejects.toThrow(/^failed broken with extender at URL .*\/x\/broken, code 500$/);
});

test("it binds, and takes part in preemption", async () => {
  answers["/x/bind"] = { Error: "not today" };
  await expect(extender({ bindVerb: "bind" }).bind(wanted, "a", signal)).rejects.toThrow("not today");
  const low = pod("low");
  answers["/x/preempt"] = { NodeNameToMetaVictims: { a: { Pods: [{ UID: low.metadata.uid }], NumPDBViolations: 1 } } };
  const agreed = await extender({ preemptVerb: "preempt", nodeCacheCapable: true }).preempt(wanted, new Map([["a", { pods: [low], violations: 0 }]]), (name) => cluster.node(name), signal);
  expect([...agreed].map(([name, { pods, violations }]) => [name, pods.map(({ metadata }) => metadata.name), violations])).toEqual([["a", ["low"], 1]]);
  expect(seen.at(-1)?.body).toMatchObject({ NodeNameToVictims: null, NodeNameToMetaVictims: { a: { Pods: [{ UID: low.metadata.uid }], NumPDBViolations: 0 } } });
  answers["/x/preempt"] = { NodeNameToMetaVictims: { a: { Pods: [{ UID: "other" }] } } };
  await expect(extender({ preemptVerb: "preempt" }).preempt(wanted, new Map(), (name) => cluster.node(name), signal)).rejects.toThrow("claims to preempt pod (UID: &{other}) on node: a, but the pod is not found on that node");
});

test("its answers may be written in any case, as Go reads them", async () => {
  answers["/x/lower"] = { nodenames: ["a"], failednodes: { b: "too far" }, failedAndUnresolvableNodes: { c: "never" }, nodes: null, more: 1 };
  const rejections = new Map<string, NodeRejection>();
  const left = await filterByExtenders(wanted, all, rejections, { extenders: [extender({ filterVerb: "lower", nodeCacheCapable: true })], log, signal });
  expect([left.map(({ name }) => name), [...rejections].map(([name, { reasons }]) => `${name}: ${reasons.join()}`).sort()]).toEqual([["a"], ["b: too far", "c: never"]]);
  answers["/x/lower"] = { nodes: { Items: [{ Metadata: { Name: "b" } }] } };
  expect((await extender({ filterVerb: "lower" }).filter(wanted, all, signal)).nodes.map(({ name }) => name)).toEqual(["b"]);
  answers["/x/lower"] = [{ host: "a", score: 3 }, { HOST: "a", Score: 2 }];
  expect([...(await extender({ prioritizeVerb: "lower" }).prioritize(wanted, all, signal))]).toEqual([["a", 5]]);
  answers["/x/lower"] = { error: "not now" };
  await expect(extender({ bindVerb: "lower" }).bind(wanted, "a", signal)).rejects.toThrow("not now");
  const low = pod("low");
  answers["/x/lower"] = { nodenametometavictims: { a: { pods: [{ uid: low.metadata.uid }], numpdbviolations: 2 } } };
  const agreed = await extender({ preemptVerb: "lower" }).preempt(wanted, new Map(), (name) => cluster.node(name), signal);
  expect([...agreed].map(([name, { pods, violations }]) => [name, pods.length, violations])).toEqual([["a", 1, 2]]);
});

test("what is of another type is told in Go's words, and nothing is an empty answer", async () => {
  answers["/x/odd"] = [{ Host: "a", Score: 7.5 }];
  await expect(extender({ prioritizeVerb: "odd" }).prioritize(wanted, all, signal)).rejects.toThrow("json: cannot unmarshal number 7.5 into Go struct field HostPriority.Score of type int64");
  answers["/x/odd"] = { NodeNames: "a" };
  await expect(extender({ filterVerb: "odd" }).filter(wanted, all, signal)).rejects.toThrow("json: cannot unmarshal string into Go struct field ExtenderFilterResult.NodeNames of type []string");
  answers["/x/odd"] = "null";
  expect((await extender({ filterVerb: "odd" }).filter(wanted, all, signal)).nodes).toEqual([]);
  await extender({ bindVerb: "odd" }).bind(wanted, "a", signal);
});

test.each([
  ["{nope", "invalid character 'n' looking for beginning of object key string"],
  ["", "EOF"],
  ['{"NodeNames": [', "unexpected EOF"],
])("an answer of %j is told of as upstream does", async (answer, message) => {
  answers["/x/garbled"] = answer;
  await expect(filterByExtenders(wanted, all, new Map(), { extenders: [extender({ filterVerb: "garbled" })], log, signal })).rejects.toMatchObject({ message });
});

test("a node whose victims an extender spares is none, or an error where it may not be passed over", async () => {
  answers["/x/spare"] = { NodeNameToMetaVictims: { a: { Pods: [] } } };
  const asked = (ignorable: boolean) => victimsByExtenders(wanted, new Map([["a", { pods: [pod("low")], violations: 0 }]]), (name) => cluster.node(name), { extenders: [extender({ preemptVerb: "spare", nodeCacheCapable: true, ignorable })], log, signal });
  expect([...(await asked(true))]).toEqual([]);
  await expect(asked(false)).rejects.toThrow('expected at least one victim pod on node "a"');
  expect(chosen([])).toEqual({ type: "none", message: "preemption: no candidate node for preemption", keepNomination: true });
});

test("what no double holds goes out as it is", async () => {
  answers["/x/patient"] = { NodeNames: ["a"] };
  const patient = pod("p", { tolerations: [{ operator: "Exists", effect: "NoExecute", tolerationSeconds: 2n ** 60n as unknown as number }] });
  await extender({ filterVerb: "patient", nodeCacheCapable: true }).filter(patient, all, signal);
  expect((seen.at(-1)!.body["Pod"] as Pod).spec.tolerations).toEqual([{ operator: "Exists", effect: "NoExecute", tolerationSeconds: 2 ** 60 }]);
});

test("a timeout of nothing is the usual one", async () => {
  answers["/x/score"] = [{ Host: "a", Score: 1 }];
  expect([...(await extender({ prioritizeVerb: "score", httpTimeout: "0s" }).prioritize(wanted, all, signal))]).toEqual([["a", 1]]);
});

test("why an extender does not answer is told in Go's words", async () => {
  const deaf = Bun.serve({
    port: 0, hostname: "127.0.0.1",
    fetch: ({ url }) => (url.endsWith("/half") ? new Response(new ReadableStream({ start: (body) => body.enqueue("{") })) : new Promise<Response>(() => {})),
  });
  const closed = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: (socket) => void socket.end() } });
  const why = async (urlPrefix: string, { verb = "filter", httpTimeout = "60s" } = {}): Promise<string> => {
    const asked = new Extender({ urlPrefix, filterVerb: verb, httpTimeout }, { clock }).filter(wanted, all, signal);
    return await asked.then(() => "it did", ({ message }: Error) => message);
  };
  const [late, gone] = [`127.0.0.1:${deaf.port}`, `127.0.0.1:${closed.port}`];
  try {
    expect(await why(`http://${late}/`, { httpTimeout: "200ms" })).toBe(`Post "http://${late}/filter": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`);
    expect(await why(`http://${late}`, { verb: "half", httpTimeout: "3s" })).toBe("context deadline exceeded (Client.Timeout or context cancellation while reading body)");
    expect(await why(`http://${gone}`)).toBe(`Post "http://${gone}/filter": EOF`);
    expect(await why(`https://127.0.0.1:${server.port}`)).toBe(`Post "https://127.0.0.1:${server.port}/filter": http: server gave HTTP response to HTTPS client`);
  } finally {
    closed.stop(true);
    await deaf.stop(true);
  }
  expect(await why(`http://${gone}`)).toBe(`Post "http://${gone}/filter": dial tcp ${gone}: connect: connection refused`);
});

test("an answer that does not end is none", async () => {
  let ended = false;
  const endless = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(new ReadableStream({ type: "bytes", pull: (out) => { out.enqueue(new Uint8Array(1024 * 1024).fill(32)); }, cancel: () => { ended = true; } })) });
  await expect(filterByExtenders(wanted, all, new Map(), { extenders: [extender({ urlPrefix: `http://127.0.0.1:${endless.port}`, filterVerb: "f" })], log, signal })).rejects.toThrow(/^the answer is longer than 167\d{5} bytes$/);
  await eventually("the connection is ended", () => Promise.resolve(ended));
  await endless.stop(true);
});

test("an extender with a certificate of P-521 and no newer TLS than 1.2 is asked", async () => {
  await using own = createServer(P521_SERVER, (_, response) => response.end('[{"Host":"a","Score":1}]'));
  own.listen(0, "127.0.0.1");
  await once(own, "listening");
  const asked = new Extender({ urlPrefix: `https://127.0.0.1:${(own.address() as AddressInfo).port}`, prioritizeVerb: "score", enableHTTPS: true }, { clock, tls: { ca: P521_CERT } });
  expect([...(await asked.prioritize(wanted, all, signal))]).toEqual([["a", 1]]);
});
