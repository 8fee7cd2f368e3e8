import { createServer, connect, type AddressInfo, type Socket } from "node:net";
import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { hastyServer } from "../../test/hasty-server.ts";
import { http1Request } from "./http1-client.ts";

/** A backend that reads a request's head and then writes these pieces. */
async function backend(pieces: readonly string[], then: (socket: Socket) => void = () => undefined): Promise<{ dial(): Socket; readonly seen: () => string; [Symbol.dispose](): void }> {
  let seen = "";
  const server = createServer((socket) => {
    let answered = false;
    socket.on("error", () => undefined);
    socket.on("data", (chunk) => {
      seen += chunk.toString();
      if (answered || !seen.includes("\r\n\r\n")) return;
      answered = true;
      void (async () => {
        for (const piece of pieces) {
          socket.write(piece);
          await new Promise((resolve) => setImmediate(resolve));
        }
        then(socket);
      })();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { dial: () => connect(port, "127.0.0.1"), seen: () => seen, [Symbol.dispose]: () => void server.close() };
}

async function textOf(body: Readable): Promise<string> {
  let text = "";
  for await (const chunk of body) text += String(chunk);
  return text;
}

const never = new AbortController().signal;
const GET = { method: "GET", target: "/x", headers: [["Host", "h"]] } as const;

test.each([
  ["of a known length", ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", "lo, and more"], false, "hello"],
  ["in chunks, however they are cut", ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r", "\nhel", "lo\r\n6\r\n world\r\n0\r\nTrailer: x\r\n", "\r\n"], false, "hello world"],
  ["until the end", ["HTTP/1.1 200 OK\r\n\r\nhello", " there"], true, "hello there"],
  ["after the answers before the answer", ["HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"], false, "ok"],
  ["none", ["HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"], false, ""],
])("a body %s", async (_, pieces, ends, expected) => {
  using server = await backend(pieces, (socket) => void (ends && socket.end()));
  const { body } = await http1Request(server.dial(), GET, never);
  expect(await textOf(body)).toBe(expected);
});

test.each([
  ["shorter", ["ab"]], ["longer", ["abcd", "GET /other HTTP/1.1\r\nHost: h\r\n\r\n"]],
])("a body %s than its length says ends the connection: the next request on it would be read as something else", async (_, pieces) => {
  using server = await backend([]);
  const connection = server.dial();
  const released: unknown[] = [];
  const body = Readable.from(pieces.map((piece) => Buffer.from(piece)));
  await expect(http1Request(connection, { method: "POST", target: "/x", headers: [["Host", "h"], ["content-length", "4"]], body, release: (one) => released.push(one) }, never)).rejects.toThrow();
  expect([released, connection.destroyed, server.seen().includes("/other")]).toEqual([[], true, false]);
});

test.each([
  ["cut off", ["HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello"], "unexpected EOF"],
  ["cut off in a chunk", ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nhello"], "unexpected EOF"],
  ["with a bad chunk", ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"], "invalid byte in chunk length"],
  ["with a chunk of five bytes that is not one of none", ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n00000000000000005\r\nhello\r\n0\r\n\r\n"], "http chunk length too large"],
  ["with a chunk that is half a number", ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n"], "invalid byte in chunk length"],
])("a body %s is an error, not a shorter body", async (_, pieces, message) => {
  using server = await backend(pieces, (socket) => void socket.end());
  const { body } = await http1Request(server.dial(), GET, never);
  await expect(textOf(body)).rejects.toThrow(message);
});

test("no answer, and no HTTP, are errors", async () => {
  using silent = await backend([], (socket) => void socket.end());
  await expect(http1Request(silent.dial(), GET, never)).rejects.toThrow("EOF");
  using other = await backend(["SSH-2.0-OpenSSH\r\n\r\n"]);
  await expect(http1Request(other.dial(), GET, never)).rejects.toThrow("malformed HTTP response");
});

test("a connection that was reset is told of in Go's words", async () => {
  using server = await backend([], (socket) => void socket.resetAndDestroy());
  const connection = server.dial();
  await new Promise((resolve) => { connection.once("connect", resolve); });
  await expect(http1Request(connection, GET, never)).rejects.toThrow(/^read tcp 127\.0\.0\.1:\d+->127\.0\.0\.1:\d+: read: connection reset by peer$/);
});

test("a request body without a length goes in chunks, a header cannot bring another with it", async () => {
  using server = await backend(["HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"]);
  const { body } = await http1Request(server.dial(), { method: "POST", target: "/", headers: [["Host", "h"], ["X", "a\r\nEvil: yes"]], body: Readable.from([Buffer.from("hello")]) }, never);
  await textOf(body);
  expect(server.seen()).toContain("X: a Evil: yes\r\nTransfer-Encoding: chunked\r\n\r\n");
});

test("what is more than a byte ends no line", async () => {
  using server = await backend(["HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"]);
  const { body } = await http1Request(server.dial(), { method: "GET", target: "/\u010d\u010aA", headers: [["Host", "h"], ["X", "a\u010d\u010aEvil: yes"]] }, never);
  await textOf(body);
  expect(server.seen()).toContain("GET /\u010d\u010aA HTTP/1.1\r\nHost: h\r\nX: a\u010d\u010aEvil: yes\r\n");
});

test("an upgrade hands the connection over, with what came behind the headers", async () => {
  using server = await backend(["HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nearly"], (socket) => void socket.write(" late"));
  const { status, upgraded } = await http1Request(server.dial(), { ...GET, headers: [["Host", "h"], ["Connection", "Upgrade"], ["Upgrade", "x"]] }, never);
  expect(status).toBe(101);
  let text = upgraded!.early.toString();
  upgraded!.connection.on("data", (chunk: Buffer) => void (text += chunk.toString())).resume();
  await expect.poll(() => text).toBe("early late");
  upgraded!.connection.destroy();
});

test("a signal ends it", async () => {
  using server = await backend([]);
  const quit = new AbortController();
  const answer = http1Request(server.dial(), GET, quit.signal);
  quit.abort(new Error("client is gone"));
  await expect(answer).rejects.toThrow("client is gone");
});

test("chunks that are small and come together are passed on together; whatever stands between them, and however they are cut", async () => {
  const pieces = async (...sent: string[]): Promise<string[]> => {
    using server = await backend(["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", ...sent]);
    const found: string[] = [];
    for await (const piece of (await http1Request(server.dial(), GET, never)).body) found.push(String(piece));
    return found;
  };
  expect(await pieces(`${"1\r\nx\r\n".repeat(1000)}0\r\n\r\n`)).toEqual(["x".repeat(1000)]);
  expect((await pieces(`1\r\na\r\n${(5000).toString(16)}\r\n${"b".repeat(5000)}\r\n2;e=f\r\ncc\r\n1\nd\n0A\r\n0123456789\r\n0\r\nT: x\r\n\r\n`)).join("")).toBe(`a${"b".repeat(5000)}ccd0123456789`);
  const cut = "3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n";
  for (let at = 1; at < cut.length; at++) expect((await pieces(cut.slice(0, at), cut.slice(at))).join("")).toBe("abcd");
});

test.each([
  ["answers before the answer, one by one", Array.from({ length: 101 }, () => "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"), "too many 1xx informational responses"],
  ["what follows a body", ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n", ..."x".repeat(20).split("").map(() => `a: ${"b".repeat(1000)}\r\n`)], "suspiciously long trailer after chunked body"],
  ["chunks of no size", ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n\r\n"], "empty hex number for chunk length"],
  ["chunks of too long a size", ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n00000000000000001\r\nx\r\n"], "http chunk length too large"],
  ["more than a chunk says", ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n"], "malformed chunked encoding"],
])("%s: no end of them is taken", async (_, pieces, message) => {
  using server = await backend(pieces);
  await expect(http1Request(server.dial(), GET, never).then(async ({ body }) => await textOf(body))).rejects.toThrow(message);
});

test("a connection is handed over to nobody who did not ask for that", async () => {
  using server = await backend(["HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"]);
  const connection = server.dial();
  expect([(await http1Request(connection, GET, never)).status, connection.destroyed]).toEqual([101, true]);
});

test("who refuses a body and closes, most of it unread, while more of it comes is heard", async () => {
  await using server = await hastyServer();
  const connection = connect(server.port, "127.0.0.1"), body = new Readable({ read: () => undefined });
  const answered = http1Request(connection, { method: "PUT", target: "/x", headers: [["Host", "h"]], body }, never);
  const peer = await server.peer;
  while (connection.connecting || connection.writableLength > 0) await new Promise(setImmediate); // the head is there
  peer.write("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", () => {
    peer.destroy();
    body.push("more");
  });
  expect((await answered).status).toBe(413);
});
