/**
 * The one request of a connection whose ends have agreed on HTTP/2, as a probe asks it: no more of the body than is wanted of it. Faults read as Go prints them.
 *
 * Source: golang.org/x/net/http2 transport.go (encodeHeaders, checkConnHeaders), errors.go
 */
import * as http2 from "node:http2";
import type { TLSSocket } from "node:tls";
import { goQuote } from "../../../core/api/meta/go-quote.ts";
import { BODY_BYTES_MAX, type HttpAnswer } from "./http-answer.ts";

type Header = readonly [name: string, value: string];

export interface Http2Request { readonly url: URL; readonly target: string; readonly authority: string; readonly headers: readonly Header[] }

/** `head`: without the body, which is on its way; `broken`: there will be no `whole`. */
export interface Http2Told { head(answer: HttpAnswer): void; whole(answer: HttpAnswer): void; broken(fault: string): void }

/** What HTTP/2 has no place for, or says otherwise. */
const NOT_SENT: readonly string[] = ["host", "content-length", "connection", "proxy-connection", "transfer-encoding", "upgrade", "keep-alive"];
/** By number. */
const ERRORS: readonly string[] = [
  "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED", "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
  "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
];

/** Returns what ends it. */
export function http2Get(socket: TLSSocket, request: Http2Request, told: Http2Told): () => void {
  const refused = forbiddenHeader(request.headers);
  if (refused) {
    told.broken(refused);
    return () => undefined;
  }
  const session = http2.connect(request.url.origin, { createConnection: () => socket, settings: { enablePush: false } });
  let stream: http2.ClientHttp2Stream;
  try {
    stream = session.request(fieldsOf(request), { endStream: true });
  } catch (error) { // no header that could be sent
    told.broken(`http2: ${(error as Error).message}`);
    return () => session.destroy();
  }
  const parts: Buffer[] = [];
  let size = 0;
  let answer: HttpAnswer | undefined;
  const done = (): void => { if (answer) told.whole({ ...answer, body: Buffer.concat(parts).toString("utf8", 0, BODY_BYTES_MAX) }); };
  stream.on("response", (fields) => told.head(answer = { status: Number(fields[":status"]), body: "", location: fields.location }));
  stream.on("data", (chunk: Buffer) => {
    parts.push(chunk);
    size += chunk.length;
    if (size >= BODY_BYTES_MAX) done();
  });
  stream.on("end", () => { if (!stream.rstCode) done(); });
  const nameOf = (code: number): string => ERRORS[code] ?? `unknown error code 0x${code.toString(16)}`;
  session.on("goaway", (code, last, debug) => { if (code !== 0) told.broken(`http2: server sent GOAWAY and closed the connection; LastStreamID=${last}, ErrCode=${nameOf(code)}, debug=${goQuote(String(debug ?? ""))}`); });
  stream.on("error", (error: NodeJS.ErrnoException) => told.broken(error.code === "ERR_HTTP2_STREAM_ERROR" ? `stream error: stream ID 1; ${nameOf(stream.rstCode ?? 0)}; received from peer` : "unexpected EOF"));
  stream.on("close", () => told.broken("unexpected EOF"));
  session.on("error", () => told.broken("unexpected EOF"));
  return () => session.destroy();
}

function fieldsOf({ target, authority, headers }: Http2Request): http2.OutgoingHttpHeaders {
  const fields: Record<string, string> = { ":method": "GET", ":path": target, ":authority": headers.find(([name]) => name === "Host")?.[1] || authority };
  for (const name of new Set(headers.map(([own]) => own))) {
    const values = headers.filter(([own]) => own === name).map(([, value]) => value.trim());
    if (name === "User-Agent") { if (values[0]) fields["user-agent"] = values[0]; }
    else if (!NOT_SENT.includes(name.toLowerCase())) fields[name.toLowerCase()] = values.join(name === "Cookie" ? "; " : ", "); // which is the same
  }
  return fields;
}

/** What asks for something of a connection that this one cannot be. */
function forbiddenHeader(headers: readonly Header[]): string | undefined {
  for (const [header, harmless] of [["Upgrade", ["", "chunked"]], ["Transfer-Encoding", ["", "chunked"]], ["Connection", ["", "close", "keep-alive"]]] as const) {
    const values = headers.filter(([name]) => name === header).map(([, value]) => value);
    const looked = header === "Upgrade" ? values.slice(0, 1) : values;
    const isFine = looked.length === 0 || (looked.length === 1 && harmless.some((one) => one === (header === "Connection" ? looked[0]!.toLowerCase() : looked[0])));
    if (!isFine) return `http2: invalid ${header} request header: [${values.map(goQuote).join(" ")}]`;
  }
  return undefined;
}
