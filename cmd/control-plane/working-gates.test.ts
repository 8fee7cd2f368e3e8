import { expect, test } from "vitest";
import { workingGates } from "./working-gates.ts";

test("where groups of pods are not served, nobody waits for them", () => {
  const gates = new Set(["ClusterTrustBundle", "GangScheduling", "GenericWorkload", "WorkloadWithJob"]);
  const left = (...served: string[]): string[] => [...workingGates(gates, { find: (_group, _version, plural) => (served.includes(plural) ? {} : undefined) as never })];
  expect([left("podgroups", "workloads"), left("podgroups"), left()]).toEqual([[...gates], ["ClusterTrustBundle"], ["ClusterTrustBundle"]]);
});
