import { expect, test } from "vitest";
import { created, type Given, updated } from "../../../test/rehearse.ts";
import { priorityClasses } from "./priority-class.ts";

test.each<[Given, string[]]>([
  [{ metadata: { name: "high" }, value: 1_000_000_000 }, []],
  [{ metadata: { name: "high" }, value: 1_000_000_001 }, ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"]],
  [{ metadata: { name: "system-node-critical" }, value: 2_000_001_000 }, []],
  [{ metadata: { name: "system-x" } }, ["metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: system-x is not a known system priority class"]],
  [{ metadata: { name: "high" }, preemptionPolicy: "Maybe" }, ['preemptionPolicy: Unsupported value: "Maybe": supported values: "PreemptLowerPriority", "Never"']],
])("a class %j", (given, errors) => expect(created(priorityClasses, given).errors).toEqual(errors));

test("the system's classes stay, and no others", () => {
  expect(["system-node-critical", "system-cluster-critical", "high", "constructor"].map((name) => priorityClasses.undeletable?.(name) !== undefined)).toEqual([true, true, false, false]);
});

test("a class keeps its value", () => {
  const { object } = created(priorityClasses, { metadata: { name: "high" }, value: 5 });
  expect(object.preemptionPolicy).toBe("PreemptLowerPriority");
  expect(updated(priorityClasses, object, { value: 6 }).errors).toEqual(["value: Forbidden: may not be changed in an update."]);
});
