import { describe, expect, test } from "vitest";
import { boolField, bytesField, doubleField, intField, nest, textField } from "./fields.ts";
import { BackwardWriter, FIXED32, putVarint, varintBytes, WireReader } from "./wire.ts";

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const reader = (text: string): WireReader => new WireReader(Buffer.from(text.replaceAll(" ", ""), "hex"));

describe("integers", () => {
  test.each<[number | bigint, string]>([
    [0, "00"], [127, "7f"], [128, "8001"], [300, "ac02"], [2 ** 32, "8080808010"], [Number.MAX_SAFE_INTEGER, "ffffffffffffff0f"],
    [-1, "ffffffffffffffffff01"], [-(2 ** 40), "8080808080e0ffffff01"], [2n ** 63n - 1n, "ffffffffffffffff7f"], [-(2n ** 63n), "80808080808080808001"],
  ])("%s", (value, bytes) => {
    const writer = new BackwardWriter(1);
    writer.int64(value);
    expect(hex(writer.finish())).toBe(bytes);
    expect(reader(bytes).int64()).toBe(value);
  });

  test("a length is measured as it is written", () => {
    for (const value of [0, 127, 128, 16_383, 16_384, 2 ** 31, Number.MAX_SAFE_INTEGER]) {
      const bytes = new Uint8Array(10);
      expect(putVarint(bytes, value, 0)).toBe(varintBytes(value));
      expect(new WireReader(bytes).varint()).toBe(value);
    }
  });

  test("neither a length nor a tag is negative or longer than a double knows", () => {
    for (const bytes of ["ffffffffffffffffff01", "ffffffffffffffff7f", "8080808080808080808001"]) expect(() => reader(bytes).varint(), bytes).toThrow("proto: integer overflow");
  });
});

test("fields are written from the last to the first, and read from the first", () => {
  const writer = new BackwardWriter(4);
  nest(writer, 9, () => {
    writer.float(0.5);
    writer.tag(6, FIXED32);
    doubleField(writer, 5, -0.25);
    bytesField(writer, 4, Uint8Array.of(0, 255));
    boolField(writer, 3, true);
    intField(writer, 2, 7);
    textField(writer, 1, "wéb");
  });
  const bytes = writer.finish();
  expect(hex(bytes)).toBe("4a1c" + "0a0477c3a962" + "1007" + "1801" + "220200ff" + "29000000000000d0bf" + "350000003f");

  const outer = new WireReader(bytes);
  expect(outer.varint()).toBe(0x4a);
  const inner = outer.message();
  const read: unknown[] = [];
  const next = { 1: () => inner.text(), 2: () => inner.int64(), 3: () => inner.varint(), 4: () => hex(inner.bytes()), 5: () => inner.double(), 6: () => inner.float() } as const;
  while (!inner.done) read.push(next[Math.floor(inner.varint() / 8) as keyof typeof next]());
  expect(read).toEqual(["wéb", 7, 1, "00ff", -0.25, 0.5]);
  expect(outer.done).toBe(true);
});

test("what ends early, or has no wire type that there is, is refused", () => {
  for (const bytes of ["", "80"]) expect(() => reader(bytes).int64(), bytes).toThrow("unexpected EOF");
  for (const bytes of ["0561", "ff01"]) {
    expect(() => reader(bytes).bytes(), bytes).toThrow("unexpected EOF");
    expect(() => reader(bytes).text(), bytes).toThrow("unexpected EOF");
    expect(() => reader(bytes).message(), bytes).toThrow("unexpected EOF");
  }
  expect(() => reader("000000").float()).toThrow("unexpected EOF");
  expect(() => reader("00000000").double()).toThrow("unexpected EOF");
  for (const type of [4, 6, 7]) expect(() => reader("00").skip(type)).toThrow(`proto: illegal wireType ${type}`);
  expect(() => reader("0801").skip(3)).toThrow("unexpected EOF");
});

test("a writer that is taken from begins anew", () => {
  const writer = new BackwardWriter();
  textField(writer, 1, "a".repeat(300_000));
  const first = writer.take();
  textField(writer, 1, "b");
  writer.clear();
  textField(writer, 1, "c");
  expect([first.length, hex(writer.take()), writer.length]).toEqual([300_004, "0a0163", 0]);
});
