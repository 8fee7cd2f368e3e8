/**
 * Makes a page that thinks it stands at the root of its host work below …/proxy/: links to its own host get the proxy's path in front, in
 * Location headers and in the attributes of HTML that hold addresses.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/util/proxy/transport.go
 */
import type { Readable } from "node:stream";
import { ArrivedBytes } from "../../net/arrived-bytes.ts";
import { deflateRawSync, gunzipSync, gzipSync, inflateRawSync } from "node:zlib";

export interface Rewriting {
  /** The client's path up to where the backend's begins: /api/v1/namespaces/a/services/b/proxy */
  readonly prefix: string;
  /** host:port as we dial it. */
  readonly backendHost: string;
  /** The Host the client sent. */
  readonly requestHost: string;
  /** scheme://host:port that all links have, if they are not to stay within the server they came from. */
  readonly origin?: string | undefined;
}

/** Pages are rewritten whole; larger ones go through as they are. */
const HTML_BYTES_MAX = 16 * 1024 * 1024;

const URL_ATTRIBUTES: Readonly<Record<string, readonly string[]>> = {
  a: ["href"], applet: ["codebase"], area: ["href"], audio: ["src"], base: ["href"], blockquote: ["cite"], body: ["background"], button: ["formaction"], command: ["icon"],
  del: ["cite"], embed: ["src"], form: ["action"], frame: ["longdesc", "src"], head: ["profile"], html: ["manifest"], iframe: ["longdesc", "src"], img: ["longdesc", "src", "usemap"],
  input: ["src", "usemap", "formaction"], ins: ["cite"], link: ["href"], object: ["classid", "codebase", "data", "usemap"], q: ["cite"], script: ["src"], source: ["src"], video: ["poster", "src"],
};

