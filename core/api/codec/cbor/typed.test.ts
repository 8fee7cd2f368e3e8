import { expect, test } from "vitest";
import { builtInFacts, type StructType } from "../../schema/facts.ts";
import { CborError, readCbor } from "./items.ts";
import { cborTypeMeta, typedCbor } from "./typed.ts";

const head = (major: number, length: number): Buffer => Buffer.from(length < 24 ? [(major << 5) | length] : [(major << 5) | 24, length]);
/** CBOR of what is written as in Go's tests: texts are texts; a Buffer is what it is; a list of pairs in a Map is a map. */
function item(value: unknown): Buffer {
  if (Buffer.isBuffer(value)) return value;
  if (typeof value === "string") return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)]);
  if (typeof value === "number") return value < 0 ? head(1, -1 - value) : head(0, value);
  if (typeof value === "boolean") return Buffer.from([value ? 0xf5 : 0xf4]);
  if (value === null) return Buffer.from([0xf6]);
  if (Array.isArray(value)) return Buffer.concat([head(4, value.length), ...value.map(item)]);
  const pairs = value instanceof Pairs ? value.pairs : Object.entries(value as object);
  return Buffer.concat([head(5, pairs.length), ...pairs.flatMap(([key, one]) => [item(key), item(one)])]);
}
class Pairs { readonly pairs: readonly (readonly [unknown, unknown])[]; constructor(...pairs: readonly (readonly [unknown, unknown])[]) { this.pairs = pairs; } }
const hex = (digits: string): Buffer => Buffer.from(digits, "hex");
const typeOf = (kind: string, group = "", version = "v1"): StructType => builtInFacts.typeOf({ group, version, kind })!;
const read = (type: StructType, value: unknown): ReturnType<typeof typedCbor> => typedCbor(type, readCbor(item(value)));
const SECRET = typeOf("Secret"), POD = typeOf("Pod"), CRD = typeOf("CustomResourceDefinition", "apiextensions.k8s.io"), HPA = typeOf("HorizontalPodAutoscaler", "autoscaling", "v2"), LEASE = typeOf("Lease", "coordination.k8s.io");

function problemOf(type: StructType, value: unknown): string | undefined {
  try { read(type, value); } catch (error) { return error instanceof CborError ? error.message : undefined; }
  return undefined;
}

test("what fits is read as its type has it", () => {
  const bytes = new Pairs(["a", hex("d64401020304")], ["b", hex(`48${Buffer.from("AQIDBA==").toString("hex")}`)], ["c", [1, 2]], ["d", null]);
  expect(read(SECRET, { immutable: true, metadata: { generation: 3, creationTimestamp: null, labels: { a: hex("4162") } }, data: bytes })).toEqual({
    object: { immutable: true, metadata: { generation: 3, creationTimestamp: null, labels: { a: "b" } }, data: { a: "AQIDBA==", b: "AQIDBA==", c: "AQI=", d: null } }, unknown: [],
  });
  expect(read(typeOf("Service"), { spec: { ports: [{ port: 80, targetPort: 200 }, { port: 81, targetPort: "web" }] } }).object["spec"]).toEqual({ ports: [{ port: 80, targetPort: 200 }, { port: 81, targetPort: "web" }] });
  const fields = new Pairs(["f:b", new Pairs()], ["f:a", new Pairs()]);
  expect(JSON.stringify(read(POD, { metadata: { managedFields: [{ fieldsV1: fields }] } }).object["metadata"])).toBe('{"managedFields":[{"fieldsV1":{"f:a":{},"f:b":{}}}]}');
  expect(read(CRD, { spec: { versions: [{ schema: { openAPIV3Schema: { maximum: 5, additionalProperties: true, items: [{ type: "string" }], default: { b: 1 } } } }] } }).object["spec"])
    .toEqual({ versions: [{ schema: { openAPIV3Schema: { maximum: 5, additionalProperties: true, items: [{ type: "string" }], default: { b: 1 } } } }] });
});

test("of fields that are not known one is told: a struct's own goes before those below it", () => {
  const told = (value: unknown): readonly string[] => read(POD, value).unknown;
  expect(told({ spec: { x: 1 } })).toEqual(["cbor: found unknown field at map element index 0"]);
  expect(told({ Metadata: {}, metadata: {} })).toEqual(["cbor: found unknown field at map element index 0"]);
  expect(told({ metadata: { name: "a", x: 1 }, spec: { x: 1 } })).toEqual(["cbor: found unknown field at map element index 1"]);
  expect(told({ metadata: { x: 1 }, spec: {}, y: 1 })).toEqual(["cbor: found unknown field at map element index 2"]);
  expect(told(new Pairs(["metadata", {}], [7, 1]))).toEqual(["cbor: found unknown field at map element index 1"]);
});

