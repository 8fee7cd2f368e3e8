import { expect, test } from "vitest";
import { jsonValueOf, parseJsonDocument } from "../codec/json-document.ts";
import { builtInFacts } from "./facts.ts";
import { mergeRepeated } from "./merge-repeated.ts";

const read = (kind: string, text: string): unknown => jsonValueOf(mergeRepeated(builtInFacts.typeOf({ group: "", version: "v1", kind })!, parseJsonDocument(text)));

test.each([
  ["a map goes into the one before", "ConfigMap", '{"data":{"a":"1","b":"2"},"data":{"b":"3"}}', { data: { a: "1", b: "3" } }],
  ["a null empties a map", "ConfigMap", '{"data":{"a":"1"},"data":null}', { data: null }],
  ["a struct goes into the one before", "ConfigMap", '{"metadata":{"name":"a"},"metadata":{"labels":{"b":"c"}}}', { metadata: { name: "a", labels: { b: "c" } } }],
  ["a null leaves a text", "ConfigMap", '{"metadata":{"name":"a","name":null}}', { metadata: { name: "a" } }],
  ["a list is as long as the last one, and has of the earlier items what the new ones do not say", "ConfigMap", '{"metadata":{"ownerReferences":[{"name":"a","kind":"K"},{"name":"b"}],"ownerReferences":[{"name":"c"}]}}', { metadata: { ownerReferences: [{ name: "c", kind: "K" }] } }],
  ["a null empties what is behind a pointer", "Pod", '{"spec":{"securityContext":{"runAsUser":1},"securityContext":null}}', { spec: { securityContext: null } }],
])("%s", (_, kind, text, expected) => {
  expect(read(kind, text)).toEqual(expected);
});
