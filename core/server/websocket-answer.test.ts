import { Duplex } from "node:stream";
import { expect, test } from "vitest";
import type { ApiObject } from "../api/meta/object-meta.ts";
import { systemClock } from "../lifecycle/clock.ts";
import { WireReader } from "../protobuf/wire.ts";
import { Cached } from "../registry/generic/cached.ts";
import type { ServedResource } from "../registry/registry.ts";
import type { WatchItem } from "./answer.ts";
import type { ServerRequest } from "./request.ts";
import { streamOverWebSocket } from "./websocket-answer.ts";

const served = { row: { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps" }, apiVersion: "v1", custom: undefined, fromStorage: (object: unknown) => object } as unknown as ServedResource;
const TEXT = 0x81, BINARY = 0x82, CLOSE = 0x88;

/** The frames a watch of `count` objects, in one batch, is sent as. */
async function framesOf(accept: string, count: number): Promise<{ readonly type: number; readonly data: Buffer }[]> {
  const items = Array.from({ length: count }, (_, i): WatchItem => ({ type: "ADDED", entry: new Cached(`${i}`, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: `c-${i}` }, data: { note: "a\nb" } } as unknown as ApiObject, i) }));
  async function* batches(): AsyncIterable<readonly WatchItem[]> { yield items; }
  const written: Buffer[] = [];
  const socket = new Duplex({ read: () => undefined, write: (chunk: Buffer, _, done) => { written.push(chunk); done(); } });
  const headers: Record<string, string> = { accept, "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==" };
  const request = { header: (name: string) => headers[name], query: new URLSearchParams(), webSocketProtocols: [] } as unknown as ServerRequest;
  await streamOverWebSocket({ type: "watch", served, batches: batches() }, { request, nowMs: 0, describe: undefined }, { socket, head: Buffer.alloc(0), clock: systemClock, signal: new AbortController().signal });
  const bytes = Buffer.concat(written), frames = [];
  for (let at = bytes.indexOf("\r\n\r\n") + 4; at < bytes.length;) {
    const short = bytes[at + 1]!, [length, from] = short < 126 ? [short, at + 2] : [bytes.readUInt16BE(at + 2), at + 4];
    frames.push({ type: bytes[at]!, data: bytes.subarray(from, from + length) });
    at = from + length;
  }
  socket.destroy();
  return frames;
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
