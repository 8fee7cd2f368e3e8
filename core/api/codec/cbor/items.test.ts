import { expect, test } from "vitest";
import { CborError, readCbor } from "./items.ts";
import { cborNotation } from "./notation.ts";
import { cborObject, cborValue } from "./values.ts";

const bytesOf = (hex: string): Uint8Array => Buffer.from(hex, "hex");
function read(hex: string): unknown {
  try { return cborValue(readCbor(bytesOf(hex))); } catch (error) {
    if (!(error instanceof CborError)) throw error;
    return new Error(error.message);
  }
}
const text = (what: string): string => Buffer.from(what).toString("hex");

// Cases: apimachinery/pkg/runtime/serializer/cbor/internal/modes/decode_test.go, RFC 8949 appendix A
test.each<[name: string, hex: string, value: unknown]>([
  ["an integer", "0a", 10],
  ["the largest integer a double holds, below none", "3b001ffffffffffffe", -Number.MAX_SAFE_INTEGER],
  ["the largest of 64 bits", "1b7fffffffffffffff", 2n ** 63n - 1n],
  ["the smallest of 64 bits", "3b7fffffffffffffff", -(2n ** 63n)],
  ["an empty byte string", "40", ""],
  ["bytes that are to be base64", "d64401020304", "AQIDBA=="],
  ["bytes that are to be base64url", "d544fbff0304", "-_8DBA"],
  ["bytes that are to be hex", "d744fbff0304", "fbff0304"],
  ["bytes within what is to be base64", "d6824101a1416144fbff0304", ["AQ==", { "YQ==": "+/8DBA==" }]],
  ["bytes that are no text", "42ff41", "\ufffdA"],
  ["a text in pieces", "7f616161626163ff", "abc"],
  ["lists without a length", "9f9f8080ff9f8080ffff", [[[], []], [[], []]]],
  ["maps without a length", "bf6141bf616101616202ff6142bf616901616a02ffff", { A: { a: 1, b: 2 }, B: { i: 1, j: 2 } }],
  ["a float of 16 bits", "f94200", 3], ["a small float of 16 bits", "f90001", 2 ** -24], ["a negative float of 16 bits", "f9c400", -4],
  ["a float of 32 bits", "fa7f7fffff", 3.4028234663852886e38], ["a float of 64 bits", "fb0000000000000001", 5e-324],
  ["null", "f6", null], ["true", "f5", true],
  ["a time that is told as a text", `c074${text("2006-01-02T15:04:05Z")}`, "2006-01-02T15:04:05Z"],
  ["a time that is counted", "c11a43b940e5", "2006-01-02T15:04:05Z"], ["a time before 1970", "c120", "1969-12-31T23:59:59Z"],
  ["a time with a fraction", "c1fbbff8000000000000", "1969-12-31T23:59:58.5Z"],
  ["a tag that says nothing here", "c48221196ab3", [-2, 27315]],
  ["the tag that says it is CBOR, twice", "d9d9f7d9d9f701", 1],
  ["a key that is a byte string", "a1416101", { a: 1 }],
  ["a name that objects have of their own", `a169${text("__proto__")}a1616101`, JSON.parse('{"__proto__":{"a":1}}')],
])("%s", (_, hex, value) => {
  expect(read(hex)).toEqual(value);
  expect(({} as { a?: unknown }).a).toBeUndefined();
});

