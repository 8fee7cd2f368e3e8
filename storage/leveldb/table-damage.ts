/**
 * Finds the damaged blocks of a LevelDB table.
 *
 * LevelDB looks at a block's checksum only where it is told to, which nobody can do through its addon, and takes whatever else it reads for keys: one that is too short for a key ends the
 * process, be it while it compacts, which it does in the background from its opening on, or while it repairs. So tables are looked at before LevelDB reads them.
 *
 * The format: blocks, each with its type (0 plain, 1 Snappy) and its checksum behind it; one of them is the index, with the place of each block of rows; 48 bytes at the end have the places of the
 * index and of the one in which the filter's is, and a number by which a table is known. A block has entries (how much of the key is as before, how much follows, how long the value is, both), in
 * the order of their keys, and at its end where a search may begin, and how many such places there are. A key ends with eight bytes: which write it was, and whether a delete.
 * Source: leveldb doc/table_format.md
 */
import { type Crc32c, crc32c, maskedCrc, storedCrc } from "./crc32c.ts";
import { unpackSnappy } from "./snappy.ts";
import { Cursor } from "./varint.ts";

const FOOTER = 48;
const MAGIC = 0xdb4775248b80fb57n;
const TRAILER = 5;
const SNAPPY = 1;
const WRITE_BYTES = 8;
/** Of a type that there is none of: whoever reads such a block leaves it out. */
export const NO_TYPE = 0xff;
/** A block has 4 KiB and one row; an index 30 bytes for each. */
const BLOCK_BYTES_MAX = 256 * 1024 * 1024;

interface Place { readonly offset: number; readonly size: number }
interface Entry { readonly key: Uint8Array; readonly value: Uint8Array }

export interface TableDamage {
  /** Where the types of the damaged blocks stand that LevelDB must not read, for what is wrong is not in their values alone; undefined: nobody can tell where any block is. */
  readonly types: readonly number[] | undefined;
  /** Of damaged blocks. */
  readonly bytes: number;
}

/** Undefined: it is as it was written. */
export function damageInTable(table: Uint8Array): TableDamage | undefined {
  const crc = crc32c(), whole = { types: undefined, bytes: table.length };
  const isSound = (place: Place): boolean => holds(table, crc, place);
  try {
    const { filters, index } = footerOf(table);
    if (!isSound(index)) return whole;
    const rows = entriesOf(table, index).map(({ key, value }) => ({ last: key, place: placeAt(new Cursor(value), table) }));
    const damaged = [...rows.keys()].filter((i) => !isSound(rows[i]!.place));
    const beside = [filters, ...(isSound(filters) ? entriesOf(table, filters).map(({ value }) => placeAt(new Cursor(value), table)) : [])].filter((place) => !isSound(place));
    if (damaged.length + beside.length === 0) return undefined;
    const unusable = damaged.filter((i) => !isInOrder(table, rows[i]!.place, { after: rows[i - 1]?.last, last: rows[i]!.last }));
    return { types: [...unusable.map((i) => rows[i]!.place), ...beside].map(({ offset, size }) => offset + size), bytes: damaged.reduce((sum, i) => sum + rows[i]!.place.size, 0) };
  } catch (error) {
    if (error instanceof RangeError) return whole;
    throw error;
  }
}

function footerOf(table: Uint8Array): { readonly filters: Place; readonly index: Place } {
  if (table.length < FOOTER) throw new RangeError("too short for a table");
  const view = new DataView(table.buffer, table.byteOffset, table.byteLength);
  if (view.getBigUint64(table.length - 8, true) !== MAGIC) throw new RangeError("no table");
  const places = new Cursor(table, { from: table.length - FOOTER });
  return { filters: placeAt(places, table), index: placeAt(places, table) };
}

function placeAt(cursor: Cursor, table: Uint8Array): Place {
  const [offset, size] = [cursor.number(), cursor.number()];
  if (offset + size + TRAILER > table.length - FOOTER) throw new RangeError("behind the end");
  return { offset, size };
}

function holds(table: Uint8Array, crc: Crc32c, { offset, size }: Place): boolean {
  const to = offset + size + 1;
  return storedCrc(table, to) === maskedCrc(table, crc, { from: offset, to });
}

/** Throws RangeError for what is no block. */
function entriesOf(table: Uint8Array, { offset, size }: Place): Entry[] {
  const bytes = table.subarray(offset, offset + size), type = table[offset + size]!;
  if (type > SNAPPY) throw new RangeError("of no known type");
  const block = type === SNAPPY ? unpackSnappy(bytes, BLOCK_BYTES_MAX) : bytes;
  const view = new DataView(block.buffer, block.byteOffset, block.byteLength);
  const restarts = view.getUint32(block.length - 4, true), end = block.length - 4 * (restarts + 1);
  const cursor = new Cursor(block, { to: end });
  const begins = new Set<number>(), entries: Entry[] = [];
  for (let key = new Uint8Array(0); !cursor.atEnd; ) {
    const at = cursor.at, [shared, more, length] = [cursor.number(), cursor.number(), cursor.number()];
    if (shared > key.length) throw new RangeError("a longer key than there was");
    if (shared === 0) begins.add(at);
    key = Buffer.concat([key.subarray(0, shared), cursor.bytes(more)]);
    entries.push({ key, value: cursor.bytes(length) });
  }
  for (let i = 0; i < restarts; i++) if (!begins.has(view.getUint32(end + 4 * i, true)) && entries.length > 0) throw new RangeError("a search that begins nowhere");
  return entries;
}

/** Whether its keys can be keys where it stands. */
function isInOrder(table: Uint8Array, place: Place, { after, last }: { readonly after: Uint8Array | undefined; readonly last: Uint8Array }): boolean {
  try {
    let before = after;
    for (const { key } of entriesOf(table, place)) {
      if (key.length < WRITE_BYTES || (before !== undefined && compareKeys(before, key) >= 0)) return false;
      before = key;
    }
    return before === undefined || compareKeys(before, last) <= 0;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/** The later write first. */
function compareKeys(a: Uint8Array, b: Uint8Array): number {
  const [endA, endB] = [a.length - WRITE_BYTES, b.length - WRITE_BYTES];
  return Buffer.compare(a.subarray(0, endA), b.subarray(0, endB)) || Buffer.compare(b.subarray(endB).toReversed(), a.subarray(endA).toReversed());
}
