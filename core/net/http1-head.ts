/**
 * The heads of HTTP/1 messages as a proxy reads them, which passes on what it does not change. Strict where two readers could understand two things: that is how
 * requests are smuggled past the first of them. Pure.
 *
 *   readRequestHead("GET / HTTP/1.1\r\nHost: x\r\n")      the lines up to the empty one; a number is the status to refuse it with
 *   readResponseHead("HTTP/1.1 200 OK\r\n…")              throws: the endpoint speaks no HTTP
 *
 * Source: RFC 9112 sections 2 to 6; RFC 9110 section 5
 */
export interface Field {
  /** In lower case. */
  readonly name: string;
  /** Without the white space around it. */
  readonly value: string;
  /** As it came, without its end. */
  readonly line: string;
}

/** How a body ends: after so many bytes, with its last chunk, or with the connection. */
export type Framing = number | "chunked" | "close";

export interface RequestHead {
  readonly method: string;
  readonly target: string;
  /** 0 of HTTP/1.0, 1 of HTTP/1.1. */
  readonly minor: number;
  readonly fields: readonly Field[];
  readonly framing: number | "chunked";
  /** Its Content-Length, as it came. */
  readonly length: string | undefined;
  /** Undefined: HTTP/1.0 may do without. */
  readonly host: string | undefined;
  readonly upgrade: string | undefined;
  readonly expectsContinue: boolean;
  /** No other request follows. */
  readonly closes: boolean;
  /** What `Connection` names, if that is more than "close" and "keep-alive". */
  readonly named: ReadonlySet<string> | undefined;
}

export interface ResponseHead {
  readonly status: number;
  readonly statusText: string;
  readonly fields: readonly Field[];
  readonly framing: Framing;
  /** Its Content-Length: an answer to HEAD may have one, and no body. */
  readonly length: string | undefined;
  readonly closes: boolean;
  readonly named: ReadonlySet<string> | undefined;
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const REQUEST_LINE = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+) ([\x21-\x7e\x80-\xff]+) HTTP\/1\.([01])$/;
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: (.*))?$/;
/** What no value may have. The rest of Latin-1 is whatever the two ends make of it. */
const CONTROLS = /[\0-\x08\x0a-\x1f\x7f]/;
const LENGTH = /^\d{1,15}$/;

/** Names in lower case by what they were: there are few that everyone sends. Only tokens are in it. */
const KNOWN_MAX = 1000;

export type ReadFields = (text: string, at: number) => Field[] | undefined;

/** A reader that knows the names it has seen. It finds no fields where a line is none. */
export function fieldReader(): ReadFields {
  const known = new Map<string, string>();
  const lowerCase = (given: string): string | undefined => {
    const found = known.get(given);
    if (found !== undefined) return found;
    if (!TOKEN.test(given)) return undefined; // also one with a space before its colon, and a folded line
    const name = given.toLowerCase();
    if (known.size < KNOWN_MAX && given.length < 64) known.set(given, name);
    return name;
  };
  return (text, from) => {
    const fields: Field[] = [];
    for (let at = from; at < text.length;) {
      const found = text.indexOf("\r\n", at), end = found < 0 ? text.length : found;
      const line = text.slice(at, end), colon = line.indexOf(":");
      const name = colon > 0 ? lowerCase(line.slice(0, colon)) : undefined;
      if (name === undefined || CONTROLS.test(line)) return undefined;
      fields.push({ name, value: line.slice(colon + 1).trim(), line });
      at = end + 2;
    }
    return fields;
  };
}

export function readRequestHead(text: string, readFields: ReadFields): RequestHead | 400 | 417 | 501 | 505 {
  const end = text.indexOf("\r\n");
  const first = end < 0 ? text : text.slice(0, end);
  const match = REQUEST_LINE.exec(first);
  if (!match) return / HTTP\/\d\.\d$/.test(first) && !/ HTTP\/1\.[01]$/.test(first) ? 505 : 400;
  const fields = readFields(text, first.length + 2);
  if (!fields) return 400;
  const minor = match[3] === "1" ? 1 : 0;
  let host: string | undefined, length: string | undefined, coding: string | undefined, connection: string | undefined, upgrade: string | undefined, expect: string | undefined;
  for (const { name, value } of fields) {
    switch (name) {
      case "host":
        if (host !== undefined) return 400;
        host = value;
        break;
      case "content-length":
        if (length !== undefined || !LENGTH.test(value)) return 400;
        length = value;
        break;
      case "transfer-encoding":
        if (coding !== undefined) return 400;
        coding = value.toLowerCase();
        break;
      case "connection": connection = connection === undefined ? value : `${connection},${value}`; break;
      case "upgrade": upgrade = value; break;
      case "expect": expect = value.toLowerCase(); break;
      default:
    }
  }
  if (coding !== undefined && (length !== undefined || minor === 0)) return 400; // one of the two would be wrong
  if (coding !== undefined && coding !== "chunked") return 501;
  if (host === undefined && minor === 1) return 400;
  if (expect !== undefined && expect !== "100-continue") return 417;
  const tokens = tokensOf(connection);
  return {
    method: match[1]!, target: match[2]!, minor, fields, framing: coding === undefined ? Number(length ?? 0) : "chunked", length, host, upgrade: tokens?.has("upgrade") ? upgrade : undefined,
    expectsContinue: expect !== undefined && minor === 1, closes: tokens?.has("close") ?? false, named: tokens,
  };
}

/** `method` is that of the request: an answer to HEAD has no body. Lines may end without a carriage return, and go on in the next one. */
export function readResponseHead(given: string, method: string, readFields: ReadFields): ResponseHead {
  const text = given.replace(/\r?\n[\t ]+/g, " ").replace(/(?<!\r)\n/g, "\r\n");
  const end = text.indexOf("\r\n");
  const first = end < 0 ? text : text.slice(0, end);
  const match = STATUS_LINE.exec(first);
  const fields = match && !CONTROLS.test(first) ? readFields(text, first.length + 2) : undefined;
  if (!match || !fields) throw new Error(`malformed HTTP response ${JSON.stringify(first.slice(0, 80))}`);
  const status = Number(match[2]);
  let length: string | undefined, coding: string | undefined, connection: string | undefined;
  for (const { name, value } of fields) {
    if (name === "content-length") {
      if (!LENGTH.test(value) || (length !== undefined && Number(length) !== Number(value))) throw new Error(`bad Content-Length ${JSON.stringify(value)}`);
      length = value;
    } else if (name === "transfer-encoding") {
      if (coding !== undefined || value.toLowerCase() !== "chunked") throw new Error(`unsupported transfer encoding: ${JSON.stringify(value)}`);
      coding = value;
    } else if (name === "connection") connection = connection === undefined ? value : `${connection},${value}`;
  }
  const tokens = tokensOf(connection);
  const hasBody = method !== "HEAD" && status >= 200 && status !== 204 && status !== 304;
  return {
    status, statusText: match[3] ?? "", fields, named: tokens, length,
    framing: !hasBody ? 0 : coding !== undefined ? "chunked" : length !== undefined ? Number(length) : "close",
    closes: match[1] === "0" || (tokens?.has("close") ?? false) || (coding !== undefined && length !== undefined),
  };
}

/** What `Connection` names is for one hop only. */
function tokensOf(value: string | undefined): ReadonlySet<string> | undefined {
  return value === undefined || /^keep-alive$/i.test(value) ? undefined : new Set(value.split(",").map((token) => token.trim().toLowerCase()));
}
