import { expect, test } from "vitest";
import { builtInFacts } from "../../schema/facts.ts";
import { inKeyOrder } from "../json-document.ts";
import { CborCodec } from "./codec.ts";
import { readCbor } from "./items.ts";
import { typedCbor } from "./typed.ts";
import { cborValue } from "./values.ts";
import { CborWriter } from "./writer.ts";

const SECRET = { kind: "Secret", apiVersion: "v1", metadata: { name: "a", generation: 300, labels: { aaa: "", ab: "ü", b: "1" } }, immutable: true, data: { e: "", k: "AQIDBA==" } };
const FOO = {
  apiVersion: "x.io/v1", kind: "Foo", metadata: { name: "a" },
  spec: { n: -1, f: -2.5, g: 1e300, h: 3.4028234663852886e38, i: 2n ** 63n - 1n, j: -(2n ** 63n), l: [null, true, {}, []], m: 65504.5, o: 2 ** -24, p: 2 ** 32, q: 2 ** -14 },
};

// As kubernetes v1.36's encoder writes them in order.
test.each<[object, string]>([
  [SECRET, "d9d9f7a54464617461a24165d640416bd64401020304446b696e6446536563726574486d65746164617461a3446e616d654161466c6162656c73a34162413142616242c3bc43616161404a67656e65726174696f6e19012c49696d6d757461626c65f54a61706956657273696f6e427631"],
  [{ kind: "Service", apiVersion: "v1", metadata: { name: "a", managedFields: [{ time: "2020-01-01T00:00:00Z", fieldsV1: { "f:b": {}, "f:a": {} } }] }, spec: { ports: [{ port: 70_000, targetPort: "web" }, { port: 81, targetPort: -1 }] }, status: { loadBalancer: {} } },
    "d9d9f7a5446b696e6447536572766963654473706563a145706f72747382a244706f72741a000111704a746172676574506f727443776562a244706f727418514a746172676574506f72742046737461747573a14c6c6f616442616c616e636572a0486d65746164617461a2446e616d6541614d6d616e616765644669656c647381a24474696d6554323032302d30312d30315430303a30303a30305a486669656c64735631a243663a61a043663a62a04a61706956657273696f6e427631"],
  [FOO, "d9d9f7a4446b696e6443466f6f4473706563ab4166f9c1004167fb7e37e43c8800759c4168fa7f7fffff41691b7fffffffffffffff416a3b7fffffffffffffff416c84f6f5a080416dfa477fe080416e20416ff9000141701b00000001000000004171f90400486d65746164617461a1446e616d6541614a61706956657273696f6e47782e696f2f7631"],
])("byte for byte", (object, hex) => expect(Buffer.from(new CborCodec(builtInFacts, new CborWriter({ inOrder: true })).encode(object)).toString("hex")).toBe(hex));

test("numbers that have a point by their type have it whatever they are, in a schema as well", () => {
  const schema = { maximum: 100, default: { b: 1 }, additionalProperties: { minimum: 100_000 } };
  const hex = Buffer.from(new CborWriter({ inOrder: true }).write(schema, builtInFacts.structNamed("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"))).toString("hex");
  expect(hex).toBe("d9d9f7a34764656661756c74a1416201476d6178696d756df95640546164646974696f6e616c50726f70657274696573a1476d696e696d756dfa47c35000");
});

test("in which order fields come is not to be relied on, and they are the same all the same", () => {
  const codec = new CborCodec(builtInFacts), orders = new Set<string>(), events = new Set<string>();
  for (let i = 0; i < 40; i++) {
    const bytes = codec.encode(SECRET);
    orders.add(Buffer.from(bytes).toString("hex"));
    expect(inKeyOrder(cborValue(readCbor(bytes)))).toEqual(inKeyOrder(SECRET));
    expect(typedCbor(builtInFacts.typeOf({ group: "", version: "v1", kind: "Secret" })!, readCbor(bytes))).toEqual({ object: SECRET, unknown: [] });
    const event = codec.encodeEvent("ADDED", SECRET);
    events.add(Buffer.from(event).subarray(0, 10).toString("hex"));
    expect(cborValue(readCbor(event))).toEqual({ type: "ADDED", object: SECRET });
  }
  expect(orders.size).toBeGreaterThan(20);
  expect(events.size).toBe(2);
});

test("what is longer than what there was room for", () => {
  const value = { a: "x".repeat(100_000), b: Array.from({ length: 10_000 }, (_, i) => i) };
  const writer = new CborWriter();
  for (let i = 0; i < 2; i++) expect(cborValue(readCbor(writer.write(value)))).toEqual(value);
});
