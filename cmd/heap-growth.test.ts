import { expect, test } from "vitest";
import { withHeapGrowth } from "./heap-growth.ts";

test("a process starts once more for the settings of its heap, with what somebody has set, and then no more", () => {
  const once = withHeapGrowth({ PATH: "/bin", BUN_JSC_smallHeapGrowthFactor: "2" })!;
  expect(once).toMatchObject({ PATH: "/bin", BUN_JSC_smallHeapGrowthFactor: "2", BUN_JSC_minEdenToOldGenerationRatio: "0.25" });
  expect(withHeapGrowth(once)).toBeUndefined();
});
