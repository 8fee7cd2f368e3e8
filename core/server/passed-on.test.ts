/** What a client sees of an answer that another server has given. */
import { rmSync } from "node:fs";
import * as http2 from "node:http2";
import { Readable } from "node:stream";
import { connect } from "node:tls";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { servingMaterial, testPki } from "../../test/certificates.ts";
import { systemClock } from "../lifecycle/clock.ts";
import { httpsServer } from "../net/http-server.ts";
import { silentLog } from "../observe/log.ts";
import type { RawAnswer } from "./answer.ts";
import { detectContentType } from "./detect-content-type.ts";
import { httpFront } from "./http.ts";
import type { Handler } from "./scope.ts";

let pki: Awaited<ReturnType<typeof testPki>>;
beforeAll(async () => { pki = await testPki(); });
afterAll(() => rmSync(pki.dir, { recursive: true, force: true }));
const ending: (() => Promise<void>)[] = [];
afterEach(async () => { for (const end of ending.splice(0)) await end(); });

async function serving(handler: Handler): Promise<number> {
  const stopping = new AbortController();
  const front = httpFront({
    handler: (request) => {
      request.setHeader?.("Audit-Id", "a-1");
      return handler(request);
    },
    clock: systemClock, log: silentLog, stopping: () => stopping.signal, columnTexts: () => Promise.resolve(undefined),
  });
  const server = httpsServer({ host: "127.0.0.1", port: 0, portFlag: "", tls: () => servingMaterial(pki), handler: front.request, upgrade: front.upgrade, log: silentLog, clock: systemClock, limits: { drainMs: 0 } });
  await new Promise<void>((ready) => { const ended = server.run(stopping.signal, ready); ending.push(() => { stopping.abort(); return ended; }); });
  return server.address()!.port;
}

/** All that comes until the connection ends. One that stays ends with what is waited for, and is told as "…" when it is quiet after that. */
function raw(port: number, { until, told }: { readonly until?: string; readonly told?: (got: string) => void } = {}): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1", servername: "localhost", ca: pki.authority("server-ca").bundlePem, ALPNProtocols: ["http/1.1"] }, () => socket.write(`GET / HTTP/1.1\r\nHost: x\r\n\r\n`));
    let got = "";
    socket.on("data", (chunk: Buffer) => {
      got += chunk.toString("latin1");
      told?.(got);
      if (until !== undefined && got.endsWith(until)) socket.setTimeout(700, () => { resolve(`${got}…`); socket.destroy(); });
    }).on("close", () => resolve(got)).on("error", () => undefined);
  });
}

const passed = (headers: readonly (readonly [string, string])[], { status = 200, body = Readable.from([Buffer.from("hi")]), length }: { readonly status?: number; readonly body?: Readable; readonly length?: number } = {}): RawAnswer =>
  ({ type: "raw", status, headers: {}, passedOn: { headers, length }, body });

test("headers go on beside our own, each as often as it came; what is no name goes no further", async () => {
  const got = await raw(await serving(async () => passed([["x-a", "1"], ["X-A", "2"], ["Audit-Id", "theirs"], ["Cache-Control", "max-age=9"], ["Bad Name", "3"], ["Content-Type", "a/b"]], { length: 2 })), { until: "hi" });
  expect(got.replace(/Date: .*\r\n/, "")).toBe("HTTP/1.1 200 OK\r\nAudit-Id: a-1\r\nAudit-Id: theirs\r\ncache-control: no-cache, private\r\ncache-control: max-age=9\r\nX-A: 1\r\nX-A: 2\r\nContent-Type: a/b\r\ncontent-length: 2\r\n\r\nhi…");
});

