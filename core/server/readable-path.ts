/**
 * A path as it is looked at. What leads to the objects of a resource, and all of what is no resource, may have its characters escaped in any way: /%76ersion is /version.
 * Names keep their escapes, since a proxy passes on what is below them as it came.
 */

/** /api/{version}, /apis/{group}/{version} */
const HEAD_PARTS: ReadonlyMap<string, number> = new Map([["api", 2], ["apis", 3]]);

export function readablePath(raw: string): string {
  if (!raw.includes("%")) return raw;
  const decoded = unescaped(raw);
  if (decoded === undefined) return raw;
  const parts = partsOf(decoded), count = HEAD_PARTS.get(parts[0] ?? "");
  if (count === undefined || parts.length <= count) return decoded;
  const slashes = decoded.slice(0, decoded.length - decoded.replace(/^\/+/, "").length);
  return `${slashes}${parts.slice(0, count).join("/")}${tailOf(raw, count)}`;
}

/** What follows so many parts, as it came: with the slash before it. */
function tailOf(raw: string, count: number): string {
  let left = count, at = 0;
  while (at < raw.length) {
    const slash = /^\/+/.exec(raw.slice(at))?.[0].length ?? 0;
    if (left <= 0) return raw.slice(at);
    const end = raw.indexOf("/", at + slash), part = raw.slice(at + slash, end < 0 ? raw.length : end);
    const within = partsOf(unescaped(part) ?? part);
    if (within.length > left) return [...within.slice(left).map((one) => `/${encodeURIComponent(one)}`), raw.slice(end < 0 ? raw.length : end)].join(""); // an escaped slash led on from there
    left -= within.length;
    at = end < 0 ? raw.length : end;
  }
  return "";
}

function partsOf(path: string): string[] { return path.split("/").filter((part) => part !== ""); }

/** Undefined: it is no text. */
function unescaped(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}
