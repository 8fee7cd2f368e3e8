import { expect, test } from "vitest";
import { summaryOf } from "./summary.ts";

const time = "2026-01-02T03:04:05Z";
const stats = (swapUsageBytes?: number) => ({ cpu: { time, usageNanoCores: 5.4 }, memory: { time, workingSetBytes: 2048 }, ...(swapUsageBytes === undefined ? {} : { swap: { swapUsageBytes } }) });

test("what the metrics API says comes from the kubelets' statistics: processor, memory, and swap where it is counted", () => {
  expect(summaryOf({ node: stats(4096), pods: [{ podRef: { uid: "u" }, containers: [{ name: "a", ...stats() }, { name: "b" }] }] })).toEqual({
    node: { time, nanoCores: 5, workingSetBytes: 2048, swapBytes: 4096 }, pods: new Map([["u", [{ name: "a", usage: { time, nanoCores: 5, workingSetBytes: 2048 } }, { name: "b", usage: undefined }]]]),
  });
});