test.each<[string, Parameters<typeof passed>, RegExp]>([
  ["of no type has the one it looks like", [[], { length: 2 }], /^HTTP\/1.1 200 OK\r\n[\s\S]*content-type: text\/plain; charset=utf-8[\s\S]*\r\n\r\nhi…$/],
  ["that is empty has no length", [[["Content-Length", "7"]], { status: 304, length: 0, body: Readable.from([]) }], /^HTTP\/1.1 304 Not Modified\r\n(?![\s\S]*content-length)[\s\S]*…$/i],
  ["of a status without a name is named as Go does", [[], { status: 299, length: 2 }], /^HTTP\/1.1 299 status code 299\r\n/],
  ["of a teapot", [[], { status: 418, length: 2 }], /^HTTP\/1.1 418 I'm a teapot\r\n/],
  ["of no status at all is none", [[], { status: 99, length: 2 }], /^$/],
])("an answer %s", async (_, how, expected) => expect(await raw(await serving(async () => passed(...how)), { until: how[1]?.length === 0 ? "\r\n\r\n" : "hi" })).toMatch(expected));

function breaking(when: Promise<void>): Readable {
  const body = new Readable({ read: () => undefined });
  body.push("hel");
  void when.then(() => body.destroy(new Error("unexpected EOF")));
  return body;
}

const atOnce = (): Promise<void> => systemClock.sleep(0, new AbortController().signal);

test.each<[string, boolean, number | undefined, RegExp]>([
  ["at once, of a known length, is not seen", true, 100, /^$/],
  ["later is seen to break off", false, 100, /^HTTP\/1.1 200 OK\r\n[\s\S]*content-length: 100\r\n[\s\S]*\r\n\r\nhel$/],
  ["in a stream is seen to break off", false, undefined, /^HTTP\/1.1 200 OK\r\n[\s\S]*\r\n\r\n3\r\nhel\r\n$/],
])("an answer that breaks off %s", async (_, soon, length, expected) => {
  const { promise: seen, resolve } = Promise.withResolvers<void>();
  const port = await serving(async () => passed([], { length, body: breaking(soon ? atOnce() : seen) } as never));
  expect(await raw(port, { told: (got) => { if (got.includes("hel")) resolve(); } })).toMatch(expected);
});

test("an answer that had broken off before anybody read it ends the connection, too", async () => {
  const body = breaking(atOnce());
  body.on("error", () => undefined);
  expect(await raw(await serving(async () => { await systemClock.sleep(20, new AbortController().signal); return passed([], { body }); }))).toBe("");
});

test("over HTTP/2 an answer that breaks off is a stream that is reset", async () => {
  const { promise: begun, resolve: begins } = Promise.withResolvers<void>();
  const port = await serving(async () => passed([["X-A", "1"], ["X-A", "2"]], { body: breaking(begun) }));
  const client = http2.connect(`https://localhost:${port}`, { ca: pki.authority("server-ca").bundlePem });
  const stream = client.request({ ":path": "/" }).on("error", () => undefined);
  const seen = await new Promise<unknown>((resolve) => { stream.on("response", (headers) => resolve(headers["x-a"])); });
  begins();
  await new Promise((resolve) => { stream.on("close", resolve).resume(); });
  expect([seen, stream.rstCode]).toEqual(["1, 2", http2.constants.NGHTTP2_INTERNAL_ERROR]);
  client.destroy();
});

test("an answer before the answer goes on, the first of them, with our own headers", async () => {
  const port = await serving(async ({ tellEarly }) => {
    for (const link of ["</a>", "</b>"]) tellEarly?.(103, [["Link", link]]);
    return passed([["Content-Type", "a/b"]], { status: 404, length: 2 });
  });
  expect(await raw(port, { until: "hi" })).toMatch(/^HTTP\/1.1 103 Early Hints\r\nCache-Control: no-cache, private\r\nAudit-Id: a-1\r\nLink: <\/a>\r\n\r\nHTTP\/1.1 404 Not Found\r\n[\s\S]*\r\n\r\nhi…$/);
});

test.each([
  ["<!DOCTYPE html><p>", "text/html; charset=utf-8"], [" <a href=x>", "text/html; charset=utf-8"], ["<ab>", "text/plain; charset=utf-8"], ["<?xml ?>", "text/xml; charset=utf-8"], ["%PDF-1", "application/pdf"],
  ["\x89PNG\r\n\x1a\n", "image/png"], ["\x1f\x8b\x08", "application/x-gzip"], ["{}", "text/plain; charset=utf-8"], ["a\0", "application/octet-stream"], ["", "text/plain; charset=utf-8"],
])("%j looks like %s", (text, type) => expect(detectContentType(Buffer.from(text, "latin1"))).toBe(type));