test.each<[hex: string, problem: string]>([
  ["", "EOF"], ["18", "unexpected EOF"], ["6261", "unexpected EOF"], ["8201", "unexpected EOF"], ["9f01", "unexpected EOF"], ["c1", "unexpected EOF"],
  ["0101", "cbor: 1 bytes of extraneous data starting at index 1"],
  ["ff", 'cbor: unexpected "break" code'], ["bf01ff", 'cbor: unexpected "break" code'],
  ["1c", "cbor: invalid additional information 28 for type positive integer"], ["3f", "cbor: invalid additional information 31 for type negative integer"],
  ["7f4161ff", "cbor: wrong element type byte string for indefinite-length UTF-8 text string"], ["5f5fffff", "cbor: indefinite-length byte string chunk is not definite-length"],
  ["5bffffffffffffffff", "cbor: byte string length 18446744073709551615 is too large, causing integer overflow"],
  ["9bffffffffffffffff", "cbor: array length 18446744073709551615 is too large, it would cause integer overflow"],
  ["9a80000000", "cbor: exceeded max number of elements 2147483647 for CBOR array"], ["ba00200001", "cbor: exceeded max number of key-value pairs 2097152 for CBOR map"],
  ["f818", "cbor: invalid simple value 24 for type primitives"],
  ["f7", "cbor: data item of cbor type primitives is not accepted by protocol: simple value 23 is not recognized"], ["f8ff", "cbor: data item of cbor type primitives is not accepted by protocol: simple value 255 is not recognized"],
  ["f97c00", "cbor: data item of cbor type primitives is not accepted by protocol: floating-point infinity"], ["c1f9fc00", "cbor: data item of cbor type primitives is not accepted by protocol: floating-point infinity"],
  ["fb7ff8000000000000", "cbor: data item of cbor type primitives is not accepted by protocol: floating-point NaN"],
  ["c249010000000000000000", "cbor: data item of cbor type tag is not accepted by protocol: bignum"],
  ["1bffffffffffffffff", "cbor: cannot unmarshal positive integer into Go value of type int64 (18446744073709551615 overflows Go's int64)"],
  ["3bffffffffffffffff", "cbor: cannot unmarshal negative integer into Go value of type int64 (-18446744073709551616 overflows Go's int64)"],
  ["6180", "cbor: invalid UTF-8 string"], ["7f61c361bcff", "cbor: invalid UTF-8 string"],
  ["a2414101614102", 'cbor: found duplicate map key "A" at map element index 1'], ["a27f626865636c6c6fff017f616864656c6c6fff02", 'cbor: found duplicate map key "hello" at map element index 1'],
  ["a3616120610501616102", 'cbor: found duplicate map key "a" at map element index 2'],
  ["a1fb40091eb851eb851f63706965", "cbor: cannot unmarshal primitives into Go value of type string"], ["a10163706965", "cbor: cannot unmarshal positive integer into Go value of type string"],
  ["c054323030362d30312d30325431353a30343a30355a", "cbor: tag number 0 must be followed by text string, got byte string"], ["c160", "cbor: tag number 1 must be followed by integer or floating-point number, got UTF-8 text string"],
  ["c06474657874", 'cbor: cannot set text for time.Time: parsing time "text" as "2006-01-02T15:04:05Z07:00": cannot parse "text" as "2006"'],
  ["c11b0000003afff44181", "cbor: decoded time cannot be represented in RFC3339 format with sub-second precision: Time.MarshalText: year outside of range [0,9999]"],
])("%s: %s", (hex, problem) => expect(read(hex)).toEqual(new Error(problem)));

test("what nests too deep is refused before anything walks it, tags as well", () => {
  const problem = new Error("cbor: exceeded max nested level 1000");
  expect(read("81".repeat(1000) + "01")).toBeInstanceOf(Array);
  for (const head of ["81", "a100", "9f", "bf00", "c6"]) expect(read(head.repeat(1_000_000) + "01")).toEqual(problem);
});

test("a body is a map, or null", () => {
  expect(cborObject(readCbor(bytesOf("d9d9f7a1416101")))).toEqual({ a: 1 });
  expect(cborObject(readCbor(bytesOf("f6")))).toEqual({});
  expect(() => cborObject(readCbor(bytesOf("80")))).toThrow("cbor: cannot unmarshal array into Go value of type map[string]interface {}");
});

test("for people there is a notation", () => {
  const hex = `d9d9f7a7${[`4161d6${"4401020304"}`, "616242ff41", "616382f6f5", "6164fb4059000000000000", `6165f7`, `6166f0`, "61676322c3bc"].join("")}`;
  expect(cborNotation(readCbor(bytesOf(hex)))).toBe(String.raw`55799({'a': 22('\u0001\u0002\u0003\u0004'), "b": h'ff41', "c": [null, true], "d": 100.0, "e": undefined, "f": simple(16), "g": "\"\u00fc"})`);
});
