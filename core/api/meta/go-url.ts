/**
 * URLs as Go's net/url reads them, which is not how browsers do: nothing is repaired, and what is wrong is said in Go's words.
 *
 * Source: Go's net/url Parse, ParseRequestURI, URL.EscapedPath, ParseQuery
 */
import { goQuote } from "./go-quote.ts";
import { AddressError, parseAddress, type Address } from "./go-netip.ts";

export interface GoUrl {
  readonly scheme: string;
  /** With the port and, for IPv6, with brackets; decoded. */
  readonly host: string;
  readonly hostname: string;
  readonly port: string;
  readonly escapedPath: string;
  readonly rawQuery: string;
  /** What comes after the scheme of a URL without slashes. */
  readonly opaque: string;
  /** Undefined: there is no @, not even one with nothing before it. */
  readonly user: string | undefined;
  readonly fragment: string;
}

/** The message is Go's: `parse "http://[::1": missing ']' in host`. */
export class UrlError extends Error { override readonly name = "UrlError"; }

/** `request`: as in an HTTP request line, absolute or with an absolute path. Throws UrlError. */
export function parseUrl(text: string, { request = false }: { readonly request?: boolean } = {}): GoUrl {
  const hash = request ? -1 : text.indexOf("#");
  const whole = hash < 0 ? text : text.slice(0, hash);
  try {
    const url = parseWhole(whole, request);
    if (hash < 0) return url;
    checkEscapes(text.slice(hash + 1));
    return { ...url, fragment: decode(text.slice(hash + 1)) };
  } catch (error) {
    if (!(error instanceof UrlError)) throw error;
    throw new UrlError(`parse ${goQuote(whole)}: ${error.message}`);
  }
}

function parseWhole(text: string, request: boolean): GoUrl {
  if (/[\u0000-\u001f\u007f]/.test(text)) throw new UrlError("net/url: invalid control character in URL");
  if (text === "" && request) throw new UrlError("empty url");
  const empty: GoUrl = { scheme: "", host: "", hostname: "", port: "", escapedPath: "", rawQuery: "", opaque: "", user: undefined, fragment: "" };
  if (text === "*") return { ...empty, escapedPath: "*" };
  const { scheme, rest: afterScheme } = schemeOf(text);
  const mark = afterScheme.indexOf("?");
  const rawQuery = mark < 0 ? "" : afterScheme.slice(mark + 1);
  let rest = mark < 0 ? afterScheme : afterScheme.slice(0, mark);
  if (!rest.startsWith("/")) {
    if (scheme !== "") return { ...empty, scheme, rawQuery, opaque: rest };
    if (request) throw new UrlError("invalid URI for request");
    if (rest.split("/", 1)[0]!.includes(":")) throw new UrlError("first path segment in URL cannot contain colon");
  }
  let host = "";
  let user: string | undefined;
  if ((scheme !== "" || (!request && !rest.startsWith("///"))) && rest.startsWith("//")) {
    const slash = rest.indexOf("/", 2);
    const authority = slash < 0 ? rest.slice(2) : rest.slice(2, slash);
    rest = slash < 0 ? "" : rest.slice(slash);
    host = hostOf(scheme, authority);
    if (authority.includes("@")) user = authority.slice(0, authority.lastIndexOf("@"));
  }
  checkEscapes(rest);
  return { ...empty, scheme, host, ...splitHost(host), escapedPath: escapedPath(rest), rawQuery, user };
}

function schemeOf(text: string): { readonly scheme: string; readonly rest: string } {
  if (text.startsWith(":")) throw new UrlError("missing protocol scheme");
  const match = /^([a-zA-Z][a-zA-Z0-9+.-]*):/.exec(text);
  return match ? { scheme: match[1]!.toLowerCase(), rest: text.slice(match[0].length) } : { scheme: "", rest: text };
}

function hostOf(scheme: string, authority: string): string {
  const at = authority.lastIndexOf("@");
  const host = parseHost(scheme, authority.slice(at + 1));
  if (at < 0) return host;
  const user = authority.slice(0, at);
  if (!/^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/.test(user)) throw new UrlError("net/url: invalid userinfo");
  checkEscapes(user);
  return host;
}

function parseHost(scheme: string, host: string): string {
  const bracket = host.lastIndexOf("[");
  if (bracket > 0) throw new UrlError("invalid IP-literal");
  if (bracket === 0) return parseLiteral(host);
  const colon = scheme === "http" || scheme === "https" ? host.indexOf(":") : host.lastIndexOf(":");
  if (colon >= 0) checkPort(host.slice(colon));
  return unescapeHost(host, false);
}

