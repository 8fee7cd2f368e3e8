/**
 * A part of a document, or several, as Range asks for them.
 *
 * Source: go net/http/fs.go serveContent, parseRange; RFC 9110 section 14
 */
import { raw, type RawAnswer } from "./answer.ts";

interface ByteRange { readonly start: number; readonly length: number }

interface Document { readonly bytes: Uint8Array; readonly contentType: string; readonly etag: string; readonly headers: Readonly<Record<string, string>> }

export interface RangeQuestion {
  readonly range: string;
  /** If-Range: of which document a part is wanted; of another one all is. */
  readonly of: string | undefined;
  /** Between the parts of an answer with several. */
  readonly boundary: () => string;
}

/** Undefined: all of it is the answer. */
export function partOf({ bytes, contentType, etag, headers }: Document, { range, of, boundary }: RangeQuestion): RawAnswer | undefined {
  if (of !== undefined && of !== "" && of !== etag && of !== headers["last-modified"]) return undefined;
  const ranges = rangesOf(range, bytes.length);
  if (typeof ranges === "string") return unsatisfiable(ranges, bytes.length, headers);
  if (ranges.length === 0 || ranges.reduce((sum, { length }) => sum + length, 0) > bytes.length) return undefined;
  const [first] = ranges;
  if (ranges.length === 1) return raw(cut(bytes, first!), contentType, 206, { ...headers, "content-range": contentRange(first!, bytes.length) });
  const mark = boundary();
  const parts = ranges.flatMap((one, i) => [Buffer.from(`${i === 0 ? "" : "\r\n"}--${mark}\r\nContent-Range: ${contentRange(one, bytes.length)}\r\nContent-Type: ${contentType}\r\n\r\n`), cut(bytes, one)]);
  return raw(Buffer.concat([...parts, Buffer.from(`\r\n--${mark}--\r\n`)]), `multipart/byteranges; boundary=${mark}`, 206, headers);
}

const NOTHING_THERE = "invalid range: failed to overlap";

/** What is wrong with it, where something is. */
function rangesOf(text: string, size: number): readonly ByteRange[] | string {
  if (!text.startsWith("bytes=")) return "invalid range";
  const ranges: ByteRange[] = [];
  let isBeyond = false;
  for (const part of text.slice("bytes=".length).split(",").map((one) => one.trim()).filter((one) => one !== "")) {
    const [, from, to] = /^(\d*)[ \t]*-[ \t]*(\d*)$/.exec(part) ?? [];
    if (from === undefined || to === undefined || (from === "" && to === "")) return "invalid range";
    if (from === "") {
      const length = Math.min(Number(to), size);
      ranges.push({ start: size - length, length });
    } else if (Number(from) >= size) isBeyond = true;
    else if (to !== "" && Number(to) < Number(from)) return "invalid range";
    else ranges.push({ start: Number(from), length: (to === "" ? size : Math.min(Number(to) + 1, size)) - Number(from) });
  }
  return isBeyond && ranges.length === 0 ? NOTHING_THERE : ranges;
}

function unsatisfiable(problem: string, size: number, { etag: _, "last-modified": __, "accept-ranges": ___, ...headers }: Readonly<Record<string, string>>): RawAnswer {
  return raw(`${problem}\n`, "text/plain; charset=utf-8", 416, { ...headers, "x-content-type-options": "nosniff", ...(problem === NOTHING_THERE ? { "content-range": `bytes */${size}` } : {}) });
}

function cut(bytes: Uint8Array, { start, length }: ByteRange): Uint8Array { return bytes.subarray(start, start + length); }

function contentRange({ start, length }: ByteRange, size: number): string { return `bytes ${start}-${start + length - 1}/${size}`; }
