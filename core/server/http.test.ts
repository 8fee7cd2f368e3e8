/** The front over a real connection. */
import { rmSync } from "node:fs";
import { type IncomingMessage, type OutgoingHttpHeaders, request as ask } from "node:http";
import * as http2 from "node:http2";
import { request as askSecurely } from "node:https";
import { Readable } from "node:stream";
import { afterEach, expect, test } from "vitest";
import { servingMaterial, testPki } from "../../test/certificates.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import { statusOf } from "../api/meta/status-error.ts";
import { type Clock, systemClock, timestamp } from "../lifecycle/clock.ts";
import { httpServer, httpsServer } from "../net/http-server.ts";
import { silentLog } from "../observe/log.ts";
import { Cached } from "../registry/generic/cached.ts";
import type { ServedResource } from "../registry/registry.ts";
import type { Answer, WatchItem } from "./answer.ts";
import type { ColumnTexts } from "./column-texts.ts";
import { httpFront } from "./http.ts";
import type { ServerRequest } from "./request.ts";

const ending: (() => Promise<void>)[] = [];
afterEach(async () => { for (const end of ending.splice(0)) await end(); });

async function serve(answer: Answer, { columnTexts = () => Promise.resolve(undefined), headers = {}, query = "", header, clock = systemClock, quit }: { readonly clock?: Clock; readonly quit?: AbortSignal; readonly header?: readonly [string, string]; readonly columnTexts?: ColumnTexts; readonly headers?: OutgoingHttpHeaders; readonly query?: string } = {}): Promise<IncomingMessage> {
  const stopping = new AbortController();
  const front = httpFront({ handler: (asked) => { if (header) asked.setHeader?.(...header); return Promise.resolve(answer); }, clock, log: silentLog, stopping: () => stopping.signal, columnTexts });
  const server = httpServer({ host: "127.0.0.1", port: 0, portFlag: "", handler: front.request, upgrade: front.upgrade, log: silentLog, clock: systemClock, limits: { drainMs: 0 } });
  await new Promise<void>((ready) => { const ended = server.run(stopping.signal, ready); ending.push(() => { stopping.abort(); return ended; }); });
  return await new Promise((resolve, reject) => { ask({ port: server.address()!.port, path: `/api/v1/configmaps?watch=1${query}`, headers, ...(quit && { signal: quit }) }, resolve).on("error", reject).end(); });
}

const served = { row: { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps" }, apiVersion: "v1", custom: undefined, fromStorage: (object: unknown) => object } as unknown as ServedResource;

test("a watcher that reads slowly gets all there is, and what is not read yet is not encoded yet", async () => {
  const each = "x".repeat(500_000), count = 60;
  let sent = 0;
  async function* batches(): AsyncIterable<readonly WatchItem[]> {
    for (; sent < count; sent++) yield [{ type: "ADDED", entry: new Cached(`${sent}`, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: `c-${sent}`, annotations: { each } } } as unknown as ApiObject, sent) }];
  }
  const response = await serve({ type: "watch", served, batches: batches() });
  await systemClock.sleep(500, new AbortController().signal);
  expect(sent).toBeLessThan(count / 2);
  let text = "";
  for await (const chunk of response.setEncoding("utf8") as AsyncIterable<string>) text += chunk;
  const names = text.trim().split("\n").map((line) => (JSON.parse(line) as { object: ApiObject }).object.metadata.name);
  expect(names).toEqual(Array.from({ length: count }, (_, i) => `c-${i}`));
});

test("while an answer that is long work is written others have their turn, and it has its length all the same", async () => {
  let upMs = 0, others = 0, isOver = false;
  const worked: number[] = []; // by turns that others had before
  function* pieces(): Iterable<string> {
    for (let i = 0; i < 20; i++) {
      upMs += 50;
      worked[others] = (worked[others] ?? 0) + 1;
      yield `${i}é\n`;
    }
    isOver = true;
  }
  const turn = (): void => { others++; if (!isOver) setImmediate(turn); };
  setImmediate(turn);
  const response = await serve({ type: "raw", status: 200, headers: { "content-type": "text/plain" }, body: { pieces: pieces() } }, { clock: { ...systemClock, uptimeMs: () => upMs } });
  let text = "";
  for await (const chunk of response.setEncoding("utf8") as AsyncIterable<string>) text += chunk;
  expect([text, response.headers["content-length"]]).toEqual([Array.from({ length: 20 }, (_, i) => `${i}é\n`).join(""), String(Buffer.byteLength(text))]);
  expect(worked.filter(Boolean)).toEqual(Array.from({ length: 20 }, () => 1));
});

