import { expect, test } from "vitest";
import { assemble, BLOCK_BYTES, blocks, lengthOf, type Piece } from "./pieces.ts";

const KEPT = Buffer.from("0123456789".repeat(50_000));
const pieces: Piece[] = [
  "{", "é", "ein längerer Text — mit Zeichen, die mehr als ein Byte sind", KEPT, ",", { bytes: KEPT, start: 3, end: 7 }, new Uint8Array([65, 66]), "", { bytes: KEPT, start: 9, end: 400_000 }, "ü".repeat(200_000), "]}\n",
];
const whole = pieces.map((piece) => (typeof piece === "string" ? piece : piece instanceof Uint8Array ? Buffer.from(piece).toString() : piece.bytes.toString("utf8", piece.start, piece.end))).join("");

test("text, bytes and parts of bytes make one body", () => {
  expect(lengthOf(pieces)).toBe(Buffer.byteLength(whole));
  expect(assemble(pieces).toString()).toBe(whole);
});

test("in blocks it is the same, though each is made in the place of the one before", () => {
  const only = Buffer.allocUnsafeSlow(BLOCK_BYTES);
  const taken = [...blocks(pieces, () => only)].length;
  let text = "";
  for (const block of blocks(pieces, () => only)) text += block.toString("latin1");
  expect(Buffer.from(text, "latin1").toString()).toBe(whole);
  expect(taken).toBe(Math.ceil(Buffer.byteLength(whole) / BLOCK_BYTES));
});
