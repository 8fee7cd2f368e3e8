/**
 * Bodies out of many pieces, most of them kept from before.
 *
 *   assemble(pieces)   one buffer of the right size: each byte is copied once
 *   blocks(pieces)     the same in blocks, made as they are taken: of a list of many megabytes only a few blocks are in memory at a time
 */
export type Piece = string | Uint8Array | Part;

/** Bytes from `start` to before `end`. Not a view: ten thousand of those, each with its own note about their buffer, take as much memory as what they show. */
export interface Part { readonly bytes: Buffer; readonly start: number; readonly end: number }

/** Large enough that a block costs no more than its bytes; a few of them wait on a connection that is slow. */
export const BLOCK_BYTES: number = 256 * 1024;
/** What stands between items is so short that asking the engine for its bytes takes longer than to put them. */
const SHORT_TEXT_MAX = 8;

export function lengthOf(pieces: readonly Piece[]): number {
  let length = 0;
  for (const piece of pieces) length += lengthOfOne(piece);
  return length;
}

function lengthOfOne(piece: Piece): number {
  if (typeof piece === "string") return isPlain(piece) ? piece.length : Buffer.byteLength(piece);
  return piece instanceof Uint8Array ? piece.length : piece.end - piece.start;
}

/** Short, and ASCII. */
function isPlain(text: string): boolean {
  if (text.length > SHORT_TEXT_MAX) return false;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return false;
  return true;
}

export function assemble(pieces: readonly Piece[], length: number = lengthOf(pieces)): Buffer {
  const out = Buffer.allocUnsafeSlow(length);
  let at = 0;
  for (const piece of pieces) at = put(piece, out, at);
  return out;
}

/** Into a block with room for it. Returns where the next one goes. */
function put(piece: Piece, block: Buffer, at: number): number {
  if (typeof piece !== "string") {
    if (!(piece instanceof Uint8Array)) return at + piece.bytes.copy(block, at, piece.start, piece.end);
    block.set(piece, at);
    return at + piece.length;
  }
  if (!isPlain(piece)) return at + block.write(piece, at);
  for (let i = 0; i < piece.length; i++) block[at + i] = piece.charCodeAt(i);
  return at + piece.length;
}

/** `take` gives a block, perhaps one that was yielded before and is of no use to anyone any more. */
export function* blocks(pieces: readonly Piece[], take: () => Buffer = () => Buffer.allocUnsafeSlow(BLOCK_BYTES)): Iterable<Buffer> {
  let block = take();
  let at = 0;
  for (const piece of pieces) {
    if (block.length - at >= lengthMax(piece)) {
      at = put(piece, block, at);
      continue;
    }
    const { bytes, start, end } = partOf(piece);
    for (let from = start; from < end; ) {
      const copied = bytes.copy(block, at, from, end);
      at += copied;
      from += copied;
      if (at < block.length) continue;
      yield block;
      block = take();
      at = 0;
    }
  }
  if (at > 0) yield block.subarray(0, at);
}

function lengthMax(piece: Piece): number {
  if (typeof piece === "string") return piece.length * 3;
  return piece instanceof Uint8Array ? piece.length : piece.end - piece.start;
}

function partOf(piece: Piece): Part {
  if (typeof piece !== "string" && !(piece instanceof Uint8Array)) return piece;
  const bytes = typeof piece === "string" ? Buffer.from(piece) : Buffer.from(piece.buffer, piece.byteOffset, piece.length);
  return { bytes, start: 0, end: bytes.length };
}