test.each<[StructType, unknown, string]>([
  [POD, { spec: { terminationGracePeriodSeconds: "5" } }, "cbor: cannot unmarshal UTF-8 text string into Go struct field v1.Pod.spec of type int64"],
  [POD, { spec: { terminationGracePeriodSeconds: hex("fb3ff0000000000000") } }, "cbor: cannot unmarshal primitives into Go struct field v1.Pod.spec of type int64"],
  [POD, { spec: { priority: hex("1a80000000") } }, "cbor: cannot unmarshal positive integer into Go struct field v1.Pod.spec of type int32 (2147483648 overflows int32)"],
  [POD, { spec: { containers: [[]] } }, "cbor: cannot unmarshal array into Go struct field v1.Pod.spec of type v1.Container (cannot decode CBOR array to struct without toarray option)"],
  [POD, { spec: { containers: [{ ports: [{ protocol: 1 }] }] } }, "cbor: cannot unmarshal positive integer into Go struct field v1.Pod.spec of type v1.Protocol"],
  [POD, { metadata: { labels: new Pairs([1, "a"]) } }, "cbor: cannot unmarshal positive integer into Go struct field v1.Pod.metadata of type string"],
  [POD, { metadata: new Pairs([[], 1]) }, "cbor: cannot unmarshal array into Go struct field v1.Pod.metadata of type string (map key is of type array and cannot be used to match struct field name)"],
  [POD, { metadata: new Pairs(["name", "a"], [hex("446e616d65"), "b"]) }, 'cbor: found duplicate map key "name" at map element index 1'],
  [POD, { metadata: new Pairs(["x", "a"], ["x", "b"]) }, 'cbor: found duplicate map key "x" at map element index 1'],
  [POD, { metadata: new Pairs([-1, "a"], [-1, "b"]) }, "cbor: found duplicate map key -1 at map element index 1"],
  [POD, { metadata: new Pairs(["generation", "a"], ["name", "b"], ["name", "b"]) }, 'cbor: found duplicate map key "name" at map element index 2'],
  [POD, { metadata: { creationTimestamp: 5 } }, "cbor: cannot unmarshal positive integer into Go struct field v1.Pod.metadata of type string"],
  [POD, { metadata: { creationTimestamp: "never" } }, 'parsing time "never" as "2006-01-02T15:04:05Z07:00": cannot parse "never" as "2006"'],
  [POD, { spec: { overhead: { cpu: 1 } } }, "cbor: cannot unmarshal positive integer into Go struct field v1.Pod.spec of type string"],
  [POD, { spec: { overhead: { cpu: "x" } } }, "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"],
  [SECRET, { data: { a: "AQI=" } }, "cbor: cannot unmarshal UTF-8 text string into Go struct field v1.Secret.data of type []uint8"],
  [SECRET, { data: { a: hex("41ff") } }, "cbor: failed to decode base64 from byte string: illegal base64 data at input byte 0"],
  [SECRET, { immutable: 1 }, "cbor: cannot unmarshal positive integer into Go struct field v1.Secret.immutable of type bool"],
  [CRD, { spec: { versions: [{ schema: { openAPIV3Schema: { additionalProperties: 1 } } }] } }, "boolean or JSON schema expected"],
  [CRD, { spec: { versions: [{ schema: { openAPIV3Schema: { additionalProperties: { x: 1 } } } }] } }, "cbor: found unknown field at map element index 0"],
  [HPA, { spec: { minReplicas: true } }, "cbor: cannot unmarshal primitives into Go struct field v2.HorizontalPodAutoscaler.spec of type int32"],
  [LEASE, { spec: { renewTime: "2020-01-01T00:00:00Z" } }, 'parsing time "2020-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"'],
])("%#", (type, value, problem) => expect(problemOf(type, value)).toBe(problem));

test("what it is is read first, whatever else there is", () => {
  expect(cborTypeMeta(readCbor(item({ kind: "Pod", x: 1, apiVersion: hex("427631") })))).toEqual({ kind: "Pod", apiVersion: "v1" });
  expect(cborTypeMeta(readCbor(item(null)))).toEqual({ kind: "", apiVersion: "" });
  expect(() => cborTypeMeta(readCbor(item([])))).toThrow("cbor: cannot unmarshal array into Go value of type v1.TypeMeta (cannot decode CBOR array to struct without toarray option)");
  expect(() => cborTypeMeta(readCbor(item({ kind: 5 })))).toThrow("cbor: cannot unmarshal positive integer into Go struct field v1.TypeMeta.kind of type string");
});
