import { expect, test } from "vitest";
import { encodeCustomJsonList, encodeJsonList } from "./json-list.ts";
import { encodeJson } from "./json.ts";

const HEAD = { apiVersion: "v1", metadata: { resourceVersion: "7" } };
const PODS = ["a", "b"].map((name) => encodeJson({ kind: "Pod", apiVersion: "v1", metadata: { name } }));

function text(bytes: Uint8Array): string { return new TextDecoder().decode(bytes); }

test("items of a built-in list go without kind and apiVersion", () => {
  expect(text(encodeJsonList({ ...HEAD, kind: "PodList" }, PODS, "Pod")))
    .toBe(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}\n`);
  expect(text(encodeJsonList({ ...HEAD, kind: "PodList" }, [], "Pod"))).toBe(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}\n`);
});

test("those of custom resources keep them", () => {
  const item = encodeJson({ apiVersion: "e.com/v1", kind: "Foo" });
  expect(text(encodeCustomJsonList({ kind: "FooList", apiVersion: "e.com/v1", metadata: {} }, [item, item])))
    .toBe(`{"apiVersion":"e.com/v1","items":[{"apiVersion":"e.com/v1","kind":"Foo"},{"apiVersion":"e.com/v1","kind":"Foo"}],"kind":"FooList","metadata":{}}\n`);
});
