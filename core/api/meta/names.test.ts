import { expect, test } from "vitest";
import { formatDurationNs, parseDurationNs } from "./duration.ts";
import { intValue, scaleIntOrPercent } from "./int-or-string.ts";
import { configMapKey, dns1035Label, dns1123Label, dns1123Subdomain, labelValue, nameProblems, portName, qualifiedName, relaxedEnvVarName } from "./names.ts";
import { parseTime } from "./time.ts";
import { microTimestamp, timestamp } from "../../lifecycle/clock.ts";

const LABEL = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character " +
  "(e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character " +
  "(e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

test.each([
  [dns1123Label("web-1"), []], [dns1123Label("Web"), [LABEL]], [dns1123Label("a.b"), ["must not contain dots"]],
  [dns1123Label("a".repeat(64)), ["must be no more than 63 characters"]],
  [dns1123Subdomain("a.b-c"), []], [dns1123Subdomain("a..b"), [SUBDOMAIN]], [dns1035Label("a1"), []], [dns1035Label("1a").length, 1],
  [qualifiedName("example.com/a_b"), []], [qualifiedName("/a"), ["prefix part must be non-empty"]], [qualifiedName("a".repeat(64)), ["name part must be no more than 63 bytes"]],
  [labelValue(""), []], [labelValue("é").length, 1], [labelValue("a".repeat(64)), ["must be no more than 63 bytes"]],
  [portName("http"), []], [portName("a--b"), ["must not contain consecutive hyphens"]], [portName("80"), ["must contain at least one letter (a-z)"]],
  [configMapKey("..a"), ["must not start with '..'"]], [configMapKey(".a"), []],
  [relaxedEnvVarName("a b"), []], [relaxedEnvVarName("a=b"), ["a valid environment variable name must consist only of printable ASCII characters other than '='"]],
  [nameProblems("dns1123Subdomain", "web-", { prefix: true }), []], [nameProblems("dns1123Subdomain", "web-"), [SUBDOMAIN]], [nameProblems("pathSegment", "a/b"), ["may not contain '/'"]],
])("%j", (problems, expected) => {
  expect(problems).toEqual(expected);
});

test.each([["25%", true, 3], ["25%", false, 2], ["0%", true, 0], [4, true, 4], ["150%", false, 15]] as const)("%s of ten, rounded up %s, is %i", (value, roundUp, expected) => {
  expect(scaleIntOrPercent(value, { total: 10, roundUp })).toBe(expected);
});

test("what is neither number nor percentage is told so", () => {
  expect(() => scaleIntOrPercent("x", { total: 1, roundUp: true })).toThrow("invalid value for IntOrString: invalid type: string is not a percentage");
  expect(() => scaleIntOrPercent("x%", { total: 1, roundUp: true })).toThrow(`invalid value for IntOrString: invalid value "x%": strconv.Atoi: parsing "x": invalid syntax`);
  expect(() => scaleIntOrPercent("9223372036854775808%", { total: 1, roundUp: true })).toThrow(`invalid value "9223372036854775808%": strconv.Atoi: parsing "9223372036854775808": value out of range`);
  expect(() => scaleIntOrPercent("99999999999999999999x%", { total: 1, roundUp: true })).toThrow("value out of range");
  expect([intValue("80"), intValue("http"), intValue(7)]).toEqual([80, 0, 7]);
});

test.each([["1h30m", "1h30m0s"], ["90s", "1m30s"], ["1.5h", "1h30m0s"], ["300ms", "300ms"], ["1.5s", "1.5s"], ["-2us", "-2\u00b5s"], ["0", "0s"], ["100h", "100h0m0s"], ["1ns", "1ns"]])(
  "the duration %s prints as %s", (written, printed) => { expect(formatDurationNs(parseDurationNs(written))).toBe(printed); });

test.each([["", 'time: invalid duration ""'], ["5", 'time: missing unit in duration "5"'], ["5d", 'time: unknown unit "d" in duration "5d"'], ["300y1h", 'time: unknown unit "y" in duration "300y1h"'],
  ["9999999h", 'time: invalid duration "9999999h"'], ["5constructor", 'time: unknown unit "constructor" in duration "5constructor"'],
  ["99999999999999999999", 'time: invalid duration "99999999999999999999"'], ["5\u00b5", String.raw`time: unknown unit "\xc2\xb5" in duration "5\xc2\xb5"`], ['"\n', String.raw`time: invalid duration "\"\x0a"`],
])("%j is no duration", (written, message) => { expect(() => parseDurationNs(written)).toThrow(new Error(message)); });

test("times are whole seconds, micro times are not; what is no date is none", () => {
  const ms = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
  expect([timestamp(ms), microTimestamp(ms + 0.5)]).toEqual(["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.678000Z"]);
  expect([parseTime("2026-01-02T04:04:05.678+01:00"), parseTime("2026-02-30T00:00:00Z"), parseTime("2026-01-02")]).toEqual([ms, undefined, undefined]);
});

test.each([
  "0000-01-01T00:00:00Z", "0099-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "2024-02-29T12:34:56Z", "2000-02-29T00:00:00Z", "9999-12-31T23:59:59Z", "2026-11-20T19:05:01Z",
])("%s is the same time however it is spelled", (text) => {
  expect(parseTime(text)).toBe(Date.parse(text));
  expect(parseTime(text.replace("Z", "+00:00"))).toBe(Date.parse(text));
});

test.each(["2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2026-00-01T00:00:00Z", "2026-13-01T00:00:00Z", "2026-04-31T00:00:00Z", "2026-01-00T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01T00:00:60Z"])(
  "%s is no time", (text) => { expect([parseTime(text), parseTime(text.replace("Z", "+00:00"))]).toEqual([undefined, undefined]); });
