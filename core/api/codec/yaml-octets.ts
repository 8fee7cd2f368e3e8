/**
 * The text of YAML in bytes, which go-yaml refuses if they are no UTF-8, or hold characters that no YAML has. JSON is more patient.
 *
 * Source: go.yaml.in/yaml/v2 readerc.go
 */
import { isUtf8 } from "node:buffer";
import { decodeText } from "./json.ts";
import { YamlError } from "./yaml.ts";

const REFUSED = /[^\t\n\r\x20-\x7e\x85\xa0-\ufffd]/;
/** How large a character of so many bytes is at least; one that is less has a shorter form. */
const LEAST = [0, 0, 0x80, 0x800, 0x10000];

/** Throws YamlError. */
export function yamlTextOf(bytes: Uint8Array): string {
  const text = decodeText(bytes);
  const problem = text.includes("\ufffd") && !isUtf8(bytes) ? octetsProblem(bytes) : undefined;
  if (problem !== undefined) throw new YamlError(`yaml: ${problem}`);
  if (REFUSED.test(text)) throw new YamlError("yaml: control characters are not allowed");
  return text;
}

function octetsProblem(bytes: Uint8Array): string | undefined {
  for (let at = 0; at < bytes.length;) {
    const length = octetsOf(bytes[at]!);
    if (length === 0) return "invalid leading UTF-8 octet";
    if (at + length > bytes.length) return "incomplete UTF-8 octet sequence";
    let value = length === 1 ? bytes[at]! : bytes[at]! & (0xff >> (length + 1));
    for (const octet of bytes.subarray(at + 1, at + length)) {
      if (octet >> 6 !== 0b10) return "invalid trailing UTF-8 octet";
      value = (value << 6) | (octet & 0x3f);
    }
    if (value < LEAST[length]!) return "invalid length of a UTF-8 sequence";
    if ((value >= 0xd800 && value <= 0xdfff) || value > 0x10ffff) return "invalid Unicode character";
    at += length;
  }
  return undefined;
}

/** Of the character that begins with this byte; 0: none does. */
function octetsOf(first: number): number { return first < 0x80 ? 1 : first >> 5 === 0b110 ? 2 : first >> 4 === 0b1110 ? 3 : first >> 3 === 0b11110 ? 4 : 0; }
