/**
 * Many clients at once, over one HTTP/2 connection and over two: each gets its own form of what it asked for, whole and in order. (A controller that is
 * handed an object without its spec acts on what it takes for an empty one.)
 */
import { rmSync } from "node:fs";
import * as http2 from "node:http2";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type ApiServer, apiServer } from "../../test/api-server.ts";
import { servingMaterial, testPki } from "../../test/certificates.ts";
import { protobufCodec } from "../api/codec/protobuf.ts";
import { systemClock } from "../lifecycle/clock.ts";
import { httpsServer } from "../net/http-server.ts";
import { silentLog } from "../observe/log.ts";
import { httpFront } from "./http.ts";

const JSON_TYPE = "application/json", PROTOBUF = "application/vnd.kubernetes.protobuf";
const as = (kind: string, type = JSON_TYPE): string => `${type};as=${kind};v=v1;g=meta.k8s.io`;
const CONFIG_MAPS = "/api/v1/namespaces/garden/configmaps", SHEDS = "/apis/garden.example.com/v1/namespaces/garden/sheds";

let pki: Awaited<ReturnType<typeof testPki>>;
let api: ApiServer;
const stopping = new AbortController();
let ended: Promise<void>;
const sessions: http2.ClientHttp2Session[] = [];

beforeAll(async () => {
  pki = await testPki();
  api = await apiServer();
  const asAdmin: ApiServer["handler"] = (request) => api.handler({ ...request, user: { name: "admin", groups: ["system:masters"] } });
  const front = httpFront({ handler: asAdmin, clock: systemClock, log: silentLog, stopping: () => stopping.signal, columnTexts: () => Promise.resolve(undefined) });
  const server = httpsServer({ host: "127.0.0.1", port: 0, portFlag: "", tls: () => servingMaterial(pki), handler: front.request, upgrade: front.upgrade, log: silentLog, clock: systemClock, limits: { drainMs: 0 } });
  await new Promise<void>((ready) => { ended = server.run(stopping.signal, ready); });
  for (let i = 0; i < 2; i++) sessions.push(http2.connect(`https://127.0.0.1:${server.address()!.port}`, { ca: pki.authority("server-ca").bundlePem, servername: "localhost" }));
  const crd = {
    metadata: { name: "sheds.garden.example.com" },
    spec: { group: "garden.example.com", scope: "Namespaced", names: { plural: "sheds", kind: "Shed" }, versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object", properties: { spec: { type: "object", "x-kubernetes-preserve-unknown-fields": true } } } } }] },
  };
  expect((await api.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body: crd })).code).toBe(201);
  await vi.waitFor(async () => expect((await api.ask("GET", SHEDS)).code).toBe(200));
});
afterAll(async () => {
  for (const session of sessions) session.destroy();
  stopping.abort();
  await ended;
  await api[Symbol.asyncDispose]();
  rmSync(pki.dir, { recursive: true, force: true });
});

/** What an event must be, whatever its form. */
interface Event { readonly type: string; readonly name: string; readonly version: string; readonly form: string; readonly note: string | undefined }

interface Shown { kind: string; apiVersion: string; metadata: { name: string; resourceVersion: string }; spec?: { note?: string }; data?: { note?: string }; rows?: { cells: unknown[]; object: Shown }[] }

/** `note` is what only the whole object has. */
function eventOf(type: string, shown: Shown): Event {
  const { name, resourceVersion: version } = shown.rows ? shown.rows[0]!.object.metadata : shown.metadata;
  return { type, name, version, form: shown.kind, note: (shown.spec ?? shown.data)?.note };
}

function jsonEvents(bytes: Buffer): { readonly events: Event[]; readonly rest: Buffer } {
  const end = bytes.lastIndexOf(10) + 1;
  const lines = bytes.toString("utf8", 0, end).split("\n").filter((line) => line !== "");
  return { events: lines.map((line) => { const { type, object } = JSON.parse(line) as { type: string; object: Shown }; return eventOf(type, object); }), rest: bytes.subarray(end) };
}

