/**
 * The value of a variable may be any bytes: a Secret's are. In a text those that are no UTF-8 stand as surrogates without a partner (U+DC80 for 0x80 … U+DCFF), which text never has,
 * and become the same bytes again when the runtime is told.
 *
 * API: https://peps.python.org/pep-0383/ (the same, of Python)
 */
import { isUtf8 } from "node:buffer";
import { replaceOctets } from "../../../core/api/codec/not-utf8.ts";

const SURROGATES = 0xdc00;

export function textOfBytes(bytes: Uint8Array): string {
  return isUtf8(bytes) ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8") : replaceOctets(bytes, (octet) => SURROGATES + octet);
}

/** Put together of several: what was no text alone may be some. */
export function joinedText(text: string): string { return text.isWellFormed() ? text : textOfBytes(bytesOfText(text)); }

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
