import { describe, expect, test } from "vitest";
import { BodyEnd } from "./http1-body.ts";
import { fieldReader, readRequestHead, readResponseHead } from "./http1-head.ts";

const fields = fieldReader();
const request = (...lines: readonly string[]) => readRequestHead(lines.map((line) => `${line}\r\n`).join(""), fields);
const response = (method: string, ...lines: readonly string[]) => readResponseHead(lines.join("\r\n"), method, fields);

test("a request: its lines as they came, its host, how its body ends", () => {
  expect(request("POST /a?b HTTP/1.1", "HOST:  x ", "Content-Length: 12", "Connection: Keep-Alive, X-Own", "x-OWN: 1", "Expect: 100-Continue")).toEqual({
    method: "POST", target: "/a?b", minor: 1, host: "x", framing: 12, length: "12", upgrade: undefined, expectsContinue: true, closes: false, named: new Set(["keep-alive", "x-own"]),
    fields: [
      { name: "host", value: "x", line: "HOST:  x " }, { name: "content-length", value: "12", line: "Content-Length: 12" }, { name: "connection", value: "Keep-Alive, X-Own", line: "Connection: Keep-Alive, X-Own" },
      { name: "x-own", value: "1", line: "x-OWN: 1" }, { name: "expect", value: "100-Continue", line: "Expect: 100-Continue" },
    ],
  });
  expect(request("GET / HTTP/1.1", "Host: x", "Connection: close", "Connection: Upgrade", "Upgrade: websocket")).toMatchObject({ framing: 0, length: undefined, closes: true, upgrade: "websocket" });
  expect(request("GET / HTTP/1.1", "Host: x", "Upgrade: websocket"), "only what Connection names is asked for").toMatchObject({ upgrade: undefined });
  expect(request("PUT / HTTP/1.1", "Host: x", "Transfer-Encoding: Chunked")).toMatchObject({ framing: "chunked" });
  expect(request("GET / HTTP/1.0")).toMatchObject({ minor: 0, host: undefined });
});

