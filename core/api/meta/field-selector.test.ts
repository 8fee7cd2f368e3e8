import { expect, test } from "vitest";
import { growth } from "../../../test/reads.ts";
import { checkFieldsSupported, FieldSelector, parseFieldSelector } from "./field-selector.ts";

test.each([
  ["", "", {}, true],
  ["metadata.name=a", "metadata.name=a", { "metadata.name": "a" }, true],
  ["b==2,a!=1,", "a!=1,b=2", { b: "2" }, true],
  ["spec.nodeName=", "spec.nodeName=", {}, true],
  [String.raw`a=x\,y\=z\\`, String.raw`a=x\,y\=z\\`, { a: String.raw`x,y=z\ `.trim() }, true],
])("%j prints as %j", (text, printed, fields, matches) => {
  const selector = parseFieldSelector(text);
  expect([selector.toString(), selector.matches(fields as Record<string, string>)]).toEqual([printed, matches]);
});

test.each([
  ["foo", "invalid selector: 'foo'; can't understand 'foo'"],
  ["a=b=c", "invalid field selector: unescaped character in value: 61"],
  [String.raw`a=\x`, String.raw`invalid field selector: invalid escape sequence: \x`],
])("%j is refused", (text, message) => {
  expect(() => parseFieldSelector(text)).toThrow(message);
});

test("a field the kind does not offer is a bad request", () => {
  const selector = parseFieldSelector("metadata.name=a,status.phase=Running");
  expect(() => checkFieldsSupported(selector, ["spec.nodeName"])).toThrow("field label not supported: status.phase");
  expect(() => checkFieldsSupported(selector, [], "Job")).toThrow('field label "status.phase" not supported for Job');
  expect(() => checkFieldsSupported(selector)).toThrow('"status.phase" is not a known field selector: only "metadata.name", "metadata.namespace"');
  expect(checkFieldsSupported(selector, ["status.phase"])).toBeUndefined();
  const placed = parseFieldSelector("metadata.namespace=a");
  for (const kind of ["Node", "ClusterTrustBundle", "PodCertificateRequest"]) expect(() => checkFieldsSupported(placed, [], kind)).toThrow("field label not supported: metadata.namespace");
  expect(checkFieldsSupported(placed, [], "PersistentVolume")).toBeUndefined();
});

test.each([
  ["a=1,a=1", "1", true], ["a=1,a=2", "1", false], ["a=1,a!=1", "1", false], ["a=1,a!=2", "1", true], ["a=,a!=1", undefined, true], ["a!=", undefined, false], ["a!=1,a!=2", "2", false],
])("%j of one field: %j", (text, a, matches) => {
  expect(parseFieldSelector(text).matches(a === undefined ? {} : { a })).toBe(matches);
});

test("a large selector is asked of many objects without being gone through for each", () => {
  expect(growth((n, reads) => {
    const selector = new FieldSelector(reads.of(Array.from({ length: n }, (_, i) => ({ field: "metadata.name", operator: "!=" as const, value: `name-${i}` }))));
    for (let i = 0; i < n; i++) expect(selector.matches({ "metadata.name": "a" })).toBe(true);
  })).toBeLessThan(3);
});
