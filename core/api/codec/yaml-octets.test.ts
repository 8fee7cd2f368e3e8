import { expect, test } from "vitest";
import { decodeText, parseJson } from "./json.ts";
import { yamlTextOf } from "./yaml-octets.ts";
import { readYaml } from "./yaml.ts";

const around = (...octets: number[]): Uint8Array => Uint8Array.from([0x61, ...octets, 0x62]);

test.each<[octets: number[], problem: string]>([
  [[0xff], "invalid leading UTF-8 octet"], [[0x80], "invalid leading UTF-8 octet"], [[0xc3], "invalid trailing UTF-8 octet"], [[0xc0, 0x80], "invalid length of a UTF-8 sequence"], [[0xed, 0xa0, 0x80], "invalid Unicode character"],
  [[0xf5, 0x80, 0x80, 0x80], "invalid Unicode character"], [[0xf4, 0x80], "incomplete UTF-8 octet sequence"], [[0x00], "control characters are not allowed"], [[0x7f], "control characters are not allowed"], [[0xef, 0xbf, 0xbe], "control characters are not allowed"],
])("YAML of %j is refused: %s", (octets, problem) => {
  expect(() => yamlTextOf(around(...octets))).toThrow(`yaml: ${problem}`);
});

test.each([["\ufffd"], ["\u{1f600}"], ["\u00e9\u2028\t"]])("YAML may hold %j", (text) => expect(yamlTextOf(new TextEncoder().encode(text))).toBe(text));

test.each<[octets: number[], text: string]>([[[0xe2, 0x82], "a\ufffd\ufffdb"], [[0xff, 0xfe], "a\ufffd\ufffdb"], [[0xc3, 0xa9, 0xc3], "a\u00e9\ufffdb"], [[0xed, 0xa0, 0x80], "a\ufffd\ufffd\ufffdb"], [[0xc1, 0xbf, 0xe0, 0x9f, 0xbf], "a\ufffd\ufffd\ufffd\ufffd\ufffdb"],
  [[0xf0, 0x8f, 0xbf, 0xbf, 0xf4, 0x8f, 0xbf, 0xbf], "a\ufffd\ufffd\ufffd\ufffd\u{10ffff}b"], [[0xf4, 0x90, 0x80, 0x80], "a\ufffd\ufffd\ufffd\ufffdb"], [[0xed, 0x9f, 0xbf, 0xee, 0x80, 0x80, 0x80], "a\ud7ff\ue000\ufffdb"]])("JSON of %j has each byte that is none replaced", (octets, text) => {
  expect(decodeText(around(...octets))).toBe(text);
});

test("half a character is none in JSON, and neither a half nor two are one in YAML", () => {
  expect(parseJson('{"a":"x\\ud800y","b\\udc00":"\\ud83d\\ude00"}').value).toEqual({ a: "x\ufffdy", "b\ufffd": "\u{1f600}" });
  expect(() => readYaml('{"a":"\\ud83d\\ude00"}')).toThrow("yaml: found invalid Unicode character escape code");
  expect(() => readYaml('a: 1\nb: "\\ud800"\n')).toThrow("yaml: line 2: found invalid Unicode character escape code");
  expect(readYaml('a: "\\\\ud800"\nb: \'\\ud800\'\n').value).toEqual({ a: "\\ud800", b: "\\ud800" });
});
