import { expect, test } from "vitest";
import { diagnoseValue } from "./diagnose-value.ts";
import { builtInFacts } from "./facts.ts";

const deployment = (spec: unknown) => diagnoseValue(builtInFacts.typeOf({ group: "apps", version: "v1", kind: "Deployment" })!, { metadata: { labels: { a: null } }, spec });
const container = (fields: object) => deployment({ template: { spec: { containers: [{ name: "c", ...fields }] } } });

test.each<[what: string, found: ReturnType<typeof diagnoseValue>, error: string | undefined]>([
  ["a text for a number", deployment({ replicas: "1" }), "unrecognized type: int32"],
  ["a fraction for a number", deployment({ replicas: 1.5 }), "cannot convert float64 to int32"],
  ["a truth for a number", deployment({ replicas: true }), "unrecognized type: int32"],
  ["a number for a text", container({ name: 1 }), "cannot convert int64 to string"],
  ["a fraction for a text", container({ name: 1.5 }), "unrecognized type: string"],
  ["a number for a text with a name", container({ imagePullPolicy: 1 }), "cannot convert int64 to v1.PullPolicy"],
  ["an object for a text", container({ image: {} }), "unrecognized type: string"],
  ["a text for an object", deployment("x"), "cannot restore struct from: string"],
  ["a list for an object", deployment([]), "cannot restore struct from: slice"],
  ["a number for a map", deployment({ selector: { matchLabels: 1 } }), "cannot restore map from int64"],
  ["an object for a list", deployment({ template: { spec: { containers: {} } } }), "cannot restore slice from map"],
  ["what has a decoder of its own", deployment({ strategy: { rollingUpdate: { maxSurge: 2.5 } } }), "json: cannot unmarshal number 2.5 into Go value of type int32"],
  ["the first of the struct's fields, whatever the order given", deployment({ strategy: "x", replicas: "1" }), "unrecognized type: int32"],
  ["nothing", deployment({ replicas: null, paused: true }), undefined],
])("%s is told of as the converter of maps does", (_, { error }, expected) => expect(error).toBe(expected));

test("bytes are a text of base64, or numbers", () => {
  const secret = (a: unknown) => diagnoseValue(builtInFacts.typeOf({ group: "", version: "v1", kind: "Secret" })!, { data: { a } }).error;
  expect([secret("YQ=="), secret([1]), secret("?"), secret(1)]).toEqual([undefined, undefined, "error decoding from json: illegal base64 data at input byte 0", "cannot restore slice from int64"]);
});

test("fields that are not known are in order, and as they are written", () => {
  expect(container({ 'b"': 1, a: 2 }).strict).toEqual(['unknown field "spec.template.spec.containers[0].a"', 'unknown field "spec.template.spec.containers[0].b""']);
});
