/**
 * The checksum LevelDB puts beside all it writes: CRC-32C, rotated and offset, so that a checksum of what holds checksums is not weaker.
 * Source: leveldb util/crc32c.h
 */
const POLYNOMIAL = 0x82f63b78;
const MASK_DELTA = 0xa282ead8;

/** Four tables: of a byte, and of one with one, two and three more behind it. */
export type Crc32c = readonly [Uint32Array, Uint32Array, Uint32Array, Uint32Array];

export function crc32c(): Crc32c {
  const [one, two, three, four] = [new Uint32Array(256), new Uint32Array(256), new Uint32Array(256), new Uint32Array(256)];
  for (let i = 0; i < 256; i++) {
    let crc = i;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
    one[i] = crc;
  }
  for (let i = 0; i < 256; i++) {
    two[i] = (one[i]! >>> 8) ^ one[one[i]! & 0xff]!;
    three[i] = (two[i]! >>> 8) ^ one[two[i]! & 0xff]!;
    four[i] = (three[i]! >>> 8) ^ one[three[i]! & 0xff]!;
  }
  return [one, two, three, four];
}

/** Of the bytes in [from, to), as LevelDB stores it. */
export function maskedCrc(bytes: Uint8Array, [one, two, three, four]: Crc32c, { from, to }: { readonly from: number; readonly to: number }): number {
  let crc = -1, at = from;
  for (const last = to - 3; at < last; at += 4) {
    crc ^= bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
    crc = four[crc & 0xff]! ^ three[(crc >>> 8) & 0xff]! ^ two[(crc >>> 16) & 0xff]! ^ one[crc >>> 24]!;
  }
  for (; at < to; at++) crc = (crc >>> 8) ^ one[(crc ^ bytes[at]!) & 0xff]!;
  crc = ~crc >>> 0;
  return (((crc >>> 15) | (crc << 17)) + MASK_DELTA) >>> 0;
}

/** The one that stands at `at`. */
export function storedCrc(bytes: Uint8Array, at: number): number { return (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0; }