export function rewriteLocation(url: string, { prefix, backendHost, requestHost, origin: given }: Rewriting): string {
  const match = /^(?:([a-z][a-z0-9+.-]*):)?(?:\/\/([^/?#]*))?([^?#]*)(.*)$/is.exec(url);
  if (!match) return url;
  const [, scheme, host, path = "", rest = ""] = match;
  const elsewhere = (host ?? "") !== "" && host !== backendHost && host !== requestHost;
  if (elsewhere || !path.startsWith("/")) return url;
  if (path.startsWith(prefix) && given === undefined) return host === requestHost && scheme !== undefined ? url : `${path}${rest}`;
  if (path.startsWith(prefix)) return `${given}${path}${rest}`;
  const origin = given !== undefined ? given : host === requestHost && scheme !== undefined ? `${scheme}://${host}` : "";
  return `${origin}${cleanJoin(prefix, path)}${rest}`;
}

const NOT_IN_PATH = /[^A-Za-z0-9\-_.~$&+,/:;=@%!'()*[\]]/g;

/** The path of an address with all that may not stand in one escaped, as a server may write it and a client may ask for it: no page can read a tag in it. What follows the path stays. `url`: a character for each byte, as heads are read. */
export function escapeIllegal(url: string): string {
  const end = url.search(/[?#]/), path = end < 0 ? url : url.slice(0, end);
  return path.replace(NOT_IN_PATH, (character) => [...Buffer.from(character, "latin1")].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join("")) + url.slice(path.length);
}

/** Both without . and .. and doubled slashes; a slash at the end stays. */
function cleanJoin(prefix: string, path: string): string {
  const parts: string[] = [];
  for (const part of `${prefix}/${path}`.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return `/${parts.join("/")}${path.endsWith("/") && parts.length > 0 ? "/" : ""}`;
}

/** The page, or the stream as it is when it cannot be rewritten: an unknown encoding, or too long. */
export async function rewriteHtml(body: Readable, encoding: string, rewriting: Rewriting): Promise<Uint8Array | Readable> {
  if (!["", "gzip", "deflate"].includes(encoding)) return body;
  const arrived = new ArrivedBytes();
  for await (const chunk of body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    arrived.add(chunk);
    if (arrived.bytes.length <= HTML_BYTES_MAX) continue;
    body.unshift(arrived.take());
    return body;
  }
  const bytes = arrived.take();
  const limit = { maxOutputLength: HTML_BYTES_MAX };
  const page = encoding === "gzip" ? gunzipSync(bytes, limit) : encoding === "deflate" ? inflateRawSync(bytes, limit) : bytes;
  const rewritten = Buffer.from(rewriteTags(page.toString("latin1"), rewriting), "latin1");
  return encoding === "gzip" ? gzipSync(rewritten) : encoding === "deflate" ? deflateRawSync(rewritten) : rewritten;
}

const CLOSING = /<\/(?:script|style|textarea|title)\b/gi;
const OPAQUE = new Set(["script", "style", "textarea", "title"]);

/** Comments and the contents of scripts and styles are not tags, whatever they look like. Whatever the page, each of its characters is looked at a few times and no more: it comes from a pod. */
function rewriteTags(page: string, rewriting: Rewriting): string {
  const closing = new RegExp(CLOSING);
  let result = "", done = 0;
  for (let at = page.indexOf("<"), end: number, opens = true; at >= 0; at = page.indexOf("<", end)) {
    end = at + 1;
    if (page.startsWith("<!--", at)) {
      end = page.indexOf("-->", at + 2) + 3; // what opens one may be part of what closes it
      if (end === 2) break; // the rest is a comment
    } else if (/[a-z]/i.test(page.charAt(end))) {
      const tag = readTag(page, end);
      if (!tag) break; // and here a tag that does not end
      end = tag.end;
      result += page.slice(done, at) + rewriteTag(page, at, tag, rewriting);
      done = end;
      if (!opens || !OPAQUE.has(tag.name)) continue;
      closing.lastIndex = end;
      const found = closing.exec(page);
      if (found) end = found.index;
      else opens = false;
    }
  }
  return result + page.slice(done);
}

interface Attribute { readonly name: string; /** Where its value is, without quotes. */ readonly from: number; readonly to: number }
interface Tag { readonly name: string; readonly attributes: readonly Attribute[]; /** Behind its ">". */ readonly end: number }

/** What HTML has between the parts of a tag; a character for each byte, of which A0 may be part of a letter. */
const BETWEEN = /[ \t\n\f\r/]*/y, NAME = /[^ \t\n\f\r/>]+/y, ATTRIBUTE_NAME = /=?[^ \t\n\f\r/>=]*/y, EQUALS = /[ \t\n\f\r]*=[ \t\n\f\r]*/y, UNQUOTED = /[^ \t\n\f\r>]*/y;

/** Of the tag whose name begins at `from`; undefined: it does not end. Quotes hold something only where a value begins with one. */
function readTag(page: string, from: number): Tag | undefined {
  let at = from;
  const take = (pattern: RegExp): string => {
    pattern.lastIndex = at;
    const taken = pattern.exec(page)?.[0] ?? "";
    at += taken.length;
    return taken;
  };
  const name = take(NAME).toLowerCase(), attributes: Attribute[] = [];
  for (take(BETWEEN); at < page.length; take(BETWEEN)) {
    if (page[at] === ">") return { name, attributes, end: at + 1 };
    const attribute = take(ATTRIBUTE_NAME).toLowerCase();
    if (take(EQUALS) === "") continue;
    const quote = page[at];
    if (quote !== '"' && quote !== "'") {
      attributes.push({ name: attribute, from: at, to: at + take(UNQUOTED).length });
      continue;
    }
    const end = page.indexOf(quote, at + 1);
    if (end < 0) return undefined;
    attributes.push({ name: attribute, from: at + 1, to: end });
    at = end + 1;
  }
  return undefined;
}

function rewriteTag(page: string, from: number, { name, attributes, end }: Tag, rewriting: Rewriting): string {
  const addressing = Object.hasOwn(URL_ATTRIBUTES, name) ? URL_ATTRIBUTES[name]! : [];
  let result = "", done = from;
  for (const attribute of attributes) {
    if (!addressing.includes(attribute.name)) continue;
    result += page.slice(done, attribute.from) + rewriteLocation(page.slice(attribute.from, attribute.to), rewriting);
    done = attribute.to;
  }
  return result + page.slice(done, end);
}
