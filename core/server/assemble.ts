/**
 * Bodies out of many pieces, most of them kept from before.
 *
 *   assemble(pieces)   one buffer of the right size: each byte is copied once
 *   blocks(pieces)     the same in blocks, made as they are taken: of a list of many megabytes only a few blocks are in memory at a time
 */
export type Piece = string | Uint8Array;

/** Large enough that a block costs no more than its bytes; a few of them wait on a connection that is slow. */
export const BLOCK_BYTES: number = 256 * 1024;

export function lengthOf(pieces: readonly Piece[]): number {
  let length = 0;
  for (const piece of pieces) length += typeof piece === "string" ? Buffer.byteLength(piece) : piece.length;
  return length;
}

export function assemble(pieces: readonly Piece[], length: number = lengthOf(pieces)): Buffer {
  const out = Buffer.allocUnsafeSlow(length);
  let at = 0;
  for (const piece of pieces) {
    if (typeof piece === "string") at += out.write(piece, at);
    else {
      out.set(piece, at);
      at += piece.length;
    }
  }
  return out;
}

export function* blocks(pieces: readonly Piece[], length: number = lengthOf(pieces)): Iterable<Uint8Array> {
  let left = length;
  let block = Buffer.allocUnsafeSlow(Math.min(left, BLOCK_BYTES));
  let at = 0;
  for (const piece of pieces) {
    const bytes = typeof piece === "string" && piece.length * 3 > block.length - at ? Buffer.from(piece) : piece;
    if (typeof bytes === "string") {
      at += block.write(bytes, at);
      continue;
    }
    for (let from = 0; from < bytes.length; ) {
      const part = Math.min(bytes.length - from, block.length - at);
      block.set(part === bytes.length ? bytes : bytes.subarray(from, from + part), at);
      at += part;
      from += part;
      if (at < block.length) continue;
      yield block;
      left -= at;
      block = Buffer.allocUnsafeSlow(Math.min(left, BLOCK_BYTES));
      at = 0;
    }
  }
  if (at > 0) yield block.subarray(0, at);
}
