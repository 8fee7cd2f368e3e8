import { expect, test } from "vitest";
import { encodeJson, jsonText, parseJson } from "./json.ts";

test.each([
  [`{"a":1`, "unexpected end of JSON input"], ["nul", "invalid character ' ' in literal null (expecting 'l')"], ["-", "invalid character ' ' in numeric literal"], ["1.", "invalid character ' ' after decimal point in numeric literal"], [``, "unexpected end of JSON input"], [`{"a" 1}`, "invalid character '1' after object key"],
  [`[1,]`, "invalid character ']' looking for beginning of value"], [`{"a":1}x`, "invalid character 'x' after top-level value"],
  [`{"a":01}`, "invalid character '1' after object key:value pair"], [`{"a":1.}`, "invalid character '}' after decimal point in numeric literal"],
  [`{"a":1e}`, "invalid character '}' in exponent of numeric literal"], [`{"a":-}`, "invalid character '}' in numeric literal"],
  [`{"a":"\n"}`, "invalid character '\\n' in string literal"], [`{"a":"\\x"}`, "invalid character 'x' in string escape code"],
  [`{"a":"\\u12g4"}`, "invalid character 'g' in \\u hexadecimal character escape"], [`{"a":nul}`, "invalid character '}' in literal null (expecting 'l')"],
  [`{a:1}`, "invalid character 'a' looking for beginning of object key string"], [`é`, "invalid character 'Ã' looking for beginning of value"],
])("%s is refused in Go's words", (text, message) => {
  expect(() => parseJson(text)).toThrow(message);
});

test("the last of several equal keys stands, and that there were several is known", () => {
  expect(parseJson(`{"a":1,"b":{"c:":"\\":","c:":2},"a":3}`)).toMatchObject({ value: { a: 3, b: { "c:": 2 } }, document: { kind: "object" } });
  expect(parseJson(`{"a":"x\\\\","b":":,{\\""}`).document).toBeUndefined();
});

test("integers beyond 2^53 survive, those beyond int64 are floats", () => {
  const { value } = parseJson(`{"a":9007199254740993,"b":-9223372036854775808,"c":18446744073709551616,"d":1.0}`);
  expect(value).toEqual({ a: 9007199254740993n, b: -9223372036854775808n, c: 2 ** 64, d: 1 });
  expect(jsonText(value)).toBe(`{"a":9007199254740993,"b":-9223372036854775808,"c":18446744073709552000,"d":1}`);
});

test("written as the API server writes it: HTML escaped, a newline at the end, none when pretty", () => {
  expect(new TextDecoder().decode(encodeJson({ a: "<&>\u2028é" }))).toBe(`{"a":"\\u003c\\u0026\\u003e\\u2028é"}\n`);
  expect(new TextDecoder().decode(encodeJson({ a: [1] }, { pretty: true }))).toBe(`{\n  "a": [\n    1\n  ]\n}`);
});

test("a text that nests without end is refused, whichever way it is read", () => {
  for (const depth of [1001, 5000, 200_000]) {
    expect(() => parseJson("[".repeat(depth) + "]".repeat(depth))).toThrow("exceeded max depth");
    expect(() => parseJson(`${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`)).toThrow("exceeded max depth");
  }
  expect(parseJson("[".repeat(1000) + "]".repeat(1000)).document).toBeUndefined();
});
