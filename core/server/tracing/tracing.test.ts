import { Server, ServerCredentials } from "@grpc/grpc-js";
import { expect, onTestFinished, test } from "vitest";
import { WireReader } from "../../protobuf/wire.ts";
import { systemClock } from "../../lifecycle/clock.ts";
import { systemRandom } from "../../lifecycle/random.ts";
import { httpServer } from "../../net/http-server.ts";
import { silentLog } from "../../observe/log.ts";
import { apiServer } from "../../../test/api-server.ts";
import { eventually } from "../../../test/eventually.ts";
import { httpFront } from "../http.ts";
import { requestInfo } from "../request-info.ts";
import type { ServerRequest } from "../request.ts";
import { OtlpExporter } from "./exporter.ts";
import { type SpanData, tracer } from "./tracer.ts";

const asking = (headers: Readonly<Record<string, string>> = {}): ServerRequest => ({ method: "GET", path: "/api/v1/namespaces/a/pods", query: new URLSearchParams("limit=5"), remoteAddress: "10.0.0.9", header: (name: string) => headers[name] }) as unknown as ServerRequest;
const request = asking({ "user-agent": "kubectl" });
const info = requestInfo("GET", request.path, new URLSearchParams());

/** Fields of a message by number, nested as far as `path` says. */
function fields(bytes: Uint8Array, path: readonly number[]): Uint8Array[] {
  const [first, ...rest] = path;
  if (first === undefined) return [bytes];
  const found: Uint8Array[] = [];
  for (const reader = new WireReader(bytes); !reader.done;) {
    const tag = reader.varint();
    if (Math.floor(tag / 8) === first && tag % 8 === 2) found.push(...fields(reader.bytes(), rest));
    else reader.skip(tag % 8);
  }
  return found;
}

test("a request that is sampled becomes a span with its parts, of one trace", () => {
  const spans: SpanData[] = [];
  const tracing = (samplingRatePerMillion: number) => tracer({ samplingRatePerMillion, clock: systemClock, random: systemRandom, record: (span) => void spans.push(span) });
  expect(tracing(0).start(request, info, "id")).toBeUndefined();
  const span = tracing(1_000_000).start(request, info, "i".repeat(70))!;
  expect(span.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
  span.event("Authentication succeeded");
  span.child("webhook", 3, {}).end();
  span.end(503);
  expect(spans.map(({ name, kind, isError, events }) => [name, kind, isError, events.length])).toEqual([["webhook", 3, false, 0], ["GET /api/v1/namespaces/{:namespace}/pods", 2, true, 1]]);
  expect(spans[0]!.parentSpanId).toEqual(spans[1]!.spanId);
  expect(spans[0]!.traceId).toEqual(spans[1]!.traceId);
  expect(spans[1]!.attributes).toMatchObject({ "http.request.method": "GET", "http.response.status_code": 503, "k8s.resource.name": "pods", "audit-id": "i".repeat(64), "http.target": "/api/v1/namespaces/a/pods?limit=5" });
});

test.each([
  ["GET", "/version", "GET"], ["GET", "/apis/apps/v1/deployments", "GET /apis/apps/v1/deployments"],
  ["PUT", "/apis/apps/v1/namespaces/a/deployments/b/status", "PUT /apis/apps/v1/namespaces/{:namespace}/deployments/{:name}/status"],
])("%s %s is called %s", (method, path, name) => {
  const spans: SpanData[] = [];
  const named = { ...request, method, path };
  tracer({ samplingRatePerMillion: 1_000_000, clock: systemClock, random: systemRandom, record: (span) => void spans.push(span) }).start(named, requestInfo(method, path, new URLSearchParams()), "id")!.end(200);
  expect(spans[0]!.name).toBe(name);
});

test("only of who may do everything a request is a part of the trace it is sent in, recorded or not", () => {
  const [trace, outer] = ["0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"];
  const recorded = (samplingRatePerMillion: number, flags: string, groups: readonly string[]): string[] => {
    const spans: SpanData[] = [];
    const span = tracer({ samplingRatePerMillion, clock: systemClock, random: systemRandom, record: (one) => void spans.push(one) }).start(asking({ traceparent: `00-${trace}-${outer}-${flags}` }), info, "id");
    span?.askedBy(groups);
    span?.end(200);
    return spans.map(({ traceId, parentSpanId }) => `${Buffer.from(traceId).toString("hex") === trace ? "theirs" : "ours"} ${parentSpanId === undefined ? "" : Buffer.from(parentSpanId).toString("hex")}`.trim());
  };
  expect(recorded(0, "01", ["system:masters"])).toEqual([`theirs ${outer}`]);
  expect(recorded(1_000_000, "01", ["system:monitoring"])).toEqual([`theirs ${outer}`]);
  expect(recorded(1_000_000, "00", ["system:masters"])).toEqual([]);
  expect(recorded(0, "01", ["system:authenticated"])).toEqual([]);
  expect(recorded(1_000_000, "01", ["system:authenticated"])).toEqual(["ours"]);
});

async function collector(Export: (call: { request: Buffer; metadata: { get(name: string): unknown[] } }, done: (error: null, value: Buffer) => void) => void): Promise<number> {
  const server = new Server();
  onTestFinished(() => server.forceShutdown());
  const identity = (bytes: Buffer): Buffer => bytes;
  server.addService({ Export: { path: "/opentelemetry.proto.collector.trace.v1.TraceService/Export", requestStream: false, responseStream: false, requestSerialize: identity, requestDeserialize: identity, responseSerialize: identity, responseDeserialize: identity } }, { Export });
  return await new Promise<number>((resolve, reject) => server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) => (error ? reject(error) : resolve(bound))));
}

