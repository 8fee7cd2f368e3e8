/**
 * Paths of routes and of requests, made comparable: what is the same to whoever answers is the same to us, or a route could be missed, or gone around. Letters, digits and -._~ are
 * written as they are, all other escapes in upper case, and dot segments are resolved. Pure.
 *
 *   routePath("/caf\u00e9")  routePath("/caf%c3%a9")  requestPath("/./caf%C3%A9")      all /caf%C3%A9
 *
 * Source: RFC 3986 section 6.2.2
 */
const ESCAPE = /%[0-9a-f]{2}/gi, UNRESERVED = /[\w\-.~]/;

/** As an object has it: any text. */
export function routePath(path: string): string { return comparable(escaped(path)); }

/** As it came, without the query, in Latin-1. */
export function requestPath(path: string): string { return /\/\.|[%\x80-\xff]/.test(path) ? comparable(path.replace(/[\x80-\xff]/g, (byte) => escapeOf(byte.charCodeAt(0)))) : path; }

/** The API takes any text for a path: a space or the end of a line would end the request's line, and what follows would be another request, on a connection that others' go over, too. */
export function escaped(path: string): string { return path.replace(/[^\x21-\x7e]/gu, (sign) => [...Buffer.from(sign)].map(escapeOf).join("")); }

function escapeOf(byte: number): string { return `%${byte.toString(16).toUpperCase().padStart(2, "0")}`; }

function comparable(path: string): string {
  return withoutDots(path.replace(ESCAPE, (escape) => {
    const sign = String.fromCharCode(Number.parseInt(escape.slice(1), 16));
    return UNRESERVED.test(sign) ? sign : escape.toUpperCase();
  }));
}

function withoutDots(path: string): string {
  if (!path.includes("/.")) return path;
  const kept: string[] = [];
  const elements = path.split("/").slice(1);
  for (const [i, element] of elements.entries()) {
    const last = i === elements.length - 1;
    if (element === "..") kept.pop();
    if (element !== "." && element !== "..") kept.push(element);
    else if (last) kept.push("");
  }
  return `/${kept.join("/")}`;
}
