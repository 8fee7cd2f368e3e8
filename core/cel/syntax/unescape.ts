/** What a quoted string or bytes stand for. Throws an Error with cel-go's words. Source: cel-go parser/unescape.go */
const SIMPLE: Readonly<Record<string, string>> = { a: "\x07", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", v: "\v", "\\": "\\", "'": "'", '"': '"', "`": "`", "?": "?" };
const HEX_DIGITS: Readonly<Record<string, number>> = { x: 2, X: 2, u: 4, U: 8 };

export function unescapeString(quoted: string): string {
  const { body, raw } = unquoted(quoted);
  return raw ? body : body.replace(/\\(?:([xXuU])([0-9a-fA-F]+)|([0-3][0-7]{2})|([\s\S]))/gu, (_, letter: string | undefined, hex: string, octal: string | undefined, simple: string) => {
    if (octal !== undefined) return String.fromCodePoint(Number.parseInt(octal, 8));
    if (letter === undefined) return SIMPLE[simple]!;
    const digits = HEX_DIGITS[letter]!;
    return character(Number.parseInt(hex.slice(0, digits), 16)) + hex.slice(digits);
  });
}

/** Escapes of numbers stand for bytes, all else for its UTF-8. */
export function unescapeBytes(quoted: string): Uint8Array {
  const { body, raw } = unquoted(quoted);
  if (raw) return new TextEncoder().encode(body);
  const parts = body.match(/\\[xX][0-9a-fA-F]{2}|\\[0-3][0-7]{2}|\\[\s\S]|[^\\]+/gu) ?? [];
  return new Uint8Array(Buffer.concat(parts.map((part) => {
    if (!part.startsWith("\\")) return Buffer.from(part);
    const letter = part[1]!;
    if (letter === "u" || letter === "U") throw new Error("unable to unescape string");
    if (part.length === 2) return Buffer.from(SIMPLE[letter]!);
    return Buffer.from([letter === "x" || letter === "X" ? Number.parseInt(part.slice(2), 16) : Number.parseInt(part.slice(1), 8)]);
  })));
}

function unquoted(quoted: string): { readonly body: string; readonly raw: boolean } {
  const normal = quoted.replace(/\r\n?/g, "\n");
  const raw = /^[rR]/.test(normal);
  const text = raw ? normal.slice(1) : normal;
  const width = text.length >= 6 && (text.startsWith('"""') || text.startsWith("'''")) ? 3 : 1;
  return { body: text.slice(width, -width), raw };
}

function character(point: number): string {
  if (point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) throw new Error("invalid unicode code point");
  return String.fromCodePoint(point);
}
