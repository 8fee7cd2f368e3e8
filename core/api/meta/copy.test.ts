import { expect, test } from "vitest";
import { copyOf } from "./copy.ts";

test("a copy has everything and shares nothing", () => {
  const object = JSON.parse('{"metadata":{"name":"a","labels":{"__proto__":"x","constructor":"y"}},"spec":{"list":[1,null,{"b":[]}],"text":"ü","flag":false}}') as { metadata: { labels: Record<string, string> }; spec: { list: [number, null, { b: number[] }] }; status?: undefined };
  object.status = undefined;
  const copy = copyOf(object);
  expect(copy).toStrictEqual(object);
  expect(Object.keys(copy)).toEqual(["metadata", "spec", "status"]);
  expect(JSON.stringify(copy)).toBe(JSON.stringify(object));
  expect(Object.getPrototypeOf(copy.metadata.labels)).toBe(Object.prototype);
  copy.spec.list[2].b.push(1);
  copy.metadata.labels["new"] = "z";
  expect(object.spec.list[2].b).toEqual([]);
  expect(object.metadata.labels["new"]).toBeUndefined();
});
