/**
 * What a client says in SPDY/3.1, read before the container runtime reads it: containerd and CRI-O make room for as many headers and settings as they are told there will be, and thirty bytes
 * that promise two thousand million took a node all its memory. What no client of Kubernetes says is not passed on.
 *
 *   const gate = spdyGate();
 *   runtime.write(gate(chunk));      as much of it as is known to be right; throws for what is not
 *
 * Source: SPDY draft 3.1 sections 2.2 and 2.6; moby/spdystream v0.5.1 spdy/{read,types,dictionary}.go, whose limits others of its versions lack
 */
import { constants, inflateRawSync } from "node:zlib";

const VERSION = 0x8003;
const SYN_STREAM = 1, SYN_REPLY = 2, SETTINGS = 4, HEADERS = 8;
/** With RST_STREAM, PING, GOAWAY and WINDOW_UPDATE: all there are, but CREDENTIAL, which nobody sends. */
const TYPES: ReadonlySet<number> = new Set([SYN_STREAM, SYN_REPLY, 3, SETTINGS, 6, 7, HEADERS, 9]);
/** Where the header block begins, behind the ids. */
const BLOCK_AT: ReadonlyMap<number, number> = new Map([[SYN_STREAM, 10], [SYN_REPLY, 4], [HEADERS, 4]]);
/** A client's have some hundred bytes. */
const CONTROL_BYTES_MAX = 16 * 1024, INFLATED_BYTES_MAX = 64 * 1024;
const HEADERS_MAX = 1000;

/** Source: RFC 1950 section 2.2, RFC 1951 section 3.2.4 */
const WITH_DICTIONARY = 0x20, WINDOW_BYTES = 32 * 1024, LAST_BLOCK = Buffer.from([1, 0, 0, 0xff, 0xff]);
const DICTIONARY_SUM = Buffer.from("e3c6a7c2", "hex");

export function spdyGate(): (chunk: Uint8Array) => Buffer {
  const inflated = inflater();
  let held: Buffer = Buffer.alloc(0); // what has come of a frame that is not known to be right yet
  let dataLeft = 0; // of a data frame, which goes through as it comes

  function check(frame: Buffer): void {
    const type = frame.readUInt16BE(2), payload = frame.subarray(8), at = BLOCK_AT.get(type);
    if (type === SETTINGS && (payload.length < 4 || payload.length !== 4 + 8 * payload.readUInt32BE(0))) throw new Error("SPDY settings that are not as many as they say");
    if (at === undefined) return;
    if (payload.length < at) throw new Error("a SPDY frame without an id");
    checkHeaders(inflated(payload.subarray(at)));
  }

  return (chunk) => {
    const bytes = Buffer.concat([held, chunk]);
    let at = Math.min(dataLeft, bytes.length);
    dataLeft -= at;
    while (dataLeft === 0 && bytes.length >= at + 8) {
      const length = bytes.readUIntBE(at + 5, 3);
      if ((bytes[at]! & 0x80) === 0) {
        const end = at + 8 + length;
        dataLeft = Math.max(0, end - bytes.length);
        at = Math.min(end, bytes.length);
        continue;
      }
      if (bytes.readUInt16BE(at) !== VERSION || length > CONTROL_BYTES_MAX || !TYPES.has(bytes.readUInt16BE(at + 2))) throw new Error("no frame of SPDY/3.1 that a client sends");
      if (bytes.length < at + 8 + length) break;
      check(bytes.subarray(at, at + 8 + length));
      at += 8 + length;
    }
    held = Buffer.from(bytes.subarray(at));
    return bytes.subarray(0, at);
  };
}

/** A count, then so many names and values, and no more: what is left over would be the beginning of the next block to who reads on. */
function checkHeaders(block: Buffer): void {
  const count = block.length >= 4 ? block.readUInt32BE(0) : HEADERS_MAX + 1;
  let at = 4, strings = 0;
  for (; strings < 2 * Math.min(count, HEADERS_MAX) && at + 4 <= block.length; strings++) at += 4 + block.readUInt32BE(at);
  if (strings !== 2 * count || at !== block.length) throw new Error("SPDY headers that are not as many, or as long, as they say");
}

/**
 * All blocks of a connection are one zlib stream, of which each is read by itself, with what came before as its dictionary: so each must end where a byte and a block of the stream end, as those
 * of a client do that has flushed. Then a last block of nothing fits behind it, to its last byte, and changes nothing.
 */
function inflater(): (block: Buffer) => Buffer {
  let before: Buffer | undefined;
  return (block) => {
    const at = before ? 0 : (block[1] ?? 0) & WITH_DICTIONARY ? 6 : 2;
    if (!before && (block.length < at || block.readUInt16BE(0) % 31 !== 0 || (block[0]! & 0xf) !== 8 || (at === 6 && !block.subarray(2, 6).equals(DICTIONARY_SUM)))) throw new Error("no zlib stream");
    const dictionary = before ?? (at === 6 ? SPDY_DICTIONARY : Buffer.alloc(0)), whole = Buffer.concat([block.subarray(at), LAST_BLOCK]);
    const options = { maxOutputLength: INFLATED_BYTES_MAX, ...(dictionary.length > 0 ? { dictionary } : {}) };
    const { buffer, engine } = inflateRawSync(whole, { ...options, info: true }) as unknown as { readonly buffer: Buffer; readonly engine: { readonly bytesWritten: number } };
    const open = inflateRawSync(block.subarray(at), { ...options, finishFlush: constants.Z_SYNC_FLUSH });
    if (engine.bytesWritten !== whole.length || !open.equals(buffer)) throw new Error("a SPDY header block that was not flushed");
    before = Buffer.from(Buffer.concat([dictionary, buffer]).subarray(-WINDOW_BYTES));
    return buffer;
  };
}

const WORDS = [
  "options|head|post|put|delete|trace|accept|accept-charset|accept-encoding|accept-language|accept-ranges|age|allow|authorization|cache-control|connection|content-base|",
  "content-encoding|content-language|content-length|content-location|content-md5|content-range|content-type|date|etag|expect|expires|from|host|if-match|if-modified-since|",
  "if-none-match|if-range|if-unmodified-since|last-modified|location|max-forwards|pragma|proxy-authenticate|proxy-authorization|range|referer|retry-after|server|te|",
  "trailer|transfer-encoding|upgrade|user-agent|vary|via|warning|www-authenticate|method|get|status|200 OK|version|HTTP/1.1|url|public|set-cookie|keep-alive|origin",
].join("").split("|");
const TEXT = "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

/** What the zlib stream of each connection takes as said before. */
export const SPDY_DICTIONARY = Buffer.concat([...WORDS.flatMap((word) => [Buffer.from([0, 0, 0, word.length]), Buffer.from(word)]), Buffer.from(TEXT, "latin1")]);
