import { Duplex, Readable } from "node:stream";
import { expect, test } from "vitest";
import type { ApiObject } from "../api/meta/object-meta.ts";
import { systemClock } from "../lifecycle/clock.ts";
import { WireReader } from "../protobuf/wire.ts";
import { Cached } from "../registry/generic/cached.ts";
import type { ServedResource } from "../registry/registry.ts";
import { type Answer, raw, type WatchItem } from "./answer.ts";
import type { ServerRequest } from "./request.ts";
import { canStream, streamOverWebSocket } from "./websocket-answer.ts";

const served = { row: { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps" }, apiVersion: "v1", custom: undefined, fromStorage: (object: unknown) => object } as unknown as ServedResource;
const KEY = "dGhlIHNhbXBsZSBub25jZQ==";
const TEXT = 0x81, BINARY = 0x82, CLOSE = 0x88;

type Streamed = Parameters<typeof streamOverWebSocket>[0];

function watchOf(count: number): Streamed {
  const items = Array.from({ length: count }, (_, i): WatchItem => ({ type: "ADDED", entry: new Cached(`${i}`, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: `c-${i}` }, data: { note: "a\nb" } } as unknown as ApiObject, i) }));
  async function* batches(): AsyncIterable<readonly WatchItem[]> { yield items; }
  return { type: "watch", served, batches: batches() };
}

function logOf(...chunks: readonly string[]): Streamed { return { type: "raw", status: 200, headers: {}, body: Readable.from(chunks.map((chunk) => Buffer.from(chunk))) }; }

function requestOf(headers: Readonly<Record<string, string>>, query = ""): ServerRequest {
  return { header: (name: string) => headers[name], query: new URLSearchParams(query), webSocketProtocols: headers["sec-websocket-protocol"]?.split(",").map((one) => one.trim()) ?? [] } as unknown as ServerRequest;
}

/** What is sent before the first frame, or instead of one, and the frames. */
async function sent(answer: Streamed, headers: Readonly<Record<string, string>>): Promise<{ readonly before: string; readonly frames: { readonly type: number; readonly data: Buffer }[] }> {
  const written: Buffer[] = [];
  const socket = new Duplex({ read: () => undefined, write: (chunk: Buffer, _, done) => { written.push(chunk); done(); } });
  await streamOverWebSocket(answer, { request: requestOf(headers), nowMs: () => 0, describe: undefined }, { socket, head: Buffer.alloc(0), clock: systemClock, signal: new AbortController().signal });
  const bytes = Buffer.concat(written), frames = [];
  const start = bytes.toString("latin1").startsWith("HTTP/1.1 101") ? bytes.indexOf("\r\n\r\n") + 4 : bytes.length;
  for (let at = start; at < bytes.length;) {
    const short = bytes[at + 1]!, [length, from] = short < 126 ? [short, at + 2] : [bytes.readUInt16BE(at + 2), at + 4];
    frames.push({ type: bytes[at]!, data: bytes.subarray(from, from + length) });
    at = from + length;
  }
  socket.destroy();
  return { before: bytes.toString("latin1", 0, start), frames };
}

async function framesOf(accept: string, count: number): Promise<{ readonly type: number; readonly data: Buffer }[]> {
  return (await sent(watchOf(count), { accept, "sec-websocket-key": KEY, "sec-websocket-version": "13" })).frames;
}

test("a watch in JSON is a text frame an event, with the end of its line", async () => {
  const frames = await framesOf("application/json", 2);
  expect(frames.map(({ type }) => type)).toEqual([TEXT, TEXT, CLOSE]);
  expect(frames.slice(0, 2).map(({ data }) => [(JSON.parse(data.toString()) as { object: ApiObject }).object.metadata.name, data.at(-1)])).toEqual([["c-0", 10], ["c-1", 10]]);
});

