import { expect, test } from "vitest";
import type { Deployment, DeploymentStatus, ReplicaSet } from "../../api/gen/apps.v1.ts";
import { findCondition } from "../../api/meta/conditions.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { condition, deadlineInMs, rolloutStatus } from "./status.ts";

const NOW_MS = Date.parse("2026-01-01T00:00:00Z"), YEAR_MS = 365 * 86_400_000;
const template = { metadata: { labels: { app: "web" } }, spec: { containers: [] } };
const set: ReplicaSet = { apiVersion: "apps/v1", kind: "ReplicaSet", metadata: { name: "web-1", namespace: "default", uid: "u", resourceVersion: "1", creationTimestamp: timestamp(NOW_MS) }, spec: { replicas: 1, selector: {}, template }, status: { replicas: 1 } };

/** A rollout that has come no further since `status`. */
function after(status: DeploymentStatus, nowMs: number): { readonly deployment: Deployment; readonly next: DeploymentStatus } {
  const deployment: Deployment = {
    apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web", namespace: "default", uid: "d", resourceVersion: "1", creationTimestamp: timestamp(NOW_MS), generation: 1 },
    spec: { replicas: 1, progressDeadlineSeconds: 60, selector: {}, template }, status,
  };
  return { deployment, next: rolloutStatus(deployment, { current: set, old: [], conditions: status.conditions ?? [], collisionCount: undefined, nowMs }) };
}

test("the deadline of a rollout that went on by a clock years ahead counts from when that is seen", () => {
  const began: DeploymentStatus = { observedGeneration: 1, replicas: 1, updatedReplicas: 1, conditions: [condition(NOW_MS + 10 * YEAR_MS, "Progressing", "True", "ReplicaSetUpdated", 'ReplicaSet "web-1" is progressing.')] };
  const { deployment, next } = after(began, NOW_MS);
  expect(findCondition(next.conditions, "Progressing")).toMatchObject({ status: "True", reason: "ReplicaSetUpdated", lastUpdateTime: timestamp(NOW_MS) });
  expect(deadlineInMs(deployment, next, NOW_MS)).toBe(61_000);
  expect(findCondition(after(next, NOW_MS + 61_000).next.conditions, "Progressing")).toMatchObject({ status: "False", reason: "ProgressDeadlineExceeded" });
});