test("a collector gets the spans over gRPC, with the headers it wants", async () => {
  const taken = Promise.withResolvers<{ body: Buffer; key: unknown }>();
  const port = await collector((call, done) => {
    taken.resolve({ body: call.request, key: call.metadata.get("api-key")[0] });
    done(null, Buffer.alloc(0));
  });
  const stop = new AbortController();
  const exporter = new OtlpExporter({ endpoint: `127.0.0.1:${port}`, headers: { "api-key": "k" }, resource: { "service.name": "apiserver" }, clock: systemClock, log: silentLog });
  const running = exporter.run(stop.signal, () => undefined);
  tracer({ samplingRatePerMillion: 1_000_000, clock: systemClock, random: systemRandom, record: (span) => exporter.record(span) }).start(request, info, "id")!.end(200);
  stop.abort();
  const { body, key } = await taken.promise;
  await running;
  expect(key).toBe("k");
  expect(fields(body, [1, 2, 2, 5]).map((name) => Buffer.from(name).toString())).toEqual(["GET /api/v1/namespaces/{:namespace}/pods"]);
  expect(fields(body, [1, 2, 2, 1]).map((id) => id.length)).toEqual([16]);
  expect(fields(body, [1, 1, 1, 2, 1]).map((value) => Buffer.from(value).toString())).toEqual(["apiserver"]);
});

test("a collector that says nothing does not keep the process from ending", async () => {
  const asked = Promise.withResolvers<void>();
  const port = await collector(() => asked.resolve());
  const stop = new AbortController();
  const clock = { ...systemClock, after: (ms: number, work: () => void) => systemClock.after(ms === 5_000 ? 0 : ms, ms === 5_000 ? () => void asked.promise.then(work) : work) }; // its time is over once it was asked
  const exporter = new OtlpExporter({ endpoint: `127.0.0.1:${port}`, headers: {}, resource: {}, clock, log: silentLog });
  const running = exporter.run(stop.signal, () => undefined);
  tracer({ samplingRatePerMillion: 1_000_000, clock, random: systemRandom, record: (span) => exporter.record(span) }).start(request, info, "id")!.end(200);
  stop.abort();
  await asked.promise;
  await running;
});

