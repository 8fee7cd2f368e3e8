import { expect, test } from "vitest";
import { canonical } from "../schema/canonical.ts";
import { builtInFacts, type Scalar, type StructType, type Type } from "../schema/facts.ts";
import type { JsonObject, JsonValue } from "./json-document.ts";
import { jsonText } from "./json.ts";
import { assemble } from "./pieces.ts";
import { protobufCodec, unwrapEnvelope } from "./protobuf.ts";
import { jsonWatchPieces, protobufWatchPieces } from "./watch-frames.ts";

/** Bytes put together by hand from the .proto files: tag, length, content. */
const GOLDENS: readonly [what: string, object: JsonObject, hex: string][] = [
  ["an empty ConfigMap writes its zero metadata", { kind: "ConfigMap", apiVersion: "v1" },
    "6b387300" + "0a0f" + "0a027631" + "1209436f6e6669674d6170" + "1212" + "0a10" + "0a00" + "1200" + "1a00" + "2200" + "2a00" + "3200" + "3800" + "4200" + "1a00" + "2200"],
  ["maps by key, bytes as bytes", { kind: "Secret", apiVersion: "v1", metadata: { name: "s" }, data: { b: "AQ==", a: "" }, type: "Opaque" },
    "6b387300" + "0a0c" + "0a027631" + "1206536563726574" + "122a" + "0a11" + "0a0173" + "1200" + "1a00" + "2200" + "2a00" + "3200" + "3800" + "4200" +
    "1205" + "0a0161" + "1200" + "1206" + "0a0162" + "120101" + "1a06" + "4f7061717565" + "1a00" + "2200"],
];

test.each(GOLDENS)("%s", (_what, object, hex) => {
  expect(Buffer.from(protobufCodec.encode(object as never)).toString("hex")).toBe(hex);
  expect(protobufCodec.decode(Buffer.from(hex, "hex"))).toMatchObject(object);
});

test("every kind comes back as it went out, with every field set", () => {
  let count = 0;
  for (const { group, version, kinds } of builtInFacts.groupVersions()) {
    for (const kind of kinds.flatMap((name) => [name, `${name}List`])) {
      const type = builtInFacts.typeOf({ group, version, kind });
      if (!type) continue;
      const filled = { ...fill(type, 0), apiVersion: group === "" ? version : `${group}/${version}`, kind };
      const { object, clean } = canonical(type, filled);
      expect(clean, kind).toBe(true);
      expect(jsonText(protobufCodec.decode(protobufCodec.encode(object as never))), kind).toBe(jsonText(object));
      count++;
    }
  }
  expect(count).toBeGreaterThan(200);
});

test("and with none set", () => {
  for (const { group, version, kinds } of builtInFacts.groupVersions()) {
    for (const kind of kinds) {
      const { object } = canonical(builtInFacts.typeOf({ group, version, kind })!, { apiVersion: group === "" ? version : `${group}/${version}`, kind });
      expect(jsonText(protobufCodec.decode(protobufCodec.encode(object as never))), kind).toBe(jsonText(object));
    }
  }
});

test.each([
  ["0001-01-01T00:00:00.000001Z", "0001-01-01T00:00:00.000001Z"], ["0000-01-01T00:00:00.000000Z", "0000-01-01T00:00:00.000000Z"], ["9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"],
])("the time %s comes back", (given, back) => {
  const lease = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name: "l" }, spec: { renewTime: given } };
  expect(protobufCodec.decode(protobufCodec.encode(lease as never))).toMatchObject({ spec: { renewTime: back } });
});

/** A Lease whose renewTime has such seconds and nanoseconds. */
function renewedAt(seconds: bigint, nanos: number): unknown {
  const varint = (value: bigint): number[] => (value < 128n ? [Number(value)] : [Number(value & 127n) | 128, ...varint(value >> 7n)]);
  const message = (number: number, content: readonly number[]): number[] => [(number << 3) | 2, ...varint(BigInt(content.length)), ...content];
  const time = [8, ...varint(BigInt.asUintN(64, seconds)), 16, ...varint(BigInt.asUintN(64, BigInt(nanos)))];
  const typeMeta = [...message(1, [...Buffer.from("coordination.k8s.io/v1")]), ...message(2, [...Buffer.from("Lease")])];
  const lease = [...message(1, []), ...message(2, message(4, time))];
  const { spec } = protobufCodec.decode(Uint8Array.from([0x6b, 0x38, 0x73, 0, ...message(1, typeMeta), ...message(2, lease)])) as { readonly spec: { readonly renewTime: unknown } };
  return spec.renewTime;
}

