/**
 * The order of keys, and where things lie in an engine.
 *
 *   m            one record: revisions, number and digest of the rows (mvcc/record.ts, Meta)
 *   r<key>       one record per row: the current value of <key> and its revision
 *   s<00000>     shapes of objects, numbered: msgpackr's shared structures (mvcc/values.ts)
 *
 * Keys are ordered by their UTF-8 bytes, as in LevelDB and etcd. JavaScript compares UTF-16 units, which differs once a character lies beyond
 * U+FFFF: such a character is a pair of units from U+D800, below U+E000..U+FFFF, though its bytes are greater.
 */
export const META_KEY = "m";
const ROW = "r";
const ROWS_END = "s"; // the first key after all rows: keys start with ROW, and the next letter is free for SHAPE
const SHAPE = "s";
const SHAPES_END = "t";

export const ROWS_RANGE = [ROW, ROWS_END] as const;
export const SHAPES_RANGE = [SHAPE, SHAPES_END] as const;

export function rowKey(key: string): string {
  return ROW + key;
}

export function keyOfRow(engineKey: string): string {
  return engineKey.slice(ROW.length);
}

export function shapeKey(id: number): string {
  return SHAPE + String(id).padStart(5, "0");
}

const MAYBE_PAIR = /[\ud800-\uffff]/;

/** Negative, zero or positive, as `a` comes before, is, or comes after `b`. */
export function compareKeys(a: string, b: string): number {
  if (a === b) return 0;
  if (!MAYBE_PAIR.test(a)) return a < b ? -1 : 1; // where they first differ, `a` is below U+D800, and there both orders agree
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** `compareKeys(other, key)` for one key and many others: it is enough to look at one of two for what the orders disagree about. */
export function keyOrder(key: string): (other: string) => number {
  if (MAYBE_PAIR.test(key)) return (other) => compareKeys(other, key);
  return (other) => (other === key ? 0 : other < key ? -1 : 1);
}

/** A key must come back from disk as it went there. */
export function assertKey(key: string): void {
  if (key === "" || !key.isWellFormed()) throw new TypeError(`store: not a key: ${JSON.stringify(key)}`);
}
