/**
 * Unpacks Snappy, in which LevelDB keeps blocks: a length, then stretches of bytes and copies of what came before.
 * Source: snappy format_description.txt
 */
import { Cursor } from "./varint.ts";

const LONGEST_IN_TAG = 60;

/** Throws RangeError for what is none. `lengthMax`: more is none, either. */
export function unpackSnappy(packed: Uint8Array, lengthMax: number): Uint8Array {
  const source = new Cursor(packed), length = source.number();
  if (length > lengthMax) throw new RangeError("longer than it may be");
  const out = new Uint8Array(length);
  let at = 0;
  while (!source.atEnd) {
    const [tag = 0] = source.bytes(1), kind = tag & 3, upper = tag >>> 2;
    if (kind === 0) {
      const bytes = source.bytes(1 + (upper < LONGEST_IN_TAG ? upper : little(source.bytes(upper - LONGEST_IN_TAG + 1))));
      out.set(bytes, at); // throws RangeError where it does not fit
      at += bytes.length;
      continue;
    }
    const count = kind === 1 ? (upper & 7) + 4 : upper + 1;
    const back = kind === 1 ? ((tag >>> 5) << 8) + little(source.bytes(1)) : little(source.bytes(kind === 2 ? 2 : 4));
    if (back === 0 || back > at || at + count > length) throw new RangeError("a copy of what is not there");
    for (let i = 0; i < count; i++, at++) out[at] = out[at - back]!; // it may reach into itself
  }
  if (at !== length) throw new RangeError("shorter than it says");
  return out;
}

function little(bytes: Uint8Array): number { return bytes.reduceRight((value, byte) => value * 256 + byte, 0); }
