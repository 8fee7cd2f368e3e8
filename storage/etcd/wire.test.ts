import { expect, test } from "vitest";
import { ProtobufError } from "../../core/protobuf/wire.ts";
import { bytes, flag, int, many, message, one, string } from "./wire.ts";

const inner = message({ name: string(1), count: int(2) });
const outer = message({ key: bytes(1), on: flag(2), revision: int(6), one: one(8, inner), many: many(11, inner), far: int(64) });

test("what is written is read, what is not sent has its default", () => {
  const value = { key: Buffer.from("k"), on: true, revision: 2 ** 52 + 1, one: {}, many: [{ name: "ü", count: 300 }, {}], far: 1 };
  expect(outer.decode(outer.encode(value))).toEqual({ ...value, one: { name: "", count: 0 }, many: [{ name: "ü", count: 300 }, { name: "", count: 0 }] });
  expect(outer.decode(Buffer.alloc(0))).toEqual({ key: Buffer.alloc(0), on: false, revision: 0, one: undefined, many: [], far: 0 });
});

test("the bytes are those of protobuf", () => {
  expect(outer.encode({ key: Buffer.from("ab"), revision: 300, one: { count: 0 }, far: 1 }).toString("hex")).toBe("0a026162" + "30ac02" + "42021000" + "800401");
});

test("unknown fields of every wire type are skipped, broken bytes are refused", () => {
  const unknown = "1801" + "2103000000000000" + "00" + "2a0161" + "3d01000000";
  expect(outer.decode(Buffer.from(`${unknown}3005`, "hex")).revision).toBe(5);
  for (const broken of ["0a05", "30", "30ffffffffffffffffffffff01", "0b", "0a0261"]) expect(() => outer.decode(Buffer.from(broken, "hex"))).toThrow(ProtobufError);
  expect(() => inner.encode({ count: -1 })).toThrow(RangeError);
});
