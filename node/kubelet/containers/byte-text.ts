/**
 * The value of a variable may be any bytes: a Secret's are. In a text those that are no UTF-8 stand as surrogates without a partner (U+DC80 for 0x80 … U+DCFF), which text never has,
 * and become the same bytes again when the runtime is told.
 *
 * API: https://peps.python.org/pep-0383/ (the same, of Python)
 */
import { isUtf8 } from "node:buffer";

const SURROGATES = 0xdc00;

export function textOfBytes(bytes: Uint8Array): string {
  const whole = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (isUtf8(whole)) return whole.toString("utf8");
  const parts: string[] = [];
  for (let at = 0, end: number; at < whole.length; at = end) {
    end = at + characterLength(whole, at);
    parts.push(end > at ? whole.toString("utf8", at, end) : String.fromCharCode(SURROGATES + whole[at]!));
    if (end === at) end++;
  }
  return parts.join("");
}

/** Of the one that begins there; 0: none does. */
function characterLength(bytes: Buffer, at: number): number {
  const first = bytes[at]!;
  const length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  return at + length <= bytes.length && isUtf8(bytes.subarray(at, at + length)) ? length : 0;
}

export function bytesOfText(text: string): Buffer {
  if (text.isWellFormed()) return Buffer.from(text);
  return Buffer.concat(text.split(/([\udc80-\udcff])/u).map((part, i) => (i % 2 === 0 ? Buffer.from(part) : Buffer.of(part.charCodeAt(0) - SURROGATES))));
}