test("what is long work to write is not written to its end for somebody who has gone", async () => {
  let upMs = 0;
  const quit = new AbortController();
  const { promise: left, resolve } = Promise.withResolvers<void>();
  function* pieces(): Iterable<string> {
    try {
      for (;;) {
        upMs += 50;
        yield "more\n";
        quit.abort();
      }
    } finally {
      resolve();
    }
  }
  const asking = serve({ type: "raw", status: 200, headers: { "content-type": "text/plain" }, body: { pieces: pieces() } }, { clock: { ...systemClock, uptimeMs: () => upMs }, quit: quit.signal });
  await expect(asking).rejects.toThrow();
  await left;
});

test("a status that cannot be sent is answered all the same, with an error", async () => {
  const response = await serve({ type: "raw", status: 1000, headers: {}, body: "x" });
  let text = "";
  for await (const chunk of response.setEncoding("utf8") as AsyncIterable<string>) text += chunk;
  expect([response.statusCode, (JSON.parse(text) as { kind: string }).kind]).toEqual([500, "Status"]);
});

test.each([204, 304])("%i has no body, and tells no length and no type of one", async (status) => {
  const { statusCode, headers } = await serve({ type: "raw", status, headers: { etag: '"1"' }, body: "" });
  expect([statusCode, headers.etag, headers["content-length"], headers["transfer-encoding"], headers["content-type"]]).toEqual([status, '"1"', undefined, undefined, undefined]);
});

test("an upgrade that is refused is answered as any request is", async () => {
  const body = { kind: "Status", apiVersion: "v1", status: "Failure", code: 403, message: "no" };
  const response = await serve({ type: "object", status: 403, object: body, warnings: ["mind"] } as Answer, { headers: { connection: "Upgrade", upgrade: "websocket" }, header: ["Audit-Id", "7"] });
  expect([response.statusCode, response.statusMessage, response.headers["audit-id"], response.headers["cache-control"], response.headers["warning"], response.headers.date !== undefined]).toEqual([403, "Forbidden", "7", "no-cache, private", '299 - "mind"', true]);
});

test("a watch over HTTP/1.1 arrives whole, however its events are batched", async () => {
  const events = Array.from({ length: 40 }, (_, i): WatchItem => ({ type: "ADDED", entry: new Cached(`${i}`, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: `c-${i}` } } as unknown as ApiObject, i) }));
  async function* batches(size: number): AsyncIterable<readonly WatchItem[]> {
    for (let i = 0; i < events.length; i += size) yield events.slice(i, i + size);
  }
  const iterable = (size: number): Answer => ({ type: "watch", served, batches: { [Symbol.asyncIterator]: () => batches(size)[Symbol.asyncIterator]() } });
  for (const size of [1, 7, 40]) {
    let text = "";
    for await (const chunk of (await serve(iterable(size))).setEncoding("utf8") as AsyncIterable<string>) text += chunk;
    expect(text.trim().split("\n").map((line) => (JSON.parse(line) as { object: ApiObject }).object.metadata.name)).toEqual(events.map(({ entry }) => entry.object.metadata.name));
  }
});

