import { constants, createDeflate, deflateSync } from "node:zlib";
import { expect, test } from "vitest";
import { SPDY_DICTIONARY, spdyGate } from "./spdy-gate.ts";

const words = (...numbers: readonly number[]): Buffer => Buffer.concat(numbers.map((number) => { const one = Buffer.alloc(4); one.writeUInt32BE(number >>> 0); return one; }));
const deflated = (bytes: Uint8Array): Buffer => deflateSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH });
const data = (id: number, text: string): Buffer => Buffer.concat([words(id, text.length), Buffer.from(text)]);

function control(type: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt16BE(0x8003, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt32BE(payload.length, 4);
  return Buffer.concat([head, payload]);
}

function block(headers: Readonly<Record<string, string>>): Buffer {
  const entries = Object.entries(headers);
  return Buffer.concat([words(entries.length), ...entries.flat().flatMap((text) => [words(text.length), Buffer.from(text)])]);
}

const opened = (id: number, compressed: Buffer): Buffer => control(1, Buffer.concat([words(id, 0), Buffer.alloc(2), compressed]));

/** As kubectl has it: one zlib stream for all blocks of a connection. */
async function stream(blocks: readonly Buffer[]): Promise<Buffer[]> {
  const zlib = createDeflate(), out: Buffer[] = [];
  let came: Buffer[] = [];
  zlib.on("data", (bytes: Buffer) => came.push(bytes));
  for (const one of blocks) {
    zlib.write(one);
    await new Promise<void>((resolve) => zlib.flush(constants.Z_SYNC_FLUSH, () => resolve()));
    out.push(Buffer.concat(came));
    came = [];
  }
  return out;
}

test("what clients say goes through as it came, however it is cut", async () => {
  const [first, second] = await stream([block({ streamtype: "error", port: "80", requestid: "0" }), block({ streamtype: "data", port: "80", requestid: "0" })]);
  const all = Buffer.concat([opened(1, first!), data(1, ""), opened(3, second!), data(3, "GET / "), control(6, words(1)), control(4, words(1, 0x0400_0000, 100)), data(3, "HTTP/1.1"), control(3, words(3, 5)), control(7, words(3, 0))]);
  for (const piece of [1, 2, 7, 20, 10_000]) {
    const gate = spdyGate(), out: Buffer[] = [];
    for (let at = 0; at < all.length; at += piece) out.push(gate(all.subarray(at, at + piece)));
    expect(Buffer.concat(out).equals(all)).toBe(true);
  }
});

test("of a frame with headers nothing goes on before all of it has come; data does at once", () => {
  const gate = spdyGate(), whole = opened(1, deflated(block({ streamtype: "error" })));
  expect(gate(whole.subarray(0, whole.length - 1))).toHaveLength(0);
  expect(gate(whole.subarray(whole.length - 1)).equals(whole)).toBe(true);
  const sent = data(1, "0123456789");
  expect(gate(sent.subarray(0, 12)).toString()).toBe(sent.toString("utf8", 0, 12));
});

test.each<[string, Buffer]>([
  ["headers by the thousand million", opened(1, deflated(words(0x7fff_ffff, 0, 0)))],
  ["a header of a gigabyte", opened(1, deflated(words(1, 0x3fff_ffff)))],
  ["headers that are not all there", opened(1, deflated(words(2, 0, 0)))],
  ["more than it says, which would be the next one's", opened(1, deflated(Buffer.concat([block({ a: "b" }), words(0x7fff_ffff)])))],
  ["nothing in it", opened(1, Buffer.alloc(0))],
  ["no zlib", opened(1, Buffer.from("no zlib at all"))],
  ["a block of the stream that the next frame would go on with", opened(1, Buffer.concat([Buffer.from([0x78, 0x01, 0, 100, 0, 155, 255]), block({ a: "b" })]))],
  ["a bomb", opened(1, deflated(Buffer.concat([words(1, 1), Buffer.from("a"), words(1 << 20), Buffer.alloc(1 << 20)])))],
  ["the same in a reply", control(2, Buffer.concat([words(1), deflated(words(0x7fff_ffff))]))],
  ["the same in HEADERS", control(8, Buffer.concat([words(1), deflated(words(0x7fff_ffff))]))],
  ["settings by the thousand million", control(4, words(0xffff_ffff))],
  ["a frame that is too long", control(1, Buffer.alloc(17 * 1024))],
  ["another version", Buffer.from("8002000100000000", "hex")],
  ["an unknown kind", control(99, words(1))],
  ["no id", control(1, Buffer.alloc(2))],
])("%s: not passed on", (_, bytes) => {
  expect(() => spdyGate()(bytes)).toThrow();
});

test("blocks that begin with SPDY's dictionary, as kubectl's do, are read", () => {
  const compressed = deflateSync(block({ streamtype: "stdin", "content-type": "text/plain" }), { finishFlush: constants.Z_SYNC_FLUSH, dictionary: SPDY_DICTIONARY });
  expect(compressed.subarray(2, 6).toString("hex")).toBe("e3c6a7c2"); // its checksum, as every implementation has it
  expect(spdyGate()(opened(1, compressed))).toHaveLength(18 + compressed.length);
});
