/**
 * The head of a response as Go's client reads it: what it takes, what it makes of it, and its words for what it does not take, which users see.
 *
 *   readHead("HTTP/1.1 200 OK\r\nContent-Length: 2")      { status: 200, …, framing: { type: "length", length: 2 } }
 *   readHead("SSH-2.0-OpenSSH")                            throws HeadError: malformed HTTP response "SSH-2.0-OpenSSH"
 *
 * Source: Go net/http (ReadResponse, transfer.go), net/textproto (ReadMIMEHeader)
 */
export type HeaderPairs = readonly (readonly [name: string, value: string])[];

export interface Head { readonly status: number; readonly statusText: string; readonly headers: HeaderPairs; readonly framing: Framing; /** Names of headers that are to follow the body. */ readonly trailerNames: readonly string[] }

/** Undefined length: until the connection ends. */
export type Framing = { readonly type: "length"; readonly length: number | undefined } | { readonly type: "chunked" };

export class HeadError extends Error { override readonly name = "HeadError"; }

/** Also with spaces in it, which go no further. */
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z ]+$/;
const CONTROLS = /[\0-\x08\x0a-\x1f\x7f]/;
const QUOTED_MAX = 80;

/** `text`: all of it, in Latin-1. `method` is that of the request: an answer to HEAD has no body. */
export function readHead(text: string, method = "GET"): Head {
  const lines = text.split(/\r?\n/);
  const { status, statusText, isOld } = statusLine(lines[0]!);
  const headers = fields(lines.slice(1));
  const values = (name: string): string[] => headers.filter(([one]) => one.toLowerCase() === name).map(([, value]) => value);
  const isChunked = chunked(values("transfer-encoding"), isOld);
  const length = contentLength(values("content-length"));
  const isEmpty = method === "HEAD" || (status >= 100 && status < 200) || status === 204 || status === 304;
  const trailerNames = isChunked ? values("trailer").flatMap((value) => value.split(",").map((name) => canonical(name.trim()))).filter((name) => name !== "") : [];
  return {
    status, statusText, trailerNames,
    headers: once(headers, isChunked && !isEmpty),
    framing: isEmpty ? { type: "length", length: 0 } : isChunked ? { type: "chunked" } : { type: "length", length },
  };
}

/** Throws HeadError as soon as the first line cannot begin an answer. */
export function statusLine(line: string): { readonly status: number; readonly statusText: string; readonly isOld: boolean } {
  const space = line.indexOf(" ");
  if (space < 0) throw new HeadError(`malformed HTTP response ${quoted(line)}`);
  const rest = line.slice(space + 1).replace(/^ +/, "");
  const code = rest.split(" ", 1)[0]!;
  if (!/^(\d{3}|\+\d\d)$/.test(code)) throw new HeadError(`malformed HTTP status code ${quoted(code)}`);
  const version = /^HTTP\/(\d)\.(\d)$/.exec(line.slice(0, space));
  if (!version) throw new HeadError(`malformed HTTP version ${quoted(line.slice(0, space))}`);
  return { status: Number(code), statusText: rest.slice(code.length + 1), isOld: version[1] === "0" || (version[1] === "1" && version[2] === "0") };
}

function fields(lines: readonly string[]): [string, string][] {
  const [first = ""] = lines;
  if (/^[ \t]/.test(first)) throw new HeadError(`malformed MIME header initial line: ${quoted(first.trimEnd().slice(0, QUOTED_MAX))}`);
  const found: [string, string][] = [];
  for (let i = 0; i < lines.length && lines[i] !== ""; i++) {
    let line = withoutSpaceBehind(lines[i]!);
    if (!line.includes(":")) throw new HeadError(`malformed MIME header: missing colon: ${quoted(line)}`);
    while (/^[ \t]/.test(lines[i + 1] ?? "")) line += ` ${lines[++i]!.trim()}`;
    const colon = line.indexOf(":"), name = line.slice(0, colon), value = line.slice(colon + 1);
    if (!NAME.test(name) || CONTROLS.test(value)) throw new HeadError(`malformed MIME header line: ${quoted(line)}`);
    found.push([name, value.trim()]);
  }
  return found;
}

/** Gone back from the end: an expression would begin at each space of a long row of them, and go to its end each time. */
function withoutSpaceBehind(line: string): string {
  let end = line.length;
  while (line[end - 1] === " " || line[end - 1] === "\t") end--;
  return line.slice(0, end);
}

function chunked(codings: readonly string[], isOld: boolean): boolean {
  if (codings.length === 0 || isOld) return false;
  if (codings.length > 1) throw new HeadError(`too many transfer encodings: [${codings.map(quoted).join(" ")}]`);
  if (codings[0]!.toLowerCase() !== "chunked") throw new HeadError(`unsupported transfer encoding: ${quoted(codings[0]!)}`);
  return true;
}

function contentLength(lengths: readonly string[]): number | undefined {
  const [first] = lengths;
  if (first === undefined) return undefined;
  if (lengths.some((one) => one !== first)) throw new HeadError(`http: message cannot contain multiple Content-Length headers; got [${lengths.map(quoted).join(" ")}]`);
  if (first === "") throw new HeadError('invalid empty Content-Length ""');
  if (!/^\d{1,19}$/.test(first)) throw new HeadError(`bad Content-Length ${quoted(first)}`);
  return Number(first);
}

/** Its length is told once, and not where it is told by chunks. */
function once(headers: HeaderPairs, isChunked: boolean): HeaderPairs {
  let isTold = isChunked;
  return headers.filter(([name]) => {
    if (name.toLowerCase() !== "content-length") return true;
    const isFirst = !isTold;
    isTold = true;
    return isFirst;
  });
}

/** As Go writes the names of headers. */
export function canonical(name: string): string { return name.toLowerCase().replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase()); }

/** As Go's %q does with bytes. */
function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, "\\$&").replace(/[^\x20-\x7e]/g, (sign) => SHORT[sign] ?? `\\x${sign.charCodeAt(0).toString(16).padStart(2, "0")}`)}"`;
}

const SHORT: Readonly<Record<string, string>> = { "\x07": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v" };
