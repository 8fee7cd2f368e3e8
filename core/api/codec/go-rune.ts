/**
 * A character as Go's JSON errors quote it. The scanner sees bytes, so beyond ASCII only the first byte of the UTF-8 form is named,
 * as the Latin-1 character of that value.
 */
const SHORT: Readonly<Record<number, string>> = { 7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: "\"", 39: "\\'", 92: "\\\\" };

export function goQuoteRune(codePoint: number): string {
  const byte = codePoint < 0x80 ? codePoint : firstUtf8Byte(codePoint);
  return `'${SHORT[byte] ?? (byte < 0x20 || byte === 0x7f ? `\\x${byte.toString(16).padStart(2, "0")}` : String.fromCharCode(byte))}'`;
}

function firstUtf8Byte(codePoint: number): number {
  if (codePoint < 0x800) return 0xc0 | codePoint >> 6;
  return codePoint < 0x10000 ? 0xe0 | codePoint >> 12 : 0xf0 | codePoint >> 18;
}
