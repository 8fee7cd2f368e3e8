import { expect, test } from "vitest";
import { formatFieldError } from "../../../api/meta/field-error.ts";
import { jsonDiff } from "./diff.ts";
import { semanticEqual } from "./equal.ts";
import { cidrWarnings, endpointIp, formatAddress, ipWarnings, legacyCidr, legacyIp, parseAddress, strictIp } from "./ip.ts";
import { containerResourceName, quotaResourceName, resourceQuantity } from "./resources.ts";

const texts = (errors: Iterable<Parameters<typeof formatFieldError>[0]>): string[] => [...errors].map(formatFieldError);

test.each([
  ["1:0:0:0:0:0:0:1", "1::1"], ["0:0:0:0:0:0:0:0", "::"], ["::1", "::1"], ["2001:DB8:0:0:1:0:0:0", "2001:db8:0:0:1::"], ["fe80:0:0:1:0:0:0:1", "fe80:0:0:1::1"],
  ["1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"], ["10.0.0.1", "10.0.0.1"], ["::ffff:10.0.0.1", "10.0.0.1"], ["1::", "1::"],
])("%s is written %s", (text, canonical) => expect(formatAddress(parseAddress(text)!)).toBe(canonical));

test("addresses and ranges are refused in upstream's words", () => {
  expect(texts(legacyIp("p", "10.0.0"))).toEqual([`p: Invalid value: "10.0.0": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`]);
  expect(texts(legacyIp("p", "010.0.0.1"))).toEqual([`p: Invalid value: "010.0.0.1": must not have leading 0s`]);
  expect(texts(legacyIp("p", "010.0.0.1", new Set(["010.0.0.1"])))).toEqual([]);
  expect(texts(legacyIp("p", "::ffff:010.0.0.1"))).toEqual([`p: Invalid value: "::ffff:010.0.0.1": must not have leading 0s`]);
  expect(texts(legacyCidr("p", "::ffff:10.0.0.0/64"))).toEqual([`p: Invalid value: "::ffff:10.0.0.0/64": must not have an IPv4-mapped IPv6 address`]);
  expect(texts(endpointIp("p", "ff12::1"))).toEqual([`p: Invalid value: "ff12::1": may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)`]);
  expect(texts(strictIp("p", "FD00::1"))).toEqual([`p: Invalid value: "FD00::1": must be in canonical form ("fd00::1")`]);
  expect(texts(legacyCidr("p", "10.0.0.1/24"))).toEqual([`p: Invalid value: "10.0.0.1/24": must not have bits set beyond the prefix length`]);
  expect(texts(endpointIp("p", "127.0.0.1"))).toEqual([`p: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)`]);
  expect(texts(endpointIp("p", "fe80::1"))).toEqual([`p: Invalid value: "fe80::1": may not be in the link-local range (169.254.0.0/16, fe80::/10)`]);
  expect([...ipWarnings("p", "::FFFF:1.2.3.4")]).toEqual([`p: non-standard IP address "::FFFF:1.2.3.4" is invalid: use "1.2.3.4"`]);
  expect([...cidrWarnings("p", "10.0.0.1/24")]).toEqual([`p: CIDR value "10.0.0.1/24" is ambiguous in this context (should be "10.0.0.0/24" or "10.0.0.1/32"?)`]);
});

test("names and amounts of resources", () => {
  expect(texts(containerResourceName("p", "gpu"))).toEqual([
    `p: Invalid value: "gpu": must be a standard resource type or fully qualified`, `p: Invalid value: "gpu": must be a standard resource for containers`,
  ]);
  expect(texts(containerResourceName("p", "example.com/gpu"))).toEqual([]);
  expect(texts(quotaResourceName("p", "storage"))).toEqual([`p: Invalid value: "storage": must be a standard resource for quota`]);
  expect(texts(resourceQuantity("p", "example.com/gpu", "500m"))).toEqual([`p: Invalid value: "500m": must be an integer`]);
  expect(texts(resourceQuantity("p", "cpu", "-1"))).toEqual([`p: Invalid value: "-1": must be greater than or equal to 0`]);
});

test.each([
  [{ requests: { memory: "1Gi" } }, { requests: { memory: "1073741824" } }, true],
  [{ a: [] }, {}, true], [{ a: {} }, {}, false], [{ a: "1Gi" }, { a: "1073741824" }, false], [[1, 2], [2, 1], false],
])("%j means %j: %s", (a, b, same) => expect(semanticEqual(a, b)).toBe(same));

test("a diff is unified, with three lines of context", () => {
  expect(jsonDiff({ a: 1, b: 2, c: 3, d: 4, e: 5, f: 6 }, { a: 1, b: 2, c: 3, d: 4, e: 9, f: 6, g: 7 })).toBe(
    `@@ -3,6 +3,7 @@\n  "b": 2,\n  "c": 3,\n  "d": 4,\n- "e": 5,\n- "f": 6\n+ "e": 9,\n+ "f": 6,\n+ "g": 7\n }\n`);
  // Built around the longest run both have.
  expect(jsonDiff([3, 3, 2], [1, 3, 3])).toBe("@@ -1,5 +1,5 @@\n [\n+ 1,\n  3,\n- 3,\n- 2\n+ 3\n ]\n");
  const long = (from: number): number[] => Array.from({ length: 3000 }, (_, i) => from + i);
  expect(jsonDiff([0, ...long(1), 0], [0, ...long(10_000), 0]).split("\n")).toHaveLength(6006);
});

test("of lines that are there twice the earlier one stays, in a diff", () => {
  const list = (...names: string[]) => ({ list: names.map((name) => ({ name })) });
  expect(jsonDiff(list("a"), list("b", "a"))).toBe(`@@ -1,5 +1,8 @@\n {\n  "list": [\n+  {\n+   "name": "b"\n+  },\n   {\n    "name": "a"\n   }\n`);
  expect(jsonDiff(list("x", "a"), list("a", "y"))).toBe(`@@ -1,10 +1,10 @@\n {\n  "list": [\n   {\n-   "name": "x"\n+   "name": "a"\n   },\n   {\n-   "name": "a"\n+   "name": "y"\n   }\n  ]\n }\n`);
  expect(jsonDiff({ a: "x&y" }, { a: "<" })).toBe(`@@ -1,3 +1,3 @@\n {\n- "a": "x\\u0026y"\n+ "a": "\\u003c"\n }\n`);
});

test("what has lines in common everywhere and nowhere for long is looked through so long, and then told as replaced", () => {
  const list = Array.from({ length: 1_900 }, (_, i) => (i * 37) % 100);
  const same = jsonDiff(list, list.toReversed()).split("\n").filter((line) => line.startsWith(" ")).length;
  expect(same).toBeLessThan(1_000);
  expect(jsonDiff(list, [...list.slice(0, 900), -1, ...list.slice(900)]).split("\n")).toHaveLength(9);
});
