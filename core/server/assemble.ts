/** A body out of many pieces, most of them kept from before: each byte is copied once, into one buffer of the right size. */
export type Piece = string | Uint8Array;

export function assemble(pieces: readonly Piece[]): Buffer {
  let length = 0;
  for (const piece of pieces) length += typeof piece === "string" ? Buffer.byteLength(piece) : piece.length;
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
