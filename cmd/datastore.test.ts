import { expect, test } from "vitest";
import { isUrgent, objectBytesMax } from "./datastore.ts";

test.each<[string, string, Record<string, unknown>, boolean]>([
  ["a node", "/registry/core/nodes/a", { metadata: { name: "a" } }, true],
  ["a pod that is to go", "/registry/core/pods/default/a", { metadata: { name: "a", deletionTimestamp: "2026-03-01T12:00:00Z" } }, true],
  ["a pod that stays", "/registry/core/pods/default/a", { metadata: { name: "a" } }, false],
])("with hardly any room: %s", (_, key, value, expected) => {
  expect(isUrgent(key, value)).toBe(expected);
});

test.each([[256, 16], [512, 80], [1024, 208], [4096, 976], [65_536, 8192]])("of %d MiB of memory all objects have %d, what they take and the server without them is less than all of it", (memory, objects) => {
  expect(objectBytesMax(memory * 1024 ** 2)).toBe(objects * 1024 ** 2);
});
