/**
 * The bytes of an HTTP/1.x answer as a probe reads them: the whole head, and up to 10 kB of the body without its framing. Faults read as Go prints them.
 *
 *   const { answer, whole } = readAnswer(bytes, ended);     again with more bytes until `whole`
 *
 * Source: go 1.26 src/net/http/{response,transfer}.go, src/net/http/internal/chunked.go
 */
import { goQuote } from "../../../core/api/meta/go-quote.ts";
import { headEnd } from "../../../core/net/head-end.ts";

export interface HttpAnswer {
  readonly status: number;
  readonly body: string;
  readonly location: string | undefined;
  /** Why the body could not be read to its end, or to the end of what is wanted of it. */
  readonly bodyFault?: string | undefined;
}

/** Of a body, no more than this is wanted. */
export const BODY_BYTES_MAX = 10 * 1024;
const HEAD_BYTES_MAX = 64 * 1024;
const CHUNK_LINE_BYTES_MAX = 4096;
const CHUNK_DIGITS_MAX = 16;
const STATUS_LINE_BYTES = 16;
const BROKEN = "net/http: HTTP/1.x transport connection broken:";

/** `answer` is undefined until the head is there. `ended`: there is no more. Throws an Error when the head is no head. */
export function readAnswer(bytes: Buffer, ended: boolean): { readonly answer: HttpAnswer | undefined; readonly whole: boolean } {
  const final = finalAnswer(bytes);
  const at = headEnd(final);
  checkHead(final, at, ended);
  if (at < 0) return { answer: undefined, whole: false };
  const [first = "", ...lines] = final.toString("latin1", 0, at).split(/\r?\n/);
  const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(first)![1]);
  const header = (name: string): string | undefined => lines.find((line) => line.toLowerCase().startsWith(`${name}:`))?.slice(name.length + 1).trim();
  const { data, rest } = bodyOf(final.subarray(at), { status, length: header("content-length"), chunked: /\bchunked\b/i.test(header("transfer-encoding") ?? "") });
  const enough = rest === "none" || data.length >= BODY_BYTES_MAX;
  const fault = enough || rest === "more" || rest === "until it ends" ? undefined : rest;
  const bodyFault = fault ?? (ended && !enough && rest === "more" ? "unexpected EOF" : undefined);
  return { answer: { status, body: data.toString("utf8", 0, BODY_BYTES_MAX), location: header("location"), bodyFault }, whole: ended || enough || fault !== undefined };
}

function checkHead(bytes: Buffer, end: number, ended: boolean): void {
  const line = bytes.indexOf("\n");
  const tooLong = end < 0 && bytes.length > HEAD_BYTES_MAX;
  if (line >= 0 || (ended && !tooLong && bytes.length > 0)) {
    const first = bytes.toString("latin1", 0, line < 0 ? bytes.length : line).replace(/\r$/, "");
    if (!/^HTTP\/1\.[01] \d{3}/.test(first)) throw new Error(`${BROKEN} malformed HTTP response ${goQuote(first)}`);
  }
  if (tooLong) throw new Error(`net/http: server response headers exceeded ${HEAD_BYTES_MAX} bytes; aborted`);
}

/** Without "100 Continue" and its like in front, which say nothing. */
function finalAnswer(bytes: Buffer): Buffer {
  let rest = bytes;
  while (/^HTTP\/1\.[01] 1\d\d/.test(rest.toString("latin1", 0, STATUS_LINE_BYTES))) {
    const at = headEnd(rest);
    if (at < 0) break;
    rest = rest.subarray(at);
  }
  return rest;
}

/** What is there of a body, and what is to come: "none", "more", what comes "until it ends", or the fault that ends it. */
interface Body { readonly data: Buffer; readonly rest: string }

function bodyOf(raw: Buffer, { status, length, chunked }: { readonly status: number; readonly length: string | undefined; readonly chunked: boolean }): Body {
  if (status === 204 || status === 304) return { data: Buffer.alloc(0), rest: "none" };
  if (chunked) return unchunk(raw);
  if (length === undefined) return { data: raw, rest: "until it ends" };
  if (!/^\d+$/.test(length)) throw new Error(`${BROKEN} bad Content-Length ${goQuote(length)}`);
  return { data: raw.subarray(0, Number(length)), rest: raw.length >= Number(length) ? "none" : "more" };
}

function unchunk(bytes: Buffer): Body {
  const parts: Buffer[] = [];
  const result = (rest: string): Body => ({ data: Buffer.concat(parts), rest });
  for (let at = 0; ; ) {
    const end = bytes.indexOf("\n", at);
    if ((end < 0 ? bytes.length : end) - at >= CHUNK_LINE_BYTES_MAX) return result("header line too long");
    if (end < 0) return result("more");
    const size = chunkSize(bytes.toString("latin1", at, end));
    if (typeof size === "string") return result(size);
    if (size === 0) return result(trailerEnds(bytes.subarray(end + 1)) ? "none" : "more");
    parts.push(bytes.subarray(end + 1, end + 1 + size));
    at = end + 1 + size;
    const behind = bytes.toString("latin1", at, at + 2);
    if (!"\r\n".startsWith(behind)) return result("malformed chunked encoding");
    if (behind.length < 2) return result("more");
    at += 2;
  }
}

/** A chunk's line without its "\n" → its size, or what is wrong with it. */
function chunkSize(line: string): number | string {
  if (!line.endsWith("\r")) return "chunked line ends with bare LF";
  const digits = line.split(";")[0]!.trimEnd();
  if (digits === "") return "empty hex number for chunk length";
  if (!/^[0-9a-f]+$/i.test(digits)) return "invalid byte in chunk length";
  if (digits.length > CHUNK_DIGITS_MAX) return "http chunk length too large";
  return Number.parseInt(digits, 16);
}

/** An empty line, perhaps with fields before it. */
function trailerEnds(bytes: Buffer): boolean { return bytes.toString("latin1", 0, 2) === "\r\n" || bytes.includes("\r\n\r\n"); }