test("what is done for a request is told as it happens; a watch has a part only if it begins with what is there", async () => {
  const spans: SpanData[] = [];
  await using api = await apiServer({ tracer: tracer({ samplingRatePerMillion: 1_000_000, clock: systemClock, random: systemRandom, record: (span) => void spans.push(span) }) });
  const maps = "/api/v1/namespaces/a/configmaps", one = `${maps}/m`;
  await api.ask("POST", maps, { body: { metadata: { name: "m" } } });
  await api.ask("GET", one);
  await api.ask("PUT", one, { body: { metadata: { name: "m" }, data: { a: "1" } } });
  await api.ask("PATCH", one, { body: { data: { a: "2" } }, headers: { "content-type": "application/merge-patch+json" } });
  await api.ask("GET", maps);
  await api.events(maps, 1);
  await api.events(maps, 1, { query: { sendInitialEvents: "true", allowWatchBookmarks: "true", resourceVersionMatch: "NotOlderThan" } });
  await api.ask("DELETE", one);
  const parts = spans.filter(({ name }) => /^[A-Z][A-Za-z]+$/.test(name) && name !== "GET");
  expect(parts.map(({ name, events }) => [name, events.map((event) => event.name)])).toEqual([
    ["Create", ["limitedReadBody succeeded", "About to convert to expected version", "Conversion done", "About to store object in database", "Write to database call succeeded", "About to write a response"]],
    ["Get", ["About to Get from storage", "About to write a response"]],
    ["Update", ["limitedReadBody succeeded", "About to convert to expected version", "Conversion done", "About to store object in database", "Write to database call succeeded", "About to write a response"]],
    ["Patch", ["limitedReadBody succeeded", "Recorded the audit event", "About to apply patch", "About to check admission control", "Object stored in database", "About to write a response"]],
    ["List", []], ["WatchList", []],
    ["Delete", ["limitedReadBody succeeded", "About to delete object from database", "Object deleted from database", "About to write a response"]],
  ]);
});

test("the way to the store and the cache is told, with what is counted there", async () => {
  const spans: SpanData[] = [];
  await using api = await apiServer({ tracer: tracer({ samplingRatePerMillion: 1_000_000, clock: systemClock, random: systemRandom, record: (span) => void spans.push(span) }) });
  const maps = "/api/v1/namespaces/a/configmaps", one = `${maps}/m`;
  await api.ask("POST", maps, { body: { metadata: { name: "m" } } });
  await api.ask("POST", maps, { body: { metadata: { generateName: "m-" } } });
  await api.ask("GET", one);
  await api.ask("PUT", one, { body: { metadata: { name: "m" }, data: { a: "1" } } });
  await api.ask("GET", maps, { query: { fieldSelector: "metadata.name=m" } });
  await api.ask("GET", "/api/v1/nodes/none");
  await api.events("/apis/apps/v1/deployments", 1, { query: { sendInitialEvents: "true", allowWatchBookmarks: "true", resourceVersionMatch: "NotOlderThan" } });
  const audit = { "audit-id": "" }, stored = { ...audit, type: "*core.ConfigMap", group: "", resource: "configmaps" };
  expect(spans.filter(({ name }) => / etcd3$|^cacher/.test(name)).map(({ name, attributes, events }) => [name, attributes, events.map((event) => (event.attributes ? [event.name, event.attributes] : event.name))])).toEqual([
    ["Create etcd3", { ...stored, key: "/configmaps/a/m" }, ["About to Encode", "Encode succeeded", "Txn call succeeded"]],
    ["Create etcd3", stored, ["About to Encode", "Encode succeeded", "Txn call succeeded"]],
    ["cacher.Get", { ...audit, key: "/configmaps/a/m", "resource-version": "" }, ["About to fetch object from cache"]],
    ["GuaranteedUpdate etcd3", { ...stored, key: "/configmaps/a/m" }, ["initial value restored", "About to Encode", "Encode succeeded", "Transaction prepared", "Txn call completed", "Transaction committed"]],
    ["cacher.GetList", { ...audit, type: "configmaps" }, ["Ready", "watchCache fresh enough", ["Listed items from cache", { count: 1 }], ["Filtered items", { count: 1 }]]],
    ["cacher.Get", { ...audit, key: "/minions/none", "resource-version": "" }, ["About to fetch object from cache"]],
    ["cacher.Watch", { ...audit, type: "deployments.apps" }, ["watchCache fresh enough"]],
  ]);
});