test.each<[bigint, number, string | null]>([
  [0n, 5_999, "1970-01-01T00:00:00.000005Z"], [0n, -1_000, "1969-12-31T23:59:59.999999Z"], [0n, 2_147_483_647, "1970-01-01T00:00:02.147483Z"],
  [-62_135_596_800n, 0, null], [-(2n ** 63n), 0, "0000-01-01T00:00:00.000000Z"], [2n ** 63n - 1n, 0, "9999-12-31T23:59:59.000000Z"], [253_402_300_800n, 0, "9999-12-31T23:59:59.000000Z"],
])("%s seconds and %s ns are a time that can be written", (seconds, nanos, text) => expect(renewedAt(seconds, nanos) ?? null).toBe(text));

test("a list in a map may be none", () => {
  const review = { apiVersion: "authorization.k8s.io/v1", kind: "SubjectAccessReview", spec: { extra: { a: null, b: ["c"] } } };
  expect(protobufCodec.decode(protobufCodec.encode(review as never))).toMatchObject({ spec: { extra: { b: ["c"] } } });
});

test("a list is its items' messages in one envelope", () => {
  const items = ["a", "b", "c".repeat(300)].map((name) => ({ metadata: { name } }));
  const type = builtInFacts.typeOf({ group: "", version: "v1", kind: "ConfigMap" })!;
  const list = { apiVersion: "v1", kind: "ConfigMapList", metadata: { resourceVersion: "7" } };
  const joined = assemble(protobufCodec.listPieces(list, items.map((item) => protobufCodec.encodeMessage(type, item))));
  expect(joined.equals(protobufCodec.encode({ ...list, items } as never))).toBe(true);
});

test("cut off or nonsensical bytes are an error, never a hang or a crash", () => {
  const type = builtInFacts.typeOf({ group: "", version: "v1", kind: "Pod" })!;
  const bytes = protobufCodec.encode({ ...canonical(type, fill(type, 0)).object, apiVersion: "v1", kind: "Pod" } as never);
  for (let length = 0; length < bytes.length; length += 37) {
    try { protobufCodec.decode(bytes.subarray(0, length)); }
    catch (error) { expect((error as Error).message).not.toMatch(/undefined|not a function|RangeError/); }
  }
  expect(() => unwrapEnvelope(Buffer.from("6b387300120bff", "hex"))).toThrow("unexpected EOF");
  expect(() => protobufCodec.decode(Buffer.from("6b3873000a090a0276311203506f64120108", "hex"))).toThrow("proto: wrong wireType = 0 for field ObjectMeta");
});

test.each([
  ["0a", "unexpected EOF"], ["00", "proto: Unknown: illegal tag 0 (wire type 0)"], ["0c", "proto: Unknown: wiretype end group for non-group"], ["1b", "proto: wrong wireType = 3 for field ContentEncoding"],
  ["0a0104", "proto: TypeMeta: wiretype end group for non-group"], ["0a020801", "proto: wrong wireType = 0 for field APIVersion"], ["12ffffffffffffffffff01", "proto: negative length found during unmarshaling"], ["12ffffffffffffffff7f", "proto: negative length found during unmarshaling"],
  ["2b", "unexpected EOF"], ["2b2c", undefined], ["2b33080134122a05000000002c", "unexpected EOF"], ["2b330801341202ffff2c", undefined], ["2f", "proto: illegal wireType 7"],
])("an envelope of %s: %s", (hex, message) => {
  const read = (): unknown => unwrapEnvelope(Buffer.from(`6b387300${hex}`, "hex"));
  if (message === undefined) expect(read()).toMatchObject({ kind: "" });
  else expect(read).toThrow(message);
});

