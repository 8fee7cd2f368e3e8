/**
 * Where a request goes at the server behind: path and query decoded and written anew, as Go does.
 *
 *   escapedPath("/a%2Fb(c)")     "/a/b%28c%29"
 *   sortedQuery("b=2&a=1 ")      "a=1+&b=2"
 *
 * Source: kubernetes v1.36 kube-aggregator/pkg/apiserver/handler_proxy.go; Go net/url (URL.EscapedPath, ParseQuery, Values.Encode)
 */

/** What Go leaves as it is in a path, and in a query. */
const PLAIN_IN_PATH = /[A-Za-z0-9\-_.~$&+,/:;=@]/;
const PLAIN_IN_QUERY = /[A-Za-z0-9\-_.~]/;
const BAD_ESCAPE = /%(?![0-9A-Fa-f]{2})/;

/** `path`: escaped somehow. */
export function escapedPath(path: string): string { return escaped(unescaped(path), PLAIN_IN_PATH); }

/** By key, those of one key in the order they were in. What cannot be decoded is left out, and what is separated by semicolons. */
export function sortedQuery(query: string): string {
  const pairs = query.split("&").filter((pair) => pair !== "" && !pair.includes(";") && !BAD_ESCAPE.test(pair)).map((pair) => {
    const at = pair.indexOf("=");
    return [at < 0 ? pair : pair.slice(0, at), at < 0 ? "" : pair.slice(at + 1)].map((part) => unescaped(part.replaceAll("+", " "))) as [Buffer, Buffer];
  });
  return pairs.toSorted(([a], [b]) => Buffer.compare(a, b)).map(([key, value]) => `${inQuery(key)}=${inQuery(value)}`).join("&");
}

function inQuery(bytes: Buffer): string { return escaped(bytes, PLAIN_IN_QUERY).replaceAll("%20", "+"); }

/** Bytes: what was escaped need not be UTF-8. */
function unescaped(text: string): Buffer {
  const bytes = Buffer.from(text);
  if (!text.includes("%")) return bytes;
  const found: number[] = [];
  for (let i = 0; i < bytes.length; i++) {
    const code = bytes[i] === PERCENT ? bytes.toString("latin1", i + 1, i + 3) : "";
    if (/^[0-9A-Fa-f]{2}$/.test(code)) {
      found.push(Number.parseInt(code, 16));
      i += 2;
    } else found.push(bytes[i]!);
  }
  return Buffer.from(found);
}

function escaped(bytes: Buffer, plain: RegExp): string {
  let text = "";
  for (const byte of bytes) {
    const letter = String.fromCharCode(byte);
    text += byte < ASCII_END && plain.test(letter) ? letter : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return text;
}

const PERCENT = 0x25, ASCII_END = 0x80;
