/**
 * The value of a variable may be any bytes: a Secret's are. In a text those that are no UTF-8 stand as surrogates without a partner (U+DC80 for 0x80 … U+DCFF), which text never has,
 * and become the same bytes again when the runtime is told. A Secret may have a million of them, for each of which there is no more than a look.
 *
 * API: https://peps.python.org/pep-0383/ (the same, of Python)
 */
import { isUtf8 } from "node:buffer";

const SURROGATES = 0xdc00;
/** Of a character's second byte, by its first: where not all that follow one are allowed. Source: RFC 3629 section 4 */
const SECOND_MIN: Readonly<Record<number, number>> = { 0xe0: 0xa0, 0xf0: 0x90 }, SECOND_MAX: Readonly<Record<number, number>> = { 0xed: 0x9f, 0xf4: 0x8f };

export function textOfBytes(bytes: Uint8Array): string {
  const whole = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (isUtf8(whole)) return whole.toString("utf8");
  const parts: string[] = [];
  let done = 0;
  for (let at = 0, length: number; at < whole.length; at += Math.max(length, 1)) {
    length = characterLength(whole, at);
    if (length > 0) continue;
    if (done < at) parts.push(whole.toString("utf8", done, at));
    parts.push(String.fromCharCode(SURROGATES + whole[at]!));
    done = at + 1;
  }
  return parts.join("") + whole.toString("utf8", done);
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

export function bytesOfText(text: string): Buffer {
  if (text.isWellFormed()) return Buffer.from(text);
  const bytes = Buffer.alloc(3 * text.length);
  let length = 0;
  for (const character of text) {
    const code = character.codePointAt(0)!;
    if (code >= SURROGATES + 0x80 && code <= SURROGATES + 0xff) bytes[length++] = code - SURROGATES;
    else length += bytes.write(character, length);
  }
  return bytes.subarray(0, length);
}