test.each([
  ["02", "proto: Pod: illegal tag 0 (wire type 2)"], ["0a0104", "proto: ObjectMeta: wiretype end group for non-group"], ["0a025801", "proto: wrong wireType = 0 for field Labels"],
  ["120412020a00", undefined], ["1204120210ff", "proto: wrong wireType = 0 for field Image"],
])("a Pod of %s: %s", (hex, message) => {
  const type = builtInFacts.typeOf({ group: "", version: "v1", kind: "Pod" })!;
  const read = (): unknown => protobufCodec.readMessage(type, Buffer.from(hex, "hex"));
  if (message === undefined) expect(read()).toMatchObject({ spec: {} });
  else expect(read).toThrow(message);
});

test("watch events are framed", () => {
  const event = assemble(protobufWatchPieces("ADDED", [Uint8Array.of(1), Uint8Array.of(2, 3)]));
  expect(event.toString("hex")).toBe("0000000e" + "0a05" + "4144444544" + "1205" + "0a03010203");
  const large = assemble(protobufWatchPieces("MODIFIED", [new Uint8Array(70_000)]));
  expect(large.subarray(0, 22).toString("hex")).toBe("00011182" + "0a08" + "4d4f444946494544" + "12f4a204" + "0af0a204");
  expect(large.length).toBe(4 + 0x11182);
  expect(assemble(jsonWatchPieces("DELETED", new TextEncoder().encode(`{"a":1}`))).toString()).toBe(`{"type":"DELETED","object":{"a":1}}\n`);
});

/** A value for every field; types that hold themselves end after a few levels. */
function fill(type: StructType, depth: number): JsonObject {
  const object: JsonObject = {};
  for (const { name, type: fieldType, protobuf, inline } of type.members) {
    if (protobuf === undefined || (depth > 6 && fieldType.kind !== "scalar")) continue; // kind and apiVersion are in the envelope
    if (inline) Object.assign(object, fill(fieldType as StructType, depth + 1));
    else object[name] = example(fieldType, depth + 1, protobuf);
  }
  return object;
}

function example(type: Type, depth: number, seed: number): JsonValue {
  switch (type.kind) {
    case "struct": return fill(type, depth);
    case "list": return [example(type.items, depth, seed), example(type.items, depth, seed + 1)];
    case "map": return { one: example(type.values, depth, seed), two: example(type.values, depth, seed + 1) };
    case "scalar": return exampleScalar(type.scalar, seed);
    case "special":
      switch (type.special) {
        case "time": return "2026-01-02T03:04:05Z";
        case "microTime": return "2026-01-02T03:04:05.000678Z";
        case "duration": return "1h2m3.5s";
        case "quantity": return "1500m";
        case "intOrString": return seed % 2 ? "25%" : -3;
        case "rawExtension": case "fieldsV1": return { "f:a": {} };
        case "json": case "any": return [1, "x", null];
        case "schemaOrBool": return seed % 2 ? false : { type: "string" };
        case "schemaOrArray": return seed % 2 ? [{ type: "string" }] : { type: "string" };
        case "schemaOrStringArray": return seed % 2 ? ["a"] : { type: "string" };
      }
  }
}

function exampleScalar(scalar: Scalar, seed: number): JsonValue {
  switch (scalar) {
    case "string": return `text-${seed}-é`;
    case "bool": return true;
    case "int32": return -seed;
    case "int64": return seed % 2 ? 9007199254740993n : -seed;
    case "float64": return seed + 0.5;
    case "bytes": return Buffer.from([seed, 255]).toString("base64");
  }
}

test.each<[varint: string, port: number]>([["50", 80], ["8580808010", 5], ["8080808008", -(2 ** 31)], ["ffffffffffffffff7f", -1]])("of a number that is a text elsewhere 32 bits count: %s", (varint, port) => {
  const inner = `080010${varint}`, bytes = `185022${(inner.length / 2).toString(16).padStart(2, "0")}${inner}`;
  const type = builtInFacts.structNamed("io.k8s.api.core.v1.ServicePort")!;
  expect(protobufCodec.readMessage(type, Buffer.from(bytes, "hex"))).toMatchObject({ port: 80, targetPort: port });
});
