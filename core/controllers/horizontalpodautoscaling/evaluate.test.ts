import { expect, test } from "vitest";
import type { HorizontalPodAutoscaler } from "../../api/gen/autoscaling.v2.ts";
import { evaluate } from "./evaluate.ts";
import type { MetricsSource } from "./metrics-source.ts";
import { AUTOSCALING } from "./settings.ts";

const none = (): Promise<never> => Promise.reject(new Error("none of those"));

test.each([
  [{ a: 0, b: 0 }, 0, "external metric b(nil)"],
  [{ a: 3_000, b: 3_000 }, 3, "external metric a(nil)"],
  [{ a: 3_000, b: 0 }, 3, "external metric a(nil)"],
  [{ a: 0, b: 3_000 }, 3, "external metric b(nil)"],
])("of metrics that call for the same the first one counts, of those that call for none the last: %j", async (values: Readonly<Record<string, number>>, replicas, metric) => {
  const source: MetricsSource = { resource: none, pods: none, object: none, external: async ({ metric: name }) => values[name]! };
  const metrics = Object.keys(values).map((name) => ({ type: "External", external: { metric: { name }, target: { type: "AverageValue", averageValue: "1" } } }));
  const autoscaler = { metadata: { name: "web", namespace: "ns" }, spec: { scaleTargetRef: { kind: "Deployment", name: "web" }, maxReplicas: 9, metrics } } as unknown as HorizontalPodAutoscaler;
  const { signal } = new AbortController();
  expect(await evaluate(autoscaler, { specReplicas: 2, statusReplicas: 2, selector: "app=web", pods: [] }, { source, settings: AUTOSCALING, nowMs: 0, computed: (_, work) => work(), signal })).toMatchObject({ replicas, metric });
});

test.each([
  ["it cannot be had", none, "unable to get metric rps: none of those"],
  ["there are no pods", async () => new Map(), "no pods returned by selector while calculating replica count"],
])("of a metric of pods that calls for nothing, since %s, just that is told", async (_, pods, message) => {
  const source: MetricsSource = { resource: none, pods, object: none, external: none };
  const metrics = [{ type: "Pods", pods: { metric: { name: "rps" }, target: { type: "AverageValue", averageValue: "1" } } }];
  const autoscaler = { metadata: { name: "web", namespace: "ns" }, spec: { scaleTargetRef: { kind: "Deployment", name: "web" }, maxReplicas: 9, metrics } } as unknown as HorizontalPodAutoscaler;
  const { signal } = new AbortController();
  const { failures, error } = await evaluate(autoscaler, { specReplicas: 2, statusReplicas: 2, selector: "app=web", pods: [] }, { source, settings: AUTOSCALING, nowMs: 0, computed: (_type, work) => work(), signal });
  expect(failures).toEqual([{ reason: "FailedGetPodsMetric", message }]);
  expect(error).toBe(`invalid metrics (1 invalid out of 1), first error is: failed to get pods metric value: ${message}`);
});
