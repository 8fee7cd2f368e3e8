/**
 * Tells damage in a LevelDB log from what a crash leaves at its end.
 *
 * LevelDB recovers a log by leaving out what it cannot read, together with the rest of that block: acknowledged batches could vanish without
 * a word. A crash can tear the last batch only, for each batch is synced before the next is written. So: a record that cannot be read, with the
 * beginning of another one anywhere behind it, is damage. (A log that was cut off at its end cannot be told from a crash.)
 *
 * The format: blocks of 32 KiB; in them records of CRC-32C (masked), length (2 bytes), type (1 byte: 1 whole, 2 first, 3 middle, 4 last part of a
 * batch), data; a block's last bytes are zero where no header fits.
 * Source: leveldb doc/log_format.md
 */
const BLOCK = 32 * 1024;
const HEADER = 7;
const WHOLE = 1;
const FIRST = 2;
const LAST_TYPE = 4;

/** Where the first damaged record is, or undefined. */
export function damageInLog(log: Uint8Array): number | undefined {
  const view = new DataView(log.buffer, log.byteOffset, log.byteLength);
  const table = crcTable();
  let unreadable: number | undefined;
  for (let block = 0; block < log.length; block += BLOCK) {
    const end = Math.min(block + BLOCK, log.length);
    for (let at = block; at + HEADER <= end; ) {
      const length = recordLength(view, table, at, end);
      if (length === undefined) {
        if (unreadable === undefined && isZero(log, at, end)) break; // an end that was never written, or a block's unused bytes
        unreadable ??= at;
        at++; // its length cannot be trusted either: look for a record at every byte
        continue;
      }
      const type = log[at + 6];
      if (unreadable !== undefined && (type === WHOLE || type === FIRST)) return unreadable;
      at += HEADER + length;
    }
  }
  return undefined;
}

/** The length of the data of the record at `at`, if there is one. */
function recordLength(view: DataView, table: Uint32Array, at: number, end: number): number | undefined {
  if (at + HEADER > end) return undefined;
  const length = view.getUint16(at + 4, true);
  const type = view.getUint8(at + 6);
  if (type === 0 || type > LAST_TYPE || at + HEADER + length > end) return undefined;
  return maskedCrc(view, table, at + 6, at + HEADER + length) === view.getUint32(at, true) ? length : undefined;
}

/** The CRC of type and data, rotated and offset as LevelDB stores it. */
function maskedCrc(view: DataView, table: Uint32Array, from: number, to: number): number {
  let crc = 0xffffffff;
  for (let i = from; i < to; i++) crc = (crc >>> 8) ^ table[(crc ^ view.getUint8(i)) & 0xff]!;
  crc = ~crc >>> 0;
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}

function crcTable(): Uint32Array {
  const table = new Uint32Array(256);
  for (let i = 0; i < 256; i++) {
    let crc = i;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
    table[i] = crc;
  }
  return table;
}

function isZero(bytes: Uint8Array, from: number, to: number): boolean {
  return bytes.subarray(from, to).every((byte) => byte === 0);
}