/** Four bytes of length, then { 1: type, 2: { 1: object } }. */
function protobufEvents(bytes: Buffer): { readonly events: Event[]; readonly rest: Buffer } {
  const events: Event[] = [];
  let at = 0;
  while (bytes.length - at >= 4 && bytes.length - at - 4 >= bytes.readUInt32BE(at)) {
    const [type, object] = fieldsIn(bytes.subarray(at + 4, at + 4 + bytes.readUInt32BE(at)));
    events.push(eventOf(type!.toString(), protobufCodec.decode(fieldsIn(object!)[0]!) as unknown as Shown));
    at += 4 + bytes.readUInt32BE(at);
  }
  return { events, rest: bytes.subarray(at) };
}

function fieldsIn(message: Buffer): Buffer[] {
  const fields: Buffer[] = [];
  for (let at = 1; at < message.length; at++) {
    let length = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = message[at++]!;
      length += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) break;
    }
    fields.push(message.subarray(at, at + length));
    at += length;
  }
  return fields;
}

interface Watcher { readonly accept: string; readonly form: string; readonly whole: boolean; readonly events: Event[]; stop(): void }

async function watcher(session: http2.ClientHttp2Session, path: string, { accept, form, whole }: Pick<Watcher, "accept" | "form" | "whole">): Promise<Watcher> {
  const stream = session.request({ ":path": `${path}?watch=1&resourceVersion=0`, accept });
  const events: Event[] = [];
  let rest = Buffer.alloc(0);
  stream.on("error", () => undefined);
  const headers = await new Promise<http2.IncomingHttpHeaders>((resolve) => void stream.once("response", resolve));
  expect(headers["content-type"]).toContain(accept.split(";")[0]);
  stream.on("data", (chunk: Buffer) => {
    const read = (accept.startsWith(PROTOBUF) ? protobufEvents : jsonEvents)(Buffer.concat([rest, chunk]));
    events.push(...read.events);
    rest = Buffer.from(read.rest);
  });
  return { accept, form, whole, events, stop: () => stream.close() };
}

const FORMS = [
  { accept: JSON_TYPE, whole: true }, { accept: as("PartialObjectMetadata"), form: "PartialObjectMetadata", whole: false }, { accept: as("Table"), form: "Table", whole: false },
];
const PROTOBUF_FORMS = [{ accept: PROTOBUF, whole: true }, { accept: as("PartialObjectMetadata", PROTOBUF), form: "PartialObjectMetadata", whole: false }];

test.each([
  { path: CONFIG_MAPS, kind: "ConfigMap", body: (note: string) => ({ data: { note } }), forms: [...FORMS, ...PROTOBUF_FORMS] },
  { path: SHEDS, kind: "Shed", body: (note: string) => ({ apiVersion: "garden.example.com/v1", kind: "Shed", spec: { note } }), forms: FORMS },
])("$kind: watchers of one resource in several forms each get their own of every event", async ({ path, kind, body, forms }) => {
  const watchers = await Promise.all([0, 1, 0].flatMap((session) => forms.map((form) => watcher(sessions[session]!, path, { form: kind, ...form }))));
  const expected: Omit<Event, "form">[] = [];
  const tell = (type: string, { code, body: { metadata } }: { code: number; body: Shown }, note: string): void => {
    expect(code).toBeLessThan(300);
    expected.push({ type, name: metadata.name, version: metadata.resourceVersion, note });
  };
  const names = Array.from({ length: 12 }, (_, i) => `one-${i}`);
  for (const made of await Promise.all(names.map((name) => api.ask("POST", path, { body: { metadata: { name }, ...body(`${name} made`) } })))) tell("ADDED", made, `${made.body.metadata.name as string} made`);
  for (let round = 0; round < 3; round++)
    for (const changed of await Promise.all(names.map((name) => api.ask("PATCH", `${path}/${name}`, { body: body(`${name} ${round}`), headers: { "content-type": "application/merge-patch+json" } })))) tell("MODIFIED", changed, `${changed.body.metadata.name as string} ${round}`);
  expected.sort((a, b) => Number(a.version) - Number(b.version));
  for (const { accept, form, whole, events } of watchers) {
    await expect.poll(() => events.length, { message: accept }).toBe(expected.length);
    expect(events, accept).toEqual(expected.map((event) => ({ ...event, form, note: whole ? event.note : undefined })));
  }
  for (const name of names) expect((await api.ask("DELETE", `${path}/${name}`)).code).toBe(200);
  for (const { accept, form, events } of watchers) {
    await expect.poll(() => events.length, { message: accept }).toBe(expected.length + names.length);
    expect(events.slice(expected.length).map(({ type, name, form: sent }) => `${type} ${name} ${sent}`), accept).toEqual(names.map((name) => `DELETED ${name} ${form}`));
  }
  for (const { stop } of watchers) stop();
});

