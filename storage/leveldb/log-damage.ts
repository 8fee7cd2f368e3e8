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
import { type Crc32c, crc32c, maskedCrc, storedCrc } from "./crc32c.ts";

const BLOCK = 32 * 1024;
const HEADER = 7;
const WHOLE = 1;
const FIRST = 2;
const LAST = 4;

/** Where the first damaged record is, or undefined. */
export function damageInLog(log: Uint8Array): number | undefined {
  const crc = crc32c();
  let unreadable: number | undefined;
  for (let block = 0; block < log.length; block += BLOCK) {
    const end = Math.min(block + BLOCK, log.length);
    for (let at = block; at + HEADER <= end; ) {
      const length = recordLength(log, crc, at, end);
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

/** What was written into it, whole, up to the first that cannot be read. */
export function* logEntries(log: Uint8Array): Generator<Uint8Array> {
  const crc = crc32c();
  let parts: Uint8Array[] = [];
  for (let block = 0; block < log.length; block += BLOCK) {
    const end = Math.min(block + BLOCK, log.length);
    for (let at = block; at + HEADER <= end; ) {
      const length = recordLength(log, crc, at, end);
      if (length === undefined) {
        if (end < log.length && isZero(log, at, end)) break;
        return;
      }
      const type = log[at + 6]!;
      if (type === WHOLE || type === FIRST) parts = [];
      parts.push(log.subarray(at + HEADER, at + HEADER + length));
      if (type === WHOLE || type === LAST) yield Buffer.concat(parts);
      at += HEADER + length;
    }
  }
}

/** The length of the data of the record at `at`, if there is one. */
function recordLength(log: Uint8Array, crc: Crc32c, at: number, end: number): number | undefined {
  if (at + HEADER > end) return undefined;
  const length = log[at + 4]! | (log[at + 5]! << 8), type = log[at + 6]!;
  if (type === 0 || type > LAST || at + HEADER + length > end) return undefined;
  return maskedCrc(log, crc, { from: at + 6, to: at + HEADER + length }) === storedCrc(log, at) ? length : undefined;
}

function isZero(bytes: Uint8Array, from: number, to: number): boolean {
  return bytes.subarray(from, to).every((byte) => byte === 0);
}
