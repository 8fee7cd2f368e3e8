import { expect, test } from "vitest";
import { deletionConditions, type Progress } from "./conditions.ts";

const NOTHING: Progress = { discoveryFailed: new Map(), contentErrors: [], remaining: new Map(), finalizers: new Map() };
const [DISCOVERY, PARSING, CONTENT, REMAINING, FINALIZERS] = ["NamespaceDeletionDiscoveryFailure", "NamespaceDeletionGroupVersionParsingFailure", "NamespaceDeletionContentFailure", "NamespaceContentRemaining", "NamespaceFinalizersRemaining"];
const condition = (type: string, status = "True") => ({ type, status, reason: "Was", message: "was", lastTransitionTime: "2020-01-01T00:00:00Z" }) as never;

test.each([
  ["none", [], [DISCOVERY, PARSING, CONTENT, REMAINING, FINALIZERS]],
  ["another's", ["Another"], ["Another", DISCOVERY, PARSING, CONTENT, REMAINING, FINALIZERS]],
  ["in another order", [PARSING, DISCOVERY], [PARSING, DISCOVERY, CONTENT, REMAINING, FINALIZERS]],
  ["another's at the end", [DISCOVERY, "Another"], [DISCOVERY, "Another", PARSING, CONTENT, REMAINING, FINALIZERS]],
])("conditions keep their places, new ones come after them: before, %s", (_, before, after) => {
  expect(deletionConditions(before.map((type) => condition(type!)), NOTHING, 0).map(({ type }) => type)).toEqual(after);
});

test("what changes tells since when, what says the same again is left alone", () => {
  const first = deletionConditions([], { ...NOTHING, contentErrors: ["b", "a"] }, 1_000);
  expect(first.find(({ type }) => type === CONTENT)).toEqual({ type: CONTENT, status: "True", reason: "ContentDeletionFailed", message: "Failed to delete all resource types, 2 remaining: a, b", lastTransitionTime: "1970-01-01T00:00:01Z" });
  expect(deletionConditions(first, { ...NOTHING, contentErrors: ["a", "b"] }, 2_000)).toBe(first);
  const fewer = deletionConditions(first, { ...NOTHING, contentErrors: ["a"] }, 3_000);
  expect(fewer.find(({ type }) => type === CONTENT)).toMatchObject({ message: "Failed to delete all resource types, 1 remaining: a", lastTransitionTime: "1970-01-01T00:00:01Z" });
  const done = deletionConditions(fewer, NOTHING, 4_000);
  expect(done.find(({ type }) => type === CONTENT)).toMatchObject({ status: "False", reason: "ContentDeleted", lastTransitionTime: "1970-01-01T00:00:04Z" });
});