test("a watch in protobuf is a binary frame an event, which has its length itself", async () => {
  const frames = await framesOf("application/vnd.kubernetes.protobuf;stream=watch", 2);
  expect(frames.map(({ type }) => type)).toEqual([BINARY, BINARY, CLOSE]);
  for (const [i, { data }] of frames.slice(0, 2).entries()) {
    const reader = new WireReader(data);
    reader.varint();
    expect([Buffer.from(reader.bytes()).toString(), data.includes(`c-${i}`)]).toEqual(["ADDED", true]);
  }
});

const SHAKES = { "sec-websocket-key": KEY, "sec-websocket-version": "13" };

test.each<[protocol: string | undefined, frames: (readonly [type: number, data: string])[]]>([
  [undefined, [[BINARY, ""], [BINARY, "one"], [BINARY, "two"]]],
  ["base64.binary.k8s.io", [[TEXT, ""], [TEXT, "b25l"], [TEXT, "dHdv"]]],
  ["base64url.bearer.authorization.k8s.io.dG9rZW4, binary.k8s.io", [[BINARY, ""], [BINARY, "one"], [BINARY, "two"]]],
])("a log by the protocol %s begins with an empty frame", async (protocol, frames) => {
  const { before, frames: found } = await sent(logOf("one", "two"), { ...SHAKES, ...(protocol !== undefined && { "sec-websocket-protocol": protocol }) });
  expect(/^Sec-WebSocket-Protocol: (.*)\r$/m.exec(before)?.[1]).toBe(protocol?.split(", ").at(-1));
  expect(found.slice(0, -1).map(({ type, data }) => [type, data.toString()])).toEqual(frames);
});

test.each<[what: string, answer: () => Streamed, headers: Readonly<Record<string, string>>, told: string]>([
  ["a watch without a key", () => watchOf(1), { "sec-websocket-version": "13" }, "HTTP/1.1 400 Bad Request\r\n\r\nmismatch challenge/response"],
  ["a watch of another version", () => watchOf(1), { ...SHAKES, "sec-websocket-version": "8" }, "HTTP/1.1 400 Bad Request\r\nSec-WebSocket-Version: 13\r\n\r\nmissing or bad WebSocket Version"],
  ["a log without a version", () => logOf("one"), { "sec-websocket-key": KEY }, "HTTP/1.1 400 Bad Request\r\nSec-WebSocket-Version: 13\r\n\r\nmissing or bad WebSocket Version"],
  ["a log by a protocol that there is not", () => logOf("one"), { ...SHAKES, "sec-websocket-protocol": "v5.channel.k8s.io" }, "HTTP/1.1 403 Forbidden\r\n\r\n"],
])("%s is refused before the first frame", async (_, answer, headers, told) => {
  const given = answer();
  expect(await sent(given, headers)).toEqual({ before: told, frames: [] });
  if (given.type === "raw") expect(given.body.destroyed).toBe(true);
});

test("a watch takes the one protocol it is asked by, whichever it is", async () => {
  expect((await sent(watchOf(1), { ...SHAKES, "sec-websocket-protocol": "mine" })).before).toContain("\r\nSec-WebSocket-Protocol: mine\r\n");
});

test.each<[what: string, answer: () => Answer, headers: Readonly<Record<string, string>>, query: string, is: boolean]>([
  ["a watch", () => watchOf(1), {}, "", true],
  ["a log", () => logOf("one"), {}, "", true],
  ["a watch in a form that there is not", () => watchOf(1), { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" }, "includeObject=x", false],
  ["a page", () => raw("ok"), {}, "", false],
  ["a page that is written slowly", () => raw({ pieces: ["ok"] }), {}, "", false],
  ["what another server has answered", () => ({ ...logOf("one") as ReturnType<typeof raw>, passedOn: { headers: [], length: undefined } }), {}, "", false],
  ["a watch by another protocol", () => watchOf(1), { upgrade: "SPDY/3.1" }, "", false],
])("%s is streamed over a WebSocket: %#", (_, answer, headers, query, is) => {
  expect(canStream(answer(), { request: requestOf({ upgrade: "WebSocket", ...headers }, query), nowMs: () => 0, describe: undefined })).toBe(is);
});