test("a list of many blocks arrives whole in every form, compressed too, from clients that read slowly as well", async () => {
  const note = "ein längerer Text, den jede hat ".repeat(60);
  await Promise.all(Array.from({ length: 400 }, (_, i) => api.ask("POST", CONFIG_MAPS, { body: { metadata: { name: `many-${i}`, annotations: { note } }, data: { note, i: String(i) } } })));
  const list = async (accept: string, encoding?: string, slowly = false): Promise<Buffer> => {
    const stream = sessions[0]!.request({ ":path": CONFIG_MAPS, accept, ...(encoding && { "accept-encoding": encoding }) });
    const headers = await new Promise<http2.IncomingHttpHeaders>((resolve) => void stream.once("response", resolve));
    expect(headers["content-encoding"]).toBe(encoding);
    const chunks: Buffer[] = [];
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      if (slowly && chunks.length < 20) await systemClock.sleep(20, new AbortController().signal);
      chunks.push(chunk);
    }
    return encoding ? gunzipSync(Buffer.concat(chunks)) : Buffer.concat(chunks);
  };
  const names = Array.from({ length: 400 }, (_, i) => `many-${i}`).sort();
  const plain = await list(JSON_TYPE);
  const { items } = JSON.parse(plain.toString()) as { items: Shown[] };
  expect(items.map(({ metadata }) => metadata.name)).toEqual(names);
  expect(items.every(({ data }) => data?.note === note)).toBe(true);
  const others = await Promise.all([list(JSON_TYPE, undefined, true), list(JSON_TYPE, "gzip"), list(JSON_TYPE, "gzip", true), list(JSON_TYPE)]);
  for (const other of others) expect(other.equals(plain)).toBe(true);
  const table = JSON.parse((await list(as("Table"), undefined, true)).toString()) as Shown;
  expect(table.rows!.map(({ cells, object }) => [cells[0], object.kind, object.metadata.name])).toEqual(names.map((name) => [name, "PartialObjectMetadata", name]));
  const protobuf = protobufCodec.decode(await list(PROTOBUF, "gzip")) as unknown as { items: Shown[] };
  expect(protobuf.items.map(({ metadata, data }) => [metadata.name, data?.note])).toEqual(names.map((name) => [name, note]));
});

test.each([
  ["/api/v1/pods", "", "PartialObjectMetadata", ["", "0/0", "", "0", "<unknown>", "<none>", "<none>", "<none>", "<none>"]], ["/api/v1/pods", "None", "PartialObjectMetadata", ["", "0/0", "", "0", "<unknown>", "<none>", "<none>", "<none>", "<none>"]],
  ["/api/v1/secrets", "Object", "Secret", ["", "", 0, "<unknown>"]], [SHEDS, "", "PartialObjectMetadata", ["", null]],
])("%s, with %s: a bookmark of a Table is a row of what there is nothing in, with columns if it comes first", async (path, includeObject, kind, cells) => {
  const query = { sendInitialEvents: "true", allowWatchBookmarks: "true", resourceVersionMatch: "NotOlderThan", includeObject, fieldSelector: "metadata.name=nobody" };
  const [event] = await api.events(path, 1, { query, headers: { accept: as("Table") } });
  const { resourceVersion } = event.object.metadata, metadata = { resourceVersion, annotations: { "k8s.io/initial-events-end": "true" } };
  expect([event.type, event.object.kind, event.object.columnDefinitions?.length, event.object.rows]).toEqual(["BOOKMARK", "Table", cells.length, [{ cells, object: kind === "Secret" ? { kind, apiVersion: "v1", metadata } : { kind, apiVersion: "meta.k8s.io/v1", metadata: expect.objectContaining(metadata) } }]]);
});
