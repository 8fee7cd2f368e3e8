/**
 * Strings as Go's %q prints them, because that is how API messages quote what a client sent.
 *
 * Differs from JSON.stringify in control characters (\x00, \a, \v), in unprintable runes (\u200b) and in not escaping what Go can print.
 */
const SHORT: Readonly<Record<string, string>> = {
  "\"": "\\\"", "\\": "\\\\", "\x07": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
};
const PLAIN = /^[ !#-[\]-~]*$/;
/** But for what unicode.IsPrint accepts: letters, marks, numbers, punctuation, symbols; of the spaces only U+0020. */
const ESCAPED = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]|["\\]/gu;

export function goQuote(text: string): string {
  if (PLAIN.test(text)) return `"${text}"`;
  return `"${text.replace(ESCAPED, (rune) => SHORT[rune] ?? escapeRune(rune))}"`;
}

function escapeRune(rune: string): string {
  const code = rune.codePointAt(0)!;
  if (code < 0x80) return `\\x${hex(code, 2)}`;
  if (code >= 0xd800 && code <= 0xdfff) return "\\ufffd"; // half a surrogate pair: Go never holds one
  return code > 0xffff ? `\\U${hex(code, 8)}` : `\\u${hex(code, 4)}`;
}

function hex(code: number, digits: number): string { return code.toString(16).padStart(digits, "0"); }
