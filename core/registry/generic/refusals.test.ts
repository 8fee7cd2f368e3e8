import { expect, test } from "vitest";
import { type FieldError, required } from "../../api/meta/field-error.ts";
import { storageClasses } from "../storage/storage-class.ts";
import { gathered } from "./refusals.ts";

test("errors are gathered in their order, and not for ever", () => {
  function* endless(): Iterable<FieldError> { for (;;) yield required("a"); }
  expect(gathered([required("a"), required("b")]).map(({ field }) => field)).toEqual(["a", "b"]);
  expect([gathered(undefined), gathered(endless()).length]).toEqual([[], 100_000]);
});

test("a StorageClass with a hundred thousand terms that say nothing is refused", () => {
  const terms = Array.from({ length: 100_000 }, () => ({}));
  const errors = gathered(storageClasses.validate!({ metadata: { name: "a" }, provisioner: "a.b/c", allowedTopologies: terms } as never, undefined, {} as never));
  expect(errors.some(({ type, field }) => type === "FieldValueDuplicate" && field === "allowedTopologies[0].matchLabelExpressions")).toBe(true);
});
