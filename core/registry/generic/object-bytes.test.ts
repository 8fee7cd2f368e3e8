import { expect, test } from "vitest";
import { jsonText } from "../../api/codec/json.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { cachedOf, deepFreeze } from "./cached.ts";
import { mulberry32 } from "../../../test/mulberry32.ts";
import { objectBytes, type ObjectBytes } from "./object-bytes.ts";

const LONG = "<ü\u2028\"> ".repeat(30);
const of = (object: object): ApiObject => deepFreeze({ kind: "Thing", apiVersion: "v1", ...object }) as ApiObject;
const entry = (manager: string) => ({ manager, fieldsV1: { [`f:${LONG}`]: {} } });

test("an object's bytes are its JSON, whatever of it the version before had too", () => {
  const spec = { text: LONG, list: [1, null, { "a b": true }] }, first = entry("a");
  const versions = [
    of({ metadata: { name: "a", resourceVersion: "1", managedFields: [first] }, spec }),
    of({ metadata: { name: "a", resourceVersion: "20", labels: { "x/y": "ü" }, managedFields: [first, entry("b")] }, spec, status: { text: LONG } }),
    of({ metadata: { name: "a", resourceVersion: "300", managedFields: [] }, spec: { ...spec }, status: undefined }),
    of({ metadata: {}, "odd \"name\"": spec, spec, 7: [], big: 12345678901234567890n, nothing: null }),
    of({}),
  ];
  let before: ReturnType<typeof objectBytes> | undefined;
  for (const version of [...versions, ...versions.toReversed()]) {
    const made = objectBytes(version, before);
    expect(made.bytes.toString()).toBe(jsonText(version));
    if ("metadata" in version) expect(made.bytes.toString("utf8", made.metadataStart, made.metadataEnd)).toBe(jsonText(version.metadata));
    before = made;
  }
});

test("of random objects and successions of versions the bytes are their JSON", () => {
  const random = mulberry32(7), below = (count: number) => Math.floor(random() * count);
  const texts = ["", "a", "ü", "\u2028<&>", "\ud800", "x\udc00y", "\u{1f600}", "\\\"\n\u0000", "z".repeat(200), LONG];
  const names = ["metadata", "managedFields", "spec", "status", "0", "17", "__proto__", "f:a", "odd \"ü\"", "\ud800", "fieldsV1", "toJSON"];
  const scalars = [null, undefined, true, 0, -0, 1e21, Number.NaN, 2n ** 63n, -1.5, ...texts];
  let shared: object[] = [];
  function value(depth: number): unknown {
    const kind = below(depth > 3 ? 4 : 8);
    if (kind < 3) return scalars[below(scalars.length)];
    if (kind === 3) return shared.length > 0 ? shared[below(shared.length)] : {};
    const made = kind < 6 ? record(depth) : Array.from({ length: below(4) }, () => value(depth + 1) ?? null);
    shared.push(made);
    return made;
  }
  function record(depth: number): object { return Object.fromEntries(Array.from({ length: below(6) }, () => [names[below(names.length)]!, value(depth + 1)])); }

  for (let succession = 0; succession < 300; succession++) {
    shared = [];
    let before: ObjectBytes | undefined, object: object = record(0);
    for (let version = 0; version < 8; version++) {
      object = { ...object, metadata: record(1), ...record(0) };
      const made = objectBytes(of(object), below(4) === 0 ? undefined : before);
      expect(made.bytes.toString()).toBe(jsonText(of(object)));
      const { metadata } = of(object);
      if (typeof metadata === "object" && !Array.isArray(metadata)) expect(made.bytes.toString("utf8", made.metadataStart, made.metadataEnd)).toBe(metadata === null ? "" : jsonText(metadata));
      for (const { part, start, end } of made.parts) expect(made.bytes.toString("utf8", start, end)).toBe(jsonText(part));
      if (below(3) > 0) before = made;
    }
  }
});

test("parts that two versions have in common are written once", () => {
  let written = 0;
  const spec = { text: LONG, toJSON() { written++; return { text: LONG }; } };
  const first = objectBytes(of({ metadata: { name: "a" }, spec }));
  expect(objectBytes(of({ metadata: { name: "b" }, spec }), first).bytes.toString()).toBe(jsonText(of({ metadata: { name: "b" }, spec: { text: LONG } })));
  expect(written).toBe(1);
});

test("who owns what is copied as a whole by who leaves it as it is, and in its parts again after that", () => {
  let written = 0;
  const own = { manager: "a", fieldsV1: { [`f:${LONG}`]: {} }, get operation() { written++; return "Update"; } }, managedFields = [own];
  const version = (revision: string, fields: object[]) => of({ metadata: { name: "a", resourceVersion: revision, managedFields: fields } });
  const first = objectBytes(version("1", managedFields));
  written = 0;
  const second = objectBytes(version("2", managedFields), first);
  expect(written).toBe(0);
  for (const { part, start, end } of second.parts) expect(JSON.parse(second.bytes.toString("utf8", start, end))).toEqual(part);
  expect(second.parts.map(({ part }) => part)).toEqual(first.parts.map(({ part }) => part));
});

test("a version has the bytes of the one before also when that one has let go of them, or has never had its own", () => {
  let written = 0;
  const spec = { text: LONG, toJSON() { written++; return LONG; } } as never;
  const version = (revision: number, before?: ReturnType<typeof cachedOf>) => cachedOf({ key: "/a", revision, value: { kind: "Thing", apiVersion: "v1", metadata: { name: "a" }, spec } }, { before });
  const first = version(1);
  first.json();
  const second = version(2, first);
  first.forget();
  const third = version(3, second);
  expect(JSON.parse(third.json().toString())).toMatchObject({ metadata: { resourceVersion: "3" }, spec: LONG });
  expect(written).toBe(1);
  second.forget();
  second.json();
  expect(written).toBe(2);
});

test("an object of very many members is not looked up part by part", () => {
  const names = Array.from({ length: 3000 }, (_, i) => `m${i}`);
  const members = Object.fromEntries(names.map((name) => [name, { text: LONG }]));
  const first = objectBytes(of(members)), second = objectBytes(of({ ...members, last: true }), first);
  expect(second.bytes.toString()).toBe(jsonText(of({ ...members, last: true })));
  expect(first.parts.length).toBeLessThan(100);
});
