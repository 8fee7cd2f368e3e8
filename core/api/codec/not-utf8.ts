/**
 * Bytes that are no UTF-8, as a text in which something else stands for each that belongs to no character. Somebody may send millions of them, for each of which there is no more than a look.
 *
 *   replaceOctets(Buffer.of(0x61, 0xe2, 0x82), () => 0xfffd)      "a\ufffd\ufffd", as Go has it; the decoder of the web takes the beginning of a character for one
 */
/** Of a character's second octet, by its first: where not all that follow one are allowed. Source: RFC 3629 section 4 */
const SECOND_MIN: Readonly<Record<number, number>> = { 0xe0: 0xa0, 0xf0: 0x90 }, SECOND_MAX: Readonly<Record<number, number>> = { 0xed: 0x9f, 0xf4: 0x8f };

/** `replaced`: the code of the character that stands for an octet; one that takes no pair. */
export function replaceOctets(bytes: Uint8Array, replaced: (octet: number) => number): string {
  const units = new Uint16Array(bytes.length);
  let count = 0;
  for (let at = 0, length: number; at < bytes.length; at += Math.max(length, 1)) {
    length = characterLength(bytes, at);
    const code = length === 0 ? replaced(bytes[at]!) : codeOf(bytes, at, length);
    if (code <= 0xffff) units[count++] = code;
    else {
      units[count++] = 0xd7c0 + (code >> 10);
      units[count++] = 0xdc00 + (code & 0x3ff);
    }
  }
  return Buffer.from(units.buffer, 0, 2 * count).toString("utf16le");
}

function codeOf(bytes: Uint8Array, at: number, length: number): number {
  let code = length === 1 ? bytes[at]! : bytes[at]! & (0xff >> (length + 1));
  for (let i = 1; i < length; i++) code = (code << 6) | (bytes[at + i]! & 0x3f);
  return code;
}

/** Of the one that begins there; 0: none does. */
function characterLength(bytes: Uint8Array, at: number): number {
  const first = bytes[at]!;
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const second = bytes[at + 1] ?? 0;
  if (second < (SECOND_MIN[first] ?? 0x80) || second > (SECOND_MAX[first] ?? 0xbf)) return 0;
  const length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  for (let i = 2; i < length; i++) if ((bytes[at + i] ?? 0) >> 6 !== 2) return 0;
  return length;
}