test.each<[what: string, columnTexts: ColumnTexts, described: string]>([
  ["described by the documentation of the fields they show", () => Promise.resolve((field) => `what ${field} is`), "what apimachinery.pkg.apis.meta.v1.ObjectMeta.name is"],
  ["not described where that cannot be read: a Table is told all the same", () => Promise.reject(new Error("no file")), ""],
])("the columns of a Table are %s", async (_, columnTexts, described) => {
  const answer: Answer = { type: "object", status: 200, object: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c" } }, printedAs: { group: "", kind: "ConfigMap" } };
  const response = await serve(answer, { columnTexts, headers: { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" } });
  let text = "";
  for await (const chunk of response.setEncoding("utf8") as AsyncIterable<string>) text += chunk;
  const table = JSON.parse(text) as { readonly kind: string; readonly columnDefinitions: readonly { readonly description: string }[] };
  expect([response.statusCode, table.kind, table.columnDefinitions[0]!.description]).toEqual([200, "Table", described]);
});

test("what is made while a watch of Tables lasts has an age by then", async () => {
  let nowMs = Date.UTC(2026, 0, 1);
  async function* batches(): AsyncIterable<readonly WatchItem[]> {
    const creationTimestamp = timestamp(nowMs += 3_600_000);
    nowMs += 5_000;
    yield [{ type: "ADDED", entry: new Cached("late", { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "late", creationTimestamp } } as unknown as ApiObject, 1) }];
  }
  const response = await serve({ type: "watch", served, batches: batches() }, { clock: { ...systemClock, nowMs: () => nowMs }, headers: { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" } });
  let text = "";
  for await (const chunk of response.setEncoding("utf8") as AsyncIterable<string>) text += chunk;
  expect(JSON.parse(text)).toMatchObject({ object: { rows: [{ cells: ["late", 0, "5s"] }] } });
});

test("a watch that asks a Table for objects there are none of is refused before it begins", async () => {
  async function* none(): AsyncIterable<readonly WatchItem[]> { /* nothing happens */ }
  const response = await serve({ type: "watch", served, batches: none() }, { headers: { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" }, query: "&includeObject=x" });
  let text = "";
  for await (const chunk of response.setEncoding("utf8") as AsyncIterable<string>) text += chunk;
  expect([response.statusCode, (JSON.parse(text) as { message: string }).message]).toEqual([400, `Unable to convert to Table as requested: includeObject: Invalid value: "x": must be 'Metadata', 'Object', 'None', or empty`]);
});

test("a long body over HTTP/1.1 arrives whole at a client that reads slowly, though one block of it is in memory at a time", async () => {
  const body = Buffer.alloc(6_000_000);
  for (let i = 0; i < body.length; i += 4) body.writeUInt32LE(i, i);
  const response = await serve({ type: "raw", status: 200, headers: {}, body });
  const chunks: Buffer[] = [];
  for await (const chunk of response as AsyncIterable<Buffer>) {
    if (chunks.length < 10) await systemClock.sleep(20, new AbortController().signal);
    chunks.push(chunk);
  }
  expect(Buffer.concat(chunks).equals(body)).toBe(true);
});

test.each<[accept: string, bytes: number, encoding: string | undefined]>([
  ["gzip", 131_073, "gzip"], ["gzip", 131_072, undefined], ["deflate, , gzip,", 131_073, "gzip"], ["gzip;q=0", 131_073, undefined], ["x-gzip, identity", 131_073, undefined],
])("to who takes %j, %d bytes go out in %s; of what else the answer depends is still told", async (accept, bytes, encoding) => {
  const { headers } = await serve({ type: "raw", status: 200, headers: { vary: "Accept" }, body: Buffer.alloc(bytes, "a") }, { headers: { "accept-encoding": accept } });
  expect([headers["content-encoding"], headers.vary]).toEqual([encoding, encoding ? "Accept, Accept-Encoding" : "Accept"]);
});

test("it is told that a client goes while a list is sent to it, and not that one goes which has it all", async () => {
  const entriesOf = (count: number): Cached[] => Array.from({ length: count }, (_, i) => new Cached(`${i}`, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: `c-${i}`, annotations: { each: "x".repeat(500_000) } } } as unknown as ApiObject, i));
  let brokenOff = 0;
  for (const [count, goes] of [[60, true], [1, false]] as const) {
    const response = await serve({ type: "list", served, entries: entriesOf(count), metadata: { resourceVersion: "1" }, brokenOff: () => brokenOff++ } as Answer, { query: "&limit=500" });
    if (goes) response.destroy();
    else for await (const _ of response);
    await systemClock.sleep(100, new AbortController().signal);
    expect(brokenOff).toBe(1);
  }
});

test("what a watch is told of does not wait for all the long answers that are under way", async () => {
  let upMs = 0, pieces = 0, isOver = false;
  function* endless(): Iterable<string> { for (; !isOver; pieces++) { upMs += 50; yield "more\n"; } }
  const before: number[] = [];
  async function* batches(): AsyncIterable<readonly WatchItem[]> {
    for (let i = 0; i < 5; i++) {
      before.push(pieces);
      yield [{ type: "ADDED", entry: new Cached(`${i}`, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: `c-${i}` } } as unknown as ApiObject, i) }];
    }
    before.push(pieces);
    isOver = true;
  }
  const stopping = new AbortController();
  const answers: Answer[] = [...Array.from({ length: 20 }, (): Answer => ({ type: "raw", status: 200, headers: {}, body: { pieces: endless() } })), { type: "watch", served, batches: batches() }];
  const front = httpFront({ handler: () => Promise.resolve(answers.shift()!), clock: { ...systemClock, uptimeMs: () => upMs }, log: silentLog, stopping: () => stopping.signal, columnTexts: () => Promise.resolve(undefined) });
  const server = httpServer({ host: "127.0.0.1", port: 0, portFlag: "", handler: front.request, upgrade: front.upgrade, log: silentLog, clock: systemClock, limits: { drainMs: 0 } });
  await new Promise<void>((ready) => { const ended = server.run(stopping.signal, ready); ending.push(() => { stopping.abort(); return ended; }); });
  const asked = (): Promise<void> => new Promise((resolve, reject) => { ask({ port: server.address()!.port, agent: false }, (response) => response.resume().on("end", resolve)).on("error", reject).end(); });
  const long = Array.from({ length: 20 }, asked);
  while (answers.length > 1) await systemClock.sleep(1, stopping.signal);
  await Promise.all([asked(), ...long]);
  expect(before.length).toBe(6);
  expect(before[5]! - before[0]!).toBeLessThan(40);
});

test.each(["application/json", "application/json;as=Table;g=meta.k8s.io;v=v1", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"])("a list in %s is not made to its end for somebody who has gone", async (accept) => {
  let upMs = 0, made = 0;
  const quit = new AbortController(), gone = Promise.withResolvers<void>();
  const entries = Array.from({ length: 10_000 }, (_, i) => {
    const metadata = { name: `c-${i}` };
    const object = { apiVersion: "v1", kind: "ConfigMap", get metadata() { if (++made === 100) quit.abort(); upMs += 0.01; return metadata; } } as unknown as ApiObject;
    return new Cached(`${i}`, object, i);
  });
  const clock: Clock = { ...systemClock, uptimeMs: () => (upMs += 5) };
  await expect(serve({ type: "list", served, entries, metadata: { resourceVersion: "1" }, brokenOff: () => gone.resolve() } as Answer, { headers: { accept }, quit: quit.signal, clock })).rejects.toThrow("abort");
  await gone.promise;
  expect(made).toBeLessThan(5_000);
});

test("a body is read whole, one that is too large is refused, and the client that goes away is not waited for", async () => {
  const stopping = new AbortController();
  const told: string[] = [];
  const front = httpFront({
    async handler(request) {
      const body = await request.body().catch((error: unknown) => { told.push(statusOf(error).message ?? ""); throw error; });
      return { type: "raw", status: 200, headers: { "content-type": "text/plain" }, body: String((body as { bytes: Uint8Array }).bytes.length) };
    },
    clock: systemClock, log: silentLog, stopping: () => stopping.signal, columnTexts: () => Promise.resolve(undefined),
  });
  const server = httpServer({ host: "127.0.0.1", port: 0, portFlag: "", handler: front.request, upgrade: front.upgrade, log: silentLog, clock: systemClock, limits: { drainMs: 0 } });
  await new Promise<void>((ready) => { const ended = server.run(stopping.signal, ready); ending.push(() => { stopping.abort(); return ended; }); });
  const sent = (headers: OutgoingHttpHeaders) => ask({ port: server.address()!.port, path: "/", method: "POST", headers });
  const length = async (bytes: number): Promise<string> => {
    const request = sent({ "transfer-encoding": "chunked" });
    const answer = new Promise<IncomingMessage>((resolve, reject) => { request.on("response", resolve).on("error", reject); });
    request.end(Buffer.alloc(bytes));
    let text = "";
    for await (const chunk of (await answer).setEncoding("utf8") as AsyncIterable<string>) text += chunk;
    return text;
  };
  expect(await length(0)).toBe("0");
  expect(await length(700_000)).toBe("700000");
  const gone = sent({ "content-length": "1000" });
  gone.on("error", () => undefined); // it was we who ended it
  gone.write("x");
  await systemClock.sleep(100, new AbortController().signal);
  gone.destroy();
  await expect.poll(() => told.length).toBe(1);
  const large = sent({ "content-length": String(4 * 1024 * 1024) });
  large.on("error", () => undefined); // the rest of it is not read
  large.write("x");
  await expect.poll(() => told.at(-1)).toBe("Request entity too large: limit is 3145728");
  large.destroy();
});

test("what waits for a request is told when its client goes; when the server stops, what was begun is brought to its end, and what has none ends", async () => {
  const stopping = new AbortController();
  const ended: string[] = [];
  const waits = Promise.withResolvers<void>();
  const front = httpFront({
    async handler({ path, signal }) {
      signal.addEventListener("abort", () => ended.push(`${path} ${(signal.reason as Error).message}`), { once: true });
      if (path === "/log") return { type: "raw", status: 200, headers: {}, body: new Readable({ read() {} }) };
      if (path === "/gone") await new Promise((resolve) => { signal.addEventListener("abort", resolve, { once: true }); });
      if (path === "/waits") await waits.promise;
      return { type: "raw", status: 200, headers: {}, body: path };
    },
    clock: systemClock, log: silentLog, stopping: () => stopping.signal, columnTexts: () => Promise.resolve(undefined),
  });
  const server = httpServer({ host: "127.0.0.1", port: 0, portFlag: "", handler: front.request, upgrade: front.upgrade, log: silentLog, clock: systemClock, limits: { drainMs: 5_000 } });
  let running = Promise.resolve();
  await new Promise<void>((ready) => { running = server.run(stopping.signal, ready); });
  const begin = (path: string, told: (response: IncomingMessage) => void = () => undefined) => ask({ port: server.address()!.port, path }, told).on("error", () => undefined).end();
  const gone = begin("/gone");
  let text = "";
  begin("/waits", (response) => response.setEncoding("utf8").on("data", (chunk: string) => { text += chunk; }));
  begin("/log", (response) => response.on("error", () => undefined).resume());
  await systemClock.sleep(100, new AbortController().signal);
  gone.destroy();
  await expect.poll(() => ended).toEqual(["/gone the request is over"]);
  stopping.abort();
  expect(ended.slice(1)).toEqual(["/log the server is stopping"]);
  await systemClock.sleep(100, new AbortController().signal);
  waits.resolve();
  await running;
  expect(text).toBe("/waits");
});

test("over HTTP/2, too, an answer has its head and its body, or none", async () => {
  const pki = await testPki();
  const stopping = new AbortController();
  const front = httpFront({
    async handler({ path, setHeader }) {
      setHeader?.("Audit-Id", path.slice(1));
      if (path === "/late") await systemClock.sleep(200, stopping.signal);
      return { type: "raw", status: path === "/nothing" ? 204 : path === "/refused" ? 403 : 200, headers: { "content-type": "text/plain" }, body: path === "/nothing" || path === "/empty" ? "" : path.repeat(2), warnings: ["old"] };
    },
    clock: systemClock, log: silentLog, stopping: () => stopping.signal, columnTexts: () => Promise.resolve(undefined),
  });
  const server = httpsServer({ host: "127.0.0.1", port: 0, portFlag: "", tls: () => servingMaterial(pki), handler: front.request, upgrade: front.upgrade, log: silentLog, clock: systemClock, limits: { drainMs: 0 } });
  await new Promise<void>((ready) => { const ended = server.run(stopping.signal, ready); ending.push(() => { stopping.abort(); return ended; }); });
  const client = http2.connect(`https://localhost:${server.address()!.port}`, { ca: pki.authority("server-ca").bundlePem });
  const answer = (path: string, method = "GET"): Promise<string> => new Promise((resolve, reject) => {
    const stream = client.request({ ":path": path, ":method": method }).setEncoding("utf8").on("error", reject);
    let head = "", body = "";
    stream.on("response", (headers) => { head = [":status", "audit-id", "content-type", "content-length", "cache-control", "warning", "date"].map((name) => (name === "date" ? typeof headers[name] : headers[name])).join(" "); });
    stream.on("data", (chunk: string) => { body += chunk; }).on("close", () => resolve(`${head} | ${body}`));
  });
  const gone = client.request({ ":path": "/late" });
  gone.on("error", () => undefined).close(http2.constants.NGHTTP2_CANCEL); // an answer that comes to a stream that is no more harms nobody
  const warned = 'no-cache, private 299 - "old" string';
  expect(await Promise.all(["/a", "/refused", "/late", "/empty", "/nothing"].map((path) => answer(path)))).toEqual([
    `200 a text/plain 4 ${warned} | /a/a`, `403 refused text/plain 16 ${warned} | /refused/refused`, `200 late text/plain 10 ${warned} | /late/late`, `200 empty text/plain 0 ${warned} | `, `204 nothing text/plain  ${warned} | `,
  ]);
  expect(await answer("/a", "HEAD")).toBe(`200 a text/plain 4 ${warned} | `);
  client.destroy();
  rmSync(pki.dir, { recursive: true, force: true });
});

test("a connection that is to take no more requests ends with those under way", async () => {
  const pki = await testPki();
  const stopping = new AbortController();
  const late = Promise.withResolvers<void>();
  const front = httpFront({
    async handler({ path, takeNoMore }) {
      if (path === "/stranger") takeNoMore?.();
      else await late.promise;
      return { type: "raw", status: 200, headers: { "content-type": "text/plain" }, body: path };
    },
    clock: systemClock, log: silentLog, stopping: () => stopping.signal, columnTexts: () => Promise.resolve(undefined),
  });
  const server = httpsServer({ host: "127.0.0.1", port: 0, portFlag: "", tls: () => servingMaterial(pki), handler: front.request, upgrade: front.upgrade, log: silentLog, clock: systemClock, limits: { drainMs: 0 } });
  await new Promise<void>((ready) => { const ended = server.run(stopping.signal, ready); ending.push(() => { stopping.abort(); return ended; }); });
  const client = http2.connect(`https://localhost:${server.address()!.port}`, { ca: pki.authority("server-ca").bundlePem });
  const goaway = new Promise((resolve) => client.on("goaway", resolve)), closed = new Promise((resolve) => client.on("close", resolve));
  const body = async (path: string): Promise<string> => await new Response(client.request({ ":path": path }) as never).text();
  const first = body("/friend");
  expect(await body("/stranger")).toBe("/stranger");
  await goaway;
  late.resolve();
  expect(await first).toBe("/friend");
  await closed;
  rmSync(pki.dir, { recursive: true, force: true });
});

test("what goes wrong is told to a person when it cannot be told as it was asked for", async () => {
  const status = statusOf(new Error("no"));
  const response = await serve({ type: "object", status: 406, object: status as never }, { headers: { accept: "text/plain" } });
  expect(await text(response)).toBe(JSON.stringify(status, undefined, 2));
});

test("so it is when the answer itself is another than was asked for", async () => {
  const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" } } as unknown as ApiObject;
  const told = async (one: ApiObject) => {
    const response = await serve({ type: "object", status: 200, object: one }, { headers: { accept: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1" } });
    return [response.statusCode, await text(response)];
  };
  const indented = (more: object) => JSON.stringify({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", ...more }, null, 2);
  expect(await told(object)).toEqual([406, indented({ message: "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)", reason: "NotAcceptable", code: 406 })]);
  expect(await told({ ...object, apiVersion: "a.b/v1", kind: "Thing" })).toEqual([500, indented({ message: "content is not a list", code: 500 })]);
});

test.each<[upgrade: string]>([["websocket"], ["SPDY/3.1"]])("who wants a connection to take over (%s) where there is none has the answer that everybody has, and the connection's end", async (upgrade) => {
  const headers = { connection: "Upgrade", upgrade, "sec-websocket-version": "13", "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==" };
  const list: Answer = { type: "list", served, entries: [], metadata: { resourceVersion: "7" } } as never;
  const listed = await serve(list, { headers });
  expect([listed.statusCode, listed.headers["content-type"], listed.headers.connection, await text(listed)]).toEqual([200, "application/json", "close", '{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}\n']);
  const refused = await serve({ type: "object", status: 400, object: statusOf(new Error("no")) as never, warnings: ["old"] }, { headers });
  expect([refused.statusCode, refused.statusMessage, refused.headers.warning]).toEqual([400, "Bad Request", '299 - "old"']);
  expect(await text(refused)).toMatch(/^{"kind":"Status",/);
});

test("a watch by who asks for SPDY is a watch like any", async () => {
  async function* batches(): AsyncIterable<readonly WatchItem[]> { yield [{ type: "ADDED", entry: new Cached("1", { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c" } } as unknown as ApiObject, 1) }]; }
  const response = await serve({ type: "watch", served, batches: batches() }, { headers: { connection: "Upgrade", upgrade: "SPDY/3.1" } });
  expect([response.statusCode, JSON.parse(await text(response))]).toMatchObject([200, { type: "ADDED", object: { metadata: { name: "c" } } }]);
});

async function text(response: IncomingMessage): Promise<string> {
  let whole = "";
  for await (const chunk of response.setEncoding("utf8") as AsyncIterable<string>) whole += chunk;
  return whole;
}

test.each([1, 2])("the body of a request whose client went away before it was read is not waited for, over HTTP/%i", async (version) => {
  const pki = await testPki();
  const stopping = new AbortController(), arrived = Promise.withResolvers<void>(), told = Promise.withResolvers<unknown>();
  const handler = async (asked: ServerRequest): Promise<Answer> => {
    arrived.resolve();
    await new Promise((resolve) => asked.signal.addEventListener("abort", resolve, { once: true }));
    told.resolve(await asked.body().catch((error: Error) => error.message));
    throw new Error("nobody is told");
  };
  const front = httpFront({ handler, clock: systemClock, log: silentLog, stopping: () => stopping.signal, columnTexts: () => Promise.resolve(undefined) });
  const server = httpsServer({ host: "127.0.0.1", port: 0, portFlag: "", tls: () => servingMaterial(pki), handler: front.request, upgrade: front.upgrade, log: silentLog, clock: systemClock, limits: { drainMs: 0 } });
  await new Promise<void>((ready) => { const ended = server.run(stopping.signal, ready); ending.push(() => { stopping.abort(); return ended; }); });
  const { port } = server.address()!, ca = pki.authority("server-ca").bundlePem;
  if (version === 1) {
    const asking = askSecurely({ host: "localhost", port, ca, path: "/x", method: "POST", headers: { "content-length": 2 } }).on("error", () => undefined);
    asking.end("{}");
    await arrived.promise;
    asking.destroy();
  } else {
    const client = http2.connect(`https://localhost:${port}`, { ca });
    const stream = client.request({ ":path": "/x", ":method": "POST" }).on("error", () => undefined);
    stream.end("{}");
    await arrived.promise;
    stream.close(http2.constants.NGHTTP2_CANCEL);
    await told.promise;
    client.destroy();
  }
  expect(await told.promise).toBe("the client went away before its request was complete");
  rmSync(pki.dir, { recursive: true, force: true });
});
