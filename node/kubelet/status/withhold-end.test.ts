import { expect, test } from "vitest";
import type { Pod, PodCondition, PodStatus } from "../../../core/api/gen/core.v1.ts";
import { withholdEnd } from "./withhold-end.ts";

const podWith = (status: PodStatus): Pod => ({ apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: "d", uid: "u", resourceVersion: "1", creationTimestamp: "" }, spec: { containers: [] }, status });
const condition = (type: string, reason: string): PodCondition => ({ type, status: "True", reason });
const containerStatuses = [{ name: "c", image: "i", imageID: "", ready: false, restartCount: 0, state: { terminated: { exitCode: 0 } } }];
const ended: PodStatus = { phase: "Failed", reason: "Evicted", message: "low", containerStatuses, conditions: [condition("DisruptionTarget", "TerminationByKubelet"), condition("PodScheduled", "")] };
const DisruptionTarget = condition("DisruptionTarget", "PreemptionByScheduler");
const rest = [condition("PodScheduled", "")];

test.each<[string, { api?: PodStatus; status?: PodStatus; told?: PodStatus }, PodStatus]>([
  ["all but the end", { told: { phase: "Running" } }, { phase: "Running", containerStatuses, conditions: rest }],
  ["what explained it before", { told: { phase: "Running", reason: "r", message: "m" } }, { phase: "Running", reason: "r", message: "m", containerStatuses, conditions: rest }],
  ["nothing before", {}, { phase: "Pending", containerStatuses, conditions: rest }],
  ["somebody else disrupts it", { api: { phase: "Running", conditions: [DisruptionTarget] }, told: { phase: "Running" } }, { phase: "Running", containerStatuses, conditions: [DisruptionTarget, ...rest] }],
  ["told already", { told: { phase: "Failed" } }, ended],
  ["told by somebody else", { api: { phase: "Failed" }, told: { phase: "Running" } }, ended],
  ["no end", { status: { phase: "Running", reason: "r" }, told: { phase: "Pending" } }, { phase: "Running", reason: "r" }],
])("of a pod that may still run is told: %s", (_, { api = {}, status = ended, told = {} }, expected) => {
  expect(withholdEnd(podWith(api), status, told)).toEqual(expected);
});