/** [::1]:80 */
function parseLiteral(host: string): string {
  const end = host.lastIndexOf("]");
  if (end < 0) throw new UrlError("missing ']' in host");
  checkPort(host.slice(end + 1));
  const name = host.slice(1, end);
  const zone = name.indexOf("%25");
  const address = zone < 0 ? unescapeHost(name, false) : unescapeHost(name.slice(0, zone), false) + unescapeHost(name.slice(zone), true);
  if (addressIn(address).bits === 32) throw new UrlError("invalid IP-literal");
  return `[${address}]${host.slice(end + 1)}`;
}

function addressIn(text: string): Address {
  try {
    return parseAddress(text);
  } catch (error) {
    if (error instanceof AddressError) throw new UrlError(`invalid host: ${error.message}`);
    throw error;
  }
}

function checkPort(port: string): void { if (!/^(:\d*)?$/.test(port)) throw new UrlError(`invalid port ${goQuote(port)} after host`); }

/** Only bytes outside ASCII may be escaped in a host; in an IPv6 zone also % and some more. */
function unescapeHost(text: string, zone: boolean): string {
  for (const match of text.matchAll(/%(..?)?/gs)) {
    const hex = match[1] ?? "";
    if (!/^[0-9a-fA-F]{2}$/.test(hex)) throw new UrlError(`invalid URL escape ${goQuote(text.slice(match.index, match.index + 3))}`);
    const byte = Number.parseInt(hex, 16);
    const allowed = zone ? byte === 0x25 || byte === 0x20 || (byte < 0x80 && !NOT_IN_HOST.test(String.fromCharCode(byte))) : byte >= 0x80 || hex === "25";
    if (!allowed) throw new UrlError(`invalid URL escape ${goQuote(`%${hex}`)}`);
  }
  const [odd] = NOT_IN_HOST.exec(text.replace(/%../g, "")) ?? [];
  if (odd !== undefined) throw new UrlError(`invalid character ${goQuote(odd)} in host name`);
  return decode(text);
}

/** Of ASCII. */
const NOT_IN_HOST = /[^A-Za-z0-9\-_.~!$&'()*+,;=:[\]<>"\u0080-\u{10ffff}]/u;

function checkEscapes(text: string): void {
  const bad = /%(?![0-9a-fA-F]{2})/.exec(text);
  if (bad) throw new UrlError(`invalid URL escape ${goQuote(text.slice(bad.index, bad.index + 3))}`);
}

function splitHost(host: string): { readonly hostname: string; readonly port: string } {
  const colon = host.lastIndexOf(":");
  const hasPort = colon >= 0 && /^:\d*$/.test(host.slice(colon));
  const name = hasPort ? host.slice(0, colon) : host;
  return { hostname: name.startsWith("[") && name.endsWith("]") ? name.slice(1, -1) : name, port: hasPort ? host.slice(colon + 1) : "" };
}

/** As it was written, if that is a valid way to write it; else as Go would write it. */
function escapedPath(path: string): string {
  if (!/[^A-Za-z0-9\-_.~!$&'()*+,;=:@[\]/%]/.test(path)) return path; // its escapes have been looked at
  return escapePath(decode(path));
}

/** A path of which nothing is escaped yet, as Go writes it. */
export function escapePath(path: string): string {
  return Buffer.from(path).toString("latin1").replace(/[^A-Za-z0-9\-_.~$&+,/:;=@]/g, (byte) => ESCAPES[byte.charCodeAt(0)]!);
}

/** By byte: a path may need a million of them. */
const ESCAPES: readonly string[] = Array.from({ length: 256 }, (_, byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`);

function decode(text: string): string {
  if (!text.includes("%")) return text;
  const bytes = Buffer.from(text).toString("latin1").replace(/%([0-9a-fA-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, "latin1").toString();
}

/** What cannot be read is left out, as URL.Query() does. */
export function parseQuery(rawQuery: string): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const pair of rawQuery.split("&")) {
    if (pair === "" || pair.includes(";") || /%(?![0-9a-fA-F]{2})/.test(pair)) continue;
    const equals = pair.indexOf("=");
    const [name, value] = (equals < 0 ? [pair, ""] : [pair.slice(0, equals), pair.slice(equals + 1)]).map((part) => decode(part.replaceAll("+", " "))) as [string, string];
    const values = found.get(name);
    if (values) values.push(value);
    else found.set(name, [value]);
  }
  return found;
}

/** Why `text` is no URL to Go; undefined if it is one. */
export function urlProblem(text: string): string | undefined {
  try {
    parseUrl(text);
    return undefined;
  } catch (error) {
    if (error instanceof UrlError) return error.message;
    throw error;
  }
}
