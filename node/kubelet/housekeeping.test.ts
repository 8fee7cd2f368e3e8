import { expect, test } from "vitest";
import { isActive } from "./housekeeping.ts";

test.each([
  ["running", "Running", true],
  ["running", "Pending", true],
  ["running", undefined, true],
  ["running", "Succeeded", false], // after a restart of the kubelet, before its first look at the pod
  ["running", "Failed", false],
  ["terminating", "Running", true],
  ["terminating", "Failed", true], // as somebody else says
  ["terminated", "Running", false],
] as const)("a pod whose worker is %s and whose phase is %s is evicted or shut down: %s", (stage, phase, is) => {
  expect(isActive({ stage, pod: { metadata: { name: "web", namespace: "default" }, ...(phase ? { status: { phase } } : {}) } as Parameters<typeof isActive>[0]["pod"] })).toBe(is);
});
