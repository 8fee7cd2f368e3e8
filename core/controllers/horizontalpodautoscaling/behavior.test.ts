import { expect, test } from "vitest";
import type { HPAScalingRules } from "../../api/gen/autoscaling.v2.ts";
import { type History, newHistory, normalize, withScaleEvent } from "./behavior.ts";

const NOW = 10_000_000;
const ago = (seconds: number): number => NOW - seconds * 1000;
const run = (given: { current: number; desired: number; min?: number; max?: number; past?: readonly (readonly [replicas: number, secondsAgo: number])[]; up?: HPAScalingRules; down?: HPAScalingRules; history?: Partial<History> }) => {
  const { current, desired, min = 1, max = 100, past = [], up, down } = given;
  const history: History = { recommendations: past.map(([replicas, seconds]) => ({ replicas, atMs: ago(seconds) })), ups: [], downs: [], ...given.history };
  const { replicas, able, limited } = normalize({ current, desired, min, max, history, uptimeMs: NOW, behavior: up || down ? { scaleUp: up, scaleDown: down } : undefined });
  return [replicas, able.reason, limited.reason, limited.status];
};

test.each([
  ["as wanted", { current: 4, desired: 6 }, [6, "ReadyForNewScale", "DesiredWithinRange", "False"]],
  ["no more than double", { current: 4, desired: 20 }, [8, "ReadyForNewScale", "ScaleUpLimit", "True"]],
  ["but four at least", { current: 1, desired: 20 }, [4, "ReadyForNewScale", "ScaleUpLimit", "True"]],
  ["no more than the maximum", { current: 8, desired: 15, max: 10 }, [10, "ReadyForNewScale", "TooManyReplicas", "True"]],
  ["no fewer than the minimum", { current: 3, desired: 1, min: 2 }, [2, "ReadyForNewScale", "TooFewReplicas", "True"]],
  ["not down while more was wanted lately", { current: 8, desired: 2, past: [[7, 200], [9, 400]] }, [7, "ScaleDownStabilized", "DesiredWithinRange", "False"]],
  ["up only when it was wanted for a while", { current: 4, desired: 8, past: [[5, 30]], up: { stabilizationWindowSeconds: 60 } }, [5, "ScaleUpStabilized", "DesiredWithinRange", "False"]],
  ["down at once without a window", { current: 8, desired: 2, past: [[7, 20]], down: { stabilizationWindowSeconds: 0 } }, [2, "ReadyForNewScale", "DesiredWithinRange", "False"]],
  ["one pod a minute down", { current: 8, desired: 2, down: { stabilizationWindowSeconds: 0, policies: [{ type: "Pods", value: 1, periodSeconds: 60 }] } }, [7, "ReadyForNewScale", "ScaleDownLimit", "True"]],
  ["which has gone already", { current: 7, desired: 2, down: { stabilizationWindowSeconds: 0, policies: [{ type: "Pods", value: 1, periodSeconds: 60 }] }, history: { downs: [{ change: 1, atMs: ago(30) }] } }, [7, "ReadyForNewScale", "ScaleDownLimit", "True"]],
  ["the larger of two policies", { current: 10, desired: 50, up: { policies: [{ type: "Pods", value: 2, periodSeconds: 15 }, { type: "Percent", value: 50, periodSeconds: 15 }] } }, [15, "ReadyForNewScale", "ScaleUpLimit", "True"]],
  ["the smaller, if told", { current: 10, desired: 50, up: { selectPolicy: "Min", policies: [{ type: "Pods", value: 2, periodSeconds: 15 }, { type: "Percent", value: 50, periodSeconds: 15 }] } }, [12, "ReadyForNewScale", "ScaleUpLimit", "True"]],
  ["never down", { current: 10, desired: 5, down: { stabilizationWindowSeconds: 0, selectPolicy: "Disabled" } }, [10, "ReadyForNewScale", "ScaleDownLimit", "True"]],
] as const)("%s", (_, given, wanted) => expect(run(given as Parameters<typeof run>[0])).toEqual(wanted));

test("after a restart what there is counts as wanted; changes are remembered as long as a policy looks back", () => {
  const { replicas } = normalize({ current: 6, desired: 2, min: 1, max: 9, history: newHistory(6, ago(10)), uptimeMs: NOW });
  expect(replicas).toBe(6);
  const behavior = { scaleUp: { policies: [{ type: "Pods", value: 1, periodSeconds: 60 }] } };
  const first = withScaleEvent(newHistory(1, 0), { from: 1, to: 3, behavior, uptimeMs: ago(90) });
  expect(withScaleEvent(first, { from: 3, to: 4, behavior, uptimeMs: NOW }).ups).toEqual([{ change: 1, atMs: NOW }]);
});

test("how long a fall is held back may be set for all", () => {
  const after = (downscaleSeconds: number | undefined) => normalize({ current: 6, desired: 2, min: 1, max: 9, history: newHistory(6, ago(100)), uptimeMs: NOW, downscaleSeconds }).replicas;
  expect([after(undefined), after(60)]).toEqual([6, 2]);
});