test.each<[number, readonly string[]]>([
  [400, ["GET / HTTP/1.1"]], [400, ["GET / HTTP/1.1", "Host: a", "Host: b"]], [400, ["GET  / HTTP/1.1", "Host: a"]], [400, ["GET /a b HTTP/1.1", "Host: a"]], [400, ["GET / HTTP/1.1 ", "Host: a"]], [400, ["G\tT / HTTP/1.1", "Host: a"]], [400, ["", "Host: a"]],
  [400, ["GET / HTTP/1.1", "Host : a"]], [400, ["GET / HTTP/1.1", "Host: a", " folded"]], [400, ["GET / HTTP/1.1", "Host: a", "X"]], [400, ["GET / HTTP/1.1", "Host: a", ": x"]], [400, ["GET / HTTP/1.1", "Host: a", "X: a\0b"]], [400, ["GET / HTTP/1.1", "Host: a", "X: a\rb"]], [400, ["GET / HTTP/1.1", "Host: a", "X: a\nY: b"]],
  [400, ["POST / HTTP/1.1", "Host: a", "Content-Length: 1", "Transfer-Encoding: chunked"]], [400, ["POST / HTTP/1.1", "Host: a", "Content-Length: 1", "Content-Length: 1"]], [400, ["POST / HTTP/1.1", "Host: a", "Content-Length: +1"]], [400, ["POST / HTTP/1.1", "Host: a", "Content-Length: 1, 1"]], [400, ["POST / HTTP/1.1", "Host: a", "Content-Length: 0x1"]],
  [400, ["POST / HTTP/1.1", "Host: a", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"]], [400, ["POST / HTTP/1.0", "Host: a", "Transfer-Encoding: chunked"]], [501, ["POST / HTTP/1.1", "Host: a", "Transfer-Encoding: gzip, chunked"]], [501, ["POST / HTTP/1.1", "Host: a", "Transfer-Encoding: xchunked"]],
  [417, ["POST / HTTP/1.1", "Host: a", "Expect: wonders"]], [505, ["GET / HTTP/2.0", "Host: a"]], [505, ["GET / HTTP/1.2", "Host: a"]],
])("is refused with %i: %j", (status, lines) => { expect(request(...lines)).toBe(status); });

test("an answer: where its body ends, and whether its connection goes on", () => {
  expect(response("GET", "HTTP/1.1 200 OK", "Content-Length: 5")).toMatchObject({ status: 200, statusText: "OK", framing: 5, closes: false });
  expect(response("GET", "HTTP/1.1 200", "Content-Length: 5", "Content-Length: 05")).toMatchObject({ statusText: "", framing: 5 });
  expect(response("GET", "HTTP/1.1 200 OK", "transfer-encoding: chunked", "Content-Length: 5"), "others may have read it otherwise").toMatchObject({ framing: "chunked", closes: true });
  expect(response("GET", "HTTP/1.1 200 OK")).toMatchObject({ framing: "close" });
  expect(response("HEAD", "HTTP/1.1 200 OK", "Content-Length: 5")).toMatchObject({ framing: 0, length: "5" });
  expect(response("GET", "HTTP/1.1 304 Not Modified", "Content-Length: 5")).toMatchObject({ framing: 0 });
  expect(response("GET", "HTTP/1.0 200 OK", "Content-Length: 5")).toMatchObject({ closes: true });
  expect(readResponseHead("HTTP/1.1 200 OK\nA: b\n\tc\nConnection: close", "GET", fields)).toMatchObject({ closes: true, fields: [{ line: "A: b c" }, { name: "connection" }] });
});

test.each([["HTTP/2 200 OK"], ["HTTP/1.1 20 OK"], ["HTTP/1.1 200 O\0K"], ["HTTP/1.1 200 OK\r\nX"], ["HTTP/1.1 200 OK\r\nContent-Length: -1"], ["HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2"], ["HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip"], ["HTTP/1.1 200 OK\r\nA: b\rc"], ["SSH-2.0-OpenSSH"]])("is no answer: %j", (text) => {
  expect(() => readResponseHead(text, "GET", fields)).toThrow();
});

describe("the end of a body", () => {
  const CHUNKS = "5;a=\"b\"\r\nhello\r\nA\r\n0123456789\r\n0\r\nX-Sum: 1\r\n\r\n";
  /** How much of it was the body's, given in pieces of so many bytes. */
  const taken = (framing: number | "chunked" | "close", text: string, piece: number): [number, boolean] => {
    const end = new BodyEnd(framing), bytes = Buffer.from(text, "latin1");
    let at = 0;
    while (at < bytes.length && !end.done) at += end.take(bytes.subarray(at, at + piece));
    return [at, end.done];
  };

  test.each([1, 2, 3, 7, 1000])("in pieces of %i", (piece) => {
    expect(taken("chunked", `${CHUNKS}GET / `, piece)).toEqual([CHUNKS.length, true]);
    expect(taken("chunked", CHUNKS.slice(0, -1), piece)).toEqual([CHUNKS.length - 1, false]);
    expect(taken(5, "helloGET", piece)).toEqual([5, true]);
    expect(taken("close", "hello", piece)).toEqual([5, false]);
    expect(taken(0, "hello", piece)).toEqual([0, true]);
  });

  test.each(["\r\n", "5 \r\nhello", "0x5\r\nhello", "-5\r\nhello", "5\nhello", "5\r\nhelloX\n", "5\r\nhello\n0\r\n\r\n", "fffffffffffff\r\n", "5;a\rb\r\nhello", "0\r\nno trailer\r\n\r\n", "0\r\nx: y\n\r\n", "0\r\nContent-Length: 50\r\n\r\n", "0\r\nx: y\r\nX-Real-IP: 10.0.0.1\r\n\r\n", "0\r\nx_forwarded_for: 10.0.0.1\r\n\r\n", `5;${"a".repeat(5000)}`, `0\r\n${`x: ${"y".repeat(1000)}\r\n`.repeat(20)}`])("is not found in %j", (text) => {
    for (const piece of [1, 1000]) expect(() => taken("chunked", text, piece)).toThrow();
  });
});
