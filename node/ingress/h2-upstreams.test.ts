import { createServer, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { systemClock } from "../../core/lifecycle/clock.ts";
import { frame, frameServer } from "../../test/http2-frames.ts";
import { lateStreams } from "../../test/late-streams.ts";
import { type Http2Response, H2Upstreams } from "./h2-upstreams.ts";
import { Upstreams } from "./upstreams.ts";

test("requests that come at once share one connection to an endpoint, also when it is made anew", async () => {
  const sessions: ServerHttp2Session[] = [];
  const server = createServer((_, response) => void response.end("here"));
  server.on("session", (session) => void sessions.push(session));
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const endpoint = { address: "127.0.0.1", port: (server.address() as AddressInfo).port };
  const upstreams = new H2Upstreams(systemClock, new Upstreams(systemClock, () => [])), { signal } = new AbortController();
  const asked = async (): Promise<string> => {
    const ask = await upstreams.connect(endpoint, undefined);
    return await text((await ask({ method: "GET", target: "/", headers: [["host", "h"]] }, signal)).body);
  };
  expect(await Promise.all([asked(), asked(), asked()])).toEqual(["here", "here", "here"]);
  expect(sessions).toHaveLength(1);
  upstreams.sweep(0);
  expect(await Promise.all([asked(), asked()])).toEqual(["here", "here"]);
  expect(sessions).toHaveLength(2);
  const ask = await upstreams.connect(endpoint, undefined);
  await expect(ask({ method: "GET", target: "/", headers: [["host", "h"], ["content-type", "a"], ["content-type", "b"]] }, signal)).rejects.toThrow(); // which HTTP/2 does not have twice
  await Bun.sleep(5);
  upstreams.sweep(1);
  await expect.poll(() => sessions[1]!.closed || sessions[1]!.destroyed).toBe(true);
  for (const session of sessions) session.destroy();
  await new Promise<void>((resolve) => void server.close(() => resolve()));
});

test("a request whose head grows too long on its way ends nobody else's on the same connection", async () => {
  let open: ServerHttp2Stream | undefined;
  const server = createServer(({ url }, response) => {
    if (url === "/slow") {
      response.write("begun ");
      open = response.stream;
      return;
    }
    response.end("here");
    if (url === "/end") open?.end("ended");
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const upstreams = new H2Upstreams(systemClock, new Upstreams(systemClock, () => [])), { signal } = new AbortController();
  const asked = async (target: string, field = "") => {
    const ask = await upstreams.connect({ address: "127.0.0.1", port: (server.address() as AddressInfo).port }, undefined);
    return await ask({ method: "GET", target, headers: [["host", "h"], ["cookie", field]] }, signal);
  };
  const slow = await asked("/slow");
  await expect(asked("/", "x".repeat(65_500))).rejects.toThrow("request header list larger");
  expect(await text((await asked("/end")).body)).toBe("here");
  expect(await text(slow.body)).toBe("begun ended");
  upstreams.sweep(0);
  await new Promise<void>((resolve) => void server.close(() => resolve()));
});

test("a connection that has no numbers left for requests is left for another one, and what is under way on it goes on", async () => {
  let open: ServerHttp2Stream | undefined, connectionCount = 0;
  const server = createServer(({ url }, response) => {
    if (url !== "/slow") return void response.end("here");
    response.write("begun ");
    open = response.stream;
  });
  server.on("session", () => { connectionCount++; });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const upstreams = new H2Upstreams(systemClock, new Upstreams(systemClock, () => [])), { signal } = new AbortController();
  const asked = async (target: string) => {
    const ask = await upstreams.connect({ address: "127.0.0.1", port: (server.address() as AddressInfo).port }, undefined);
    return await ask({ method: "GET", target, headers: [["host", "h"]] }, signal);
  };
  {
    using _ = lateStreams(3);
    const slow = await asked("/slow");
    for (let i = 0; i < 8; i++) expect(await text((await asked("/")).body)).toBe("here");
    open?.end("ended");
    expect(await text(slow.body)).toBe("begun ended");
  }
  expect(connectionCount).toBeGreaterThan(1);
  upstreams.sweep(0);
  await new Promise<void>((resolve) => void server.close(() => resolve()));
});

const BEGUN = (stream: number): Buffer => Buffer.concat([frame(1, 4, stream, Buffer.from([0x88])), frame(0, 0, stream, Buffer.from("half"))]); // ":status: 200" and data
const END = 1, CANCEL = Buffer.from([0, 0, 0, 8]), TWO_AT_ONCE = Buffer.from([0, 3, 0, 0, 0, 2]);

test.each([
  ["resets the stream", (socket: Socket, stream: number) => void socket.write(frame(3, 0, stream, CANCEL))],
  ["ends the connection", (socket: Socket) => void socket.end()],
  ["resets the connection", (socket: Socket) => void socket.resetAndDestroy()],
])("an answer of which half has come when the endpoint %s is not whole", async (_, ends) => {
  await using server = await frameServer((socket, stream) => {
    socket.write(BEGUN(stream));
    setTimeout(ends, 20, socket, stream);
  });
  const upstreams = new H2Upstreams(systemClock, new Upstreams(systemClock, () => []));
  const ask = await upstreams.connect({ address: "127.0.0.1", port: server.port }, undefined);
  const { body, isWhole } = await ask({ method: "GET", target: "/", headers: [["host", "h"]] }, new AbortController().signal);
  body.on("error", () => undefined).resume();
  await new Promise<void>((resolve) => void body.once("close", resolve));
  expect(isWhole()).toBe(false);
});

test("an answer without a body whose trailers come with its head ends for who listens a little later", async () => {
  await using server = await frameServer((socket, stream) => void socket.write(Buffer.concat([frame(1, 4, stream, Buffer.of(0x88)), frame(1, 4 | END, stream, Buffer.of(0, 1, 0x61, 1, 0x62))])));
  const upstreams = new H2Upstreams(systemClock, new Upstreams(systemClock, () => []));
  const ask = await upstreams.connect({ address: "127.0.0.1", port: server.port }, undefined);
  const { body, isWhole, trailers } = await ask({ method: "GET", target: "/", headers: [["host", "h"]] }, new AbortController().signal);
  const { promise, resolve } = Promise.withResolvers<void>();
  setImmediate(() => body.once("end", resolve).resume());
  await promise;
  expect([isWhole(), { ...trailers() }]).toEqual([true, { a: "b" }]);
  upstreams.sweep(0);
});

test.each([["NO_ERROR", Buffer.alloc(4)], ["CANCEL", CANCEL]])("an answer that is whole stays so for who takes it slowly, though the endpoint wants no more of the request and resets it with %s", async (_, code) => {
  await using server = await frameServer((socket, stream) => void socket.write(Buffer.concat([BEGUN(stream), frame(0, 0, stream, Buffer.alloc(16_000, ".")), frame(0, END, stream, Buffer.from("end")), frame(3, 0, stream, code)])));
  const upstreams = new H2Upstreams(systemClock, new Upstreams(systemClock, () => [])), asked = new PassThrough();
  asked.write("more follows");
  const ask = await upstreams.connect({ address: "127.0.0.1", port: server.port }, undefined);
  const { body, isWhole } = await ask({ method: "POST", target: "/", headers: [["host", "h"]], body: asked }, new AbortController().signal);
  let bytes = 0;
  body.on("data", (piece: Buffer) => {
    bytes += piece.length;
    body.pause();
    setTimeout(() => body.resume(), 20);
  });
  let hasEnded = false;
  await new Promise<void>((resolve) => void body.once("end", () => { hasEnded = true; }).once("close", resolve));
  expect([bytes, hasEnded, isWhole()]).toEqual([16_007, true, true]);
  upstreams.sweep(0);
});

test("of more requests than an endpoint takes at once on a connection each has a place on another one", async () => {
  await using server = await frameServer((socket, stream) => void socket.write(BEGUN(stream)), TWO_AT_ONCE);
  const upstreams = new H2Upstreams(systemClock, new Upstreams(systemClock, () => [])), stop = new AbortController();
  const asked = async (): Promise<Http2Response> => {
    const ask = await upstreams.connect({ address: "127.0.0.1", port: server.port }, undefined);
    return await ask({ method: "GET", target: "/", headers: [["host", "h"]] }, stop.signal);
  };
  await asked();
  const answers = await Promise.all([asked(), asked(), asked(), asked()]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  expect(server.connectionCount).toBe(3);
  stop.abort();
});
