/**
 * A client of HTTP/1.1 that asks for HTTP/2 on the same connection (`Upgrade: h2c`), which HTTP/2 servers do not know of any more: to them it shall look as if its request
 * had come as stream 1, right behind what every client begins with.
 *
 *   101 Switching Protocols ─▶   client: preface, SETTINGS, …   ─▶   server is given: preface, SETTINGS, HEADERS of stream 1, …
 *
 * Source: RFC 7540 section 3.2 (gone in RFC 9113); RFC 7541 for the header block, which is all literals
 */
import type { RequestHead } from "../../core/net/http1-head.ts";
import { isHopByHop } from "./headers.ts";

/** What the server is to be given; undefined: more has to come first; "": this is no HTTP/2. */
export type H2cBegin = (came: Buffer) => Buffer | undefined | "";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const FRAME_HEAD_BYTES = 9, FRAME_BYTES_MAX = 16_384;
const HEADERS = 1, SETTINGS = 4, END_STREAM_AND_HEADERS = 5;

/** Undefined: it has a body, or is not asked for as it must be. Then the request is one like any. */
export function h2cUpgrade({ method, target, fields, framing, named }: RequestHead, authority: string): H2cBegin | undefined {
  if (framing !== 0 || !named?.has("http2-settings") || fields.filter(({ name }) => name === "http2-settings").length !== 1) return undefined;
  const passed = fields.filter(({ name }) => name !== "host" && !isHopByHop(name) && !named.has(name)).map(({ name, value }) => literal(name, value));
  const block = Buffer.concat([literal(":method", method), literal(":scheme", "http"), literal(":authority", authority), literal(":path", target), ...passed]);
  if (block.length > FRAME_BYTES_MAX) return undefined;
  const request = Buffer.concat([Buffer.from([0, block.length >> 8, block.length & 0xff, HEADERS, END_STREAM_AND_HEADERS, 0, 0, 0, 1]), block]);
  return (came) => {
    const shared = Math.min(came.length, PREFACE.length);
    if (!came.subarray(0, shared).equals(PREFACE.subarray(0, shared))) return "";
    if (came.length < PREFACE.length + FRAME_HEAD_BYTES) return undefined;
    const length = came.readUIntBE(PREFACE.length, 3), end = PREFACE.length + FRAME_HEAD_BYTES + length;
    if (came[PREFACE.length + 3] !== SETTINGS || length > FRAME_BYTES_MAX) return "";
    return came.length < end ? undefined : Buffer.concat([came.subarray(0, end), request, came.subarray(end)]);
  };
}

/** A header that neither side remembers. */
function literal(name: string, value: string): Buffer {
  const [key, content] = [name, value].map((text) => Buffer.from(text, "latin1")) as [Buffer, Buffer];
  return Buffer.concat([Buffer.from([0, ...length(key.length)]), key, Buffer.from(length(content.length)), content]);
}

/** Source: RFC 7541 section 5.1, with a prefix of 7 bits */
function length(count: number): number[] {
  if (count < 127) return [count];
  const bytes = [127];
  let left = count - 127;
  for (; left >= 128; left >>= 7) bytes.push(0x80 | (left & 0x7f));
  return [...bytes, left];
}
