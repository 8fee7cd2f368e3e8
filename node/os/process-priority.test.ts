import { expect, test } from "vitest";
import { priorityOfClass } from "./process-priority.ts";

test("Windows' priority classes, from the lowest, as the runtime takes them", () => {
  const classes = ["IDLE", "BELOW_NORMAL", "NORMAL", "ABOVE_NORMAL", "HIGH", "REALTIME"].map((name) => priorityOfClass(`${name}_PRIORITY_CLASS`));
  expect(classes).toEqual([19, 10, 0, -7, -14, -20]);
  for (const name of ["myPriorityClass", "normal_priority_class", "", "constructor"]) expect(() => priorityOfClass(name)).toThrow(`unknown priority class ${name}, valid ones are available at`);
});
