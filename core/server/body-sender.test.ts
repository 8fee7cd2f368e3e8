import { rmSync } from "node:fs";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import * as http2 from "node:http2";
import { request as ask } from "node:https";
import type { Readable } from "node:stream";
import * as tls from "node:tls";
import { afterEach, expect, test } from "vitest";
import { servingMaterial, testPki } from "../../test/certificates.ts";
import { assemble } from "../api/codec/pieces.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import { systemClock } from "../lifecycle/clock.ts";
import { httpsServer } from "../net/http-server.ts";
import { silentLog } from "../observe/log.ts";
import { Cached } from "../registry/generic/cached.ts";
import type { ServedResource } from "../registry/registry.ts";
import type { Answer, WatchItem } from "./answer.ts";
import { BlockPool } from "./block-pool.ts";
import { BodySender } from "./body-sender.ts";
import { framedInPlace, CHUNK_ROOM } from "./chunk-frames.ts";
import { httpFront } from "./http.ts";
import type { EventBatch } from "./respond.ts";

const ending: (() => Promise<void>)[] = [];
afterEach(async () => { for (const end of ending.splice(0)) await end(); });

const served = { row: { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps" }, apiVersion: "v1", custom: undefined, fromStorage: (object: unknown) => object } as unknown as ServedResource;
const entryOf = (i: number): Cached => new Cached(`${i}`, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: `c-${i}`, annotations: { each: `ü${i}`.repeat(i % 900) } } } as unknown as ApiObject, i);

async function serve(answer: () => Answer): Promise<{ readonly port: number; readonly ca: string }> {
  const pki = await testPki(), stopping = new AbortController();
  const front = httpFront({ handler: () => Promise.resolve(answer()), clock: systemClock, log: silentLog, stopping: () => stopping.signal, columnTexts: () => Promise.resolve(undefined) });
  const server = httpsServer({ host: "127.0.0.1", port: 0, portFlag: "", tls: () => servingMaterial(pki), handler: front.request, upgrade: front.upgrade, log: silentLog, clock: systemClock, limits: { drainMs: 0 } });
  await new Promise<void>((ready) => {
    const ended = server.run(stopping.signal, ready);
    ending.push(async () => { stopping.abort(); await ended; rmSync(pki.dir, { recursive: true, force: true }); });
  });
  return { port: server.address()!.port, ca: pki.authority("server-ca").bundlePem };
}

async function slowly(body: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of body as AsyncIterable<Buffer>) {
    if (chunks.length < 5) await systemClock.sleep(30, new AbortController().signal);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

test("what watches begin with arrives whole, however slowly it is read, though it goes out in blocks that are used again and again", async () => {
  const entries = Array.from({ length: 3_000 }, (_, i) => entryOf(i));
  async function* batches(): AsyncIterable<readonly WatchItem[]> {
    for (let i = 0; i < entries.length; i += 250) yield entries.slice(i, i + 250).map((entry) => ({ type: "ADDED", entry }));
    yield [{ type: "MODIFIED", entry: entries[7]! }];
  }
  const { port, ca } = await serve(() => ({ type: "watch", served, batches: batches() }));
  const over1 = new Promise<string>((resolve, reject) => { ask({ host: "localhost", port, ca, path: "/api/v1/configmaps?watch=1" }, (response) => void slowly(response).then(resolve, reject)).on("error", reject).end(); });
  const client = http2.connect(`https://localhost:${port}`, { ca });
  const texts = await Promise.all([over1, ...[1, 2].map(() => slowly(client.request({ ":path": "/api/v1/configmaps?watch=1" })))]);
  client.destroy();
  const expected = `${entries.map((entry) => `{"type":"ADDED","object":${entry.json().toString()}}\n`).join("")}{"type":"MODIFIED","object":${entries[7]!.json().toString()}}\n`;
  for (const text of texts) expect(text === expected).toBe(true);
});

test("before each part of what a watch begins with, and before each event, others have their turn, however much the client takes at once; bytes are made of them after that", async () => {
  const written: Uint8Array[] = [];
  const response = { req: { httpVersionMajor: 1, httpVersion: "1.0" }, write: (bytes: Uint8Array, done?: () => void) => { written.push(Buffer.from(bytes)); done?.(); }, end: () => undefined, writableLength: 0 } as unknown as ServerResponse;
  const long = Buffer.alloc(40_000, "-");
  async function* batches(): AsyncIterable<EventBatch> { yield* [[long], [long], long, long.subarray(0, 10), [long.subarray(0, 10)]]; }
  const before: [number, number][] = [];
  let encoded = 0;
  await new BodySender(() => () => void before.push([encoded, written.length])).sendEvents(response, { batches: batches(), encode(batch) { encoded++; return batch; } }, new AbortController().signal);
  expect(before).toEqual([[0, 0], [1, 1], [2, 2], [3, 3], [4, 4]]);
  expect(written.map(({ length }) => length)).toEqual([40_000, 40_000, 40_000, 10, 10]);
});

test("HTTP/1.0 keeps its connection if it asks for that and an answer's end is known", async () => {
  async function* batches(): AsyncIterable<readonly WatchItem[]> { yield [{ type: "ADDED", entry: entryOf(1) }]; }
  let answer: Answer = { type: "object", status: 200, object: { apiVersion: "v1", kind: "Status" } } as unknown as Answer;
  const { port, ca } = await serve(() => answer);
  const socket = tls.connect({ port, host: "localhost", ca });
  const ended = new Promise<string>((resolve) => socket.once("end", () => resolve("ended")));
  const say = async (connection: string): Promise<string> => {
    socket.write(`GET /api/v1/configmaps HTTP/1.0\r\n${connection}\r\n`);
    return String((await once(socket, "data"))[0]);
  };
  for (const _ of [1, 2]) expect(await say("Connection: Keep-Alive\r\n")).toMatch(/^HTTP\/1.1 200 (?=[\s\S]*content-length: \d)[\s\S]*connection: keep-alive/i);
  answer = { type: "watch", served, batches: batches() };
  expect(await say("Connection: Keep-Alive\r\n")).toMatch(/^HTTP\/1.1 200 [\s\S]*connection: close/i);
  expect(await ended).toBe("ended");
});

test("a block is lent again once its bytes have been taken, and never when somebody may still read them", async () => {
  const pool = new BlockPool(10, 1), { signal } = new AbortController(), seen: Buffer[] = [];
  const keep = async (block: Buffer): Promise<void> => { seen.push(block); };
  await pool.lend(signal, keep);
  await pool.lend(signal, (first) => pool.lend(signal, async (second) => { await keep(first); await keep(second); }));
  expect(seen[1]).toBe(seen[0]);
  expect(seen[2]).not.toBe(seen[0]);
  await pool.lend(AbortSignal.abort(), keep);
  await expect(pool.lend(signal, () => Promise.reject(new Error("gone")))).rejects.toThrow("gone");
  await pool.lend(signal, keep);
  expect(seen.slice(0, 4)).not.toContain(seen[4]);
});

test("a chunk is made where its bytes lie", () => {
  const block = Buffer.alloc(40, "-");
  block.write("eleven more", CHUNK_ROOM.before);
  expect(framedInPlace(block, 11).toString()).toBe("0000000b\r\neleven more\r\n");
  expect(assemble([block.subarray(23)]).toString()).toBe("-".repeat(17));
});
