import { expect, test } from "vitest";
import { jsonText } from "../../api/codec/json.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { cachedOf, deepFreeze } from "./cached.ts";
import { objectBytes } from "./object-bytes.ts";

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
    before = made;
  }
});

test("parts that two versions have in common are written once", () => {
  let written = 0;
  const spec = { text: LONG, toJSON() { written++; return { text: LONG }; } };
  const first = objectBytes(of({ metadata: { name: "a" }, spec }));
  expect(objectBytes(of({ metadata: { name: "b" }, spec }), first).bytes.toString()).toBe(jsonText(of({ metadata: { name: "b" }, spec: { text: LONG } })));
  expect(written).toBe(1);
});

test("a version has the bytes of the one before also when that one has let go of them, or has never had its own", () => {
  let written = 0;
  const spec = { text: LONG, toJSON() { written++; return LONG; } } as never;
  const version = (revision: number, before?: ReturnType<typeof cachedOf>) => cachedOf({ key: "/a", revision, value: { kind: "Thing", apiVersion: "v1", metadata: { name: "a" }, spec } }, before);
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
