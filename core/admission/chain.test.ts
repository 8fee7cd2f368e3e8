import { expect, test } from "vitest";
import { admissionChain } from "./chain.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./plugin.ts";

test("each plug-in's time is counted apart, those that are not asked have none, and a refusal ends the turn", async () => {
  let nowMs = 0;
  const counted: string[] = [];
  const plugin = (name: string, work: () => Promise<void> | void, handles = true): AdmissionPlugin => ({ name, handles: () => handles, admit: work, validate: work });
  const chain = admissionChain([
    plugin("quick", () => { nowMs += 1; }),
    plugin("idle", () => { nowMs += 1000; }, false),
    plugin("slow", async () => { await Promise.resolve(); nowMs += 20; }),
    plugin("strict", () => { nowMs += 3; if (nowMs > 100) throw new Error("refused"); }),
    plugin("last", () => { nowMs += 4; }),
  ], { nowMs: () => nowMs, series: (step, name = "all") => (operation, rejected, seconds) => void counted.push(`${step} ${name} ${operation} ${rejected ? "rejected" : "passed"} ${seconds * 1000}`) });
  const request = { operation: "CREATE" } as AdmissionRequest;
  await chain.admit(request);
  expect(counted.splice(0)).toEqual(["admit quick CREATE passed 1", "admit slow CREATE passed 20", "admit strict CREATE passed 3", "admit last CREATE passed 4", "admit all CREATE passed 28"]);
  nowMs = 200;
  await expect(chain.validate(request)).rejects.toThrow("refused");
  expect(counted).toEqual(["validate quick CREATE passed 1", "validate slow CREATE passed 20", "validate strict CREATE rejected 3", "validate all CREATE rejected 24"]);
});