test("over the network a request is over when its answer is sent, which is a part of it", async () => {
  const spans: SpanData[] = [];
  const stop = new AbortController();
  await using api = await apiServer({ tracer: tracer({ samplingRatePerMillion: 1_000_000, clock: systemClock, random: systemRandom, record: (span) => void spans.push(span) }) });
  const front = httpFront({ handler: api.handler, clock: systemClock, log: silentLog, stopping: () => stop.signal, columnTexts: () => Promise.resolve(undefined) });
  const server = httpServer({ host: "127.0.0.1", port: 0, portFlag: "", handler: front.request, upgrade: front.upgrade, log: silentLog, clock: systemClock, limits: { drainMs: 0 } });
  const { promise: isReady, resolve: ready } = Promise.withResolvers<void>();
  const running = server.run(stop.signal, ready);
  await isReady;
  const maps = `http://127.0.0.1:${server.address()!.port}/api/v1/namespaces/a/configmaps`;
  const over = async (response: Response): Promise<void> => {
    await response.text();
    await eventually("the request's span", () => Promise.resolve(spans.some(({ kind }) => kind === 2)));
  };
  const told = (): unknown => spans.splice(0).filter(({ name }) => !/ etcd3$|^cacher|^auth/.test(name)).map(({ name, parentSpanId, events }, _, all) => [name, all.find((one) => parentSpanId && Buffer.from(one.spanId).equals(parentSpanId))?.name, events.map((event) => event.name).slice(-2)]);
  try {
    await over(await fetch(maps, { method: "POST", body: JSON.stringify({ metadata: { name: "m" } }) }));
    expect(spans.find(({ name }) => name === "SerializeObject")!.attributes).toMatchObject({ method: "POST", url: "/api/v1/namespaces/a/configmaps", protocol: "HTTP/1.1", mediaType: "application/json", encoder: '{"encodeGV":"v1","encoder":"json","name":"versioning"}' });
    expect(spans.find(({ name }) => name === "Create")!.attributes).toMatchObject({ protocol: "HTTP/1.1" });
    const written = ["About to start writing response", "Write call succeeded"], done = ["About to write a response", "Writing http response done"];
    expect(told()).toEqual([["SerializeObject", "Create", written], ["Create", "POST /api/v1/namespaces/{:namespace}/configmaps", done], ["POST /api/v1/namespaces/{:namespace}/configmaps", undefined, []]]);
    await over(await fetch(`${maps}/none`));
    expect(told()).toEqual([["SerializeObject", "Get", written], ["Get", "GET /api/v1/namespaces/{:namespace}/configmaps/{:name}", ["About to Get from storage"]], ["GET /api/v1/namespaces/{:namespace}/configmaps/{:name}", undefined, []]]);
    await over(await fetch(maps));
    expect(told()).toEqual([["SerializeObject", "List", written], ["List", "GET /api/v1/namespaces/{:namespace}/configmaps", []], ["GET /api/v1/namespaces/{:namespace}/configmaps", undefined, []]]);
    await over(await fetch(`${maps}?watch=1&timeoutSeconds=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan`));
    expect(told()).toEqual([["WatchServer.HandleHTTP", "WatchList", ["About to start writing response", "Writing initial events done"]], ["WatchList", "GET /api/v1/namespaces/{:namespace}/configmaps", []], ["GET /api/v1/namespaces/{:namespace}/configmaps", undefined, []]]);
  } finally {
    stop.abort();
    await running;
  }
});
