import { expect, test } from "vitest";
import { isUrgent } from "./datastore.ts";

test.each<[string, string, Record<string, unknown>, boolean]>([
  ["a node", "/registry/core/nodes/a", { metadata: { name: "a" } }, true],
  ["a pod that is to go", "/registry/core/pods/default/a", { metadata: { name: "a", deletionTimestamp: "2026-03-01T12:00:00Z" } }, true],
  ["a pod that stays", "/registry/core/pods/default/a", { metadata: { name: "a" } }, false],
])("with hardly any room: %s", (_, key, value, expected) => {
  expect(isUrgent(key, value)).toBe(expected);
});
