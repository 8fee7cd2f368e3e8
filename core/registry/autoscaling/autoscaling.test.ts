import { expect, test } from "vitest";
import type { HorizontalPodAutoscaler as AutoscalerV1 } from "../../api/gen/autoscaling.v1.ts";
import type { HorizontalPodAutoscaler } from "../../api/gen/autoscaling.v2.ts";
import { convert } from "../conversions.ts";
import { created, type Given, updated } from "../../../test/rehearse.ts";
import { horizontalPodAutoscalerDefinition } from "./horizontal-pod-autoscaler.ts";

const autoscalers = horizontalPodAutoscalerDefinition({ toZero: false });

const target = { apiVersion: "apps/v1", kind: "Deployment", name: "web" };
const autoscaler = (spec: Given = {}): Given => ({ spec: { scaleTargetRef: target, maxReplicas: 5, ...spec } });
const cpu = (averageUtilization: number): Given => ({ type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization } } });
const pods = { type: "Pods", pods: { metric: { name: "rps" }, target: { type: "AverageValue", averageValue: "100" } } };

test("what the API fills in", () => {
  expect(created(autoscalers, autoscaler()).object.spec).toMatchObject({ minReplicas: 1, metrics: [cpu(80)] });
  expect(created(autoscalers, autoscaler({ behavior: { scaleDown: { stabilizationWindowSeconds: 5 } } })).object.spec.behavior).toEqual({
    scaleUp: { stabilizationWindowSeconds: 0, selectPolicy: "Max", policies: [{ type: "Pods", value: 4, periodSeconds: 15 }, { type: "Percent", value: 100, periodSeconds: 15 }] },
    scaleDown: { stabilizationWindowSeconds: 5, selectPolicy: "Max", policies: [{ type: "Percent", value: 100, periodSeconds: 15 }] },
  });
});

test.each<[Given, string[]]>([
  [{ minReplicas: 0 }, ["spec.minReplicas: Invalid value: 0: must be greater than or equal to 1", "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas"]],
  [{ maxReplicas: 0 }, ["spec.maxReplicas: Required value: must be set and greater than 0", "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`"]],
  [{ scaleTargetRef: { kind: "Deployment", name: "web" } }, ['spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group']],
  [{ metrics: [{ type: "constructor" }] }, ['spec.metrics[0].type: Unsupported value: "constructor": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"']],
  [{ metrics: [{ ...cpu(50), pods: pods.pods }] }, ["spec.metrics[0].pods: Forbidden: must populate the given metric source only"]],
  [{ metrics: [{ type: "Resource", resource: { name: "cpu", target: { type: "Value", value: "-1" } } }] }, [
    'spec.metrics[0].resource.target.value: Invalid value: "-1": must be positive', "spec.metrics[0].resource.target.averageUtilization: Required value: must set either a target raw value or a target utilization",
  ]],
  [{ behavior: { scaleUp: { policies: [] } } }, ["spec.behavior.scaleUp.policies: Required value: must specify at least one Policy"]],
  [{ behavior: { scaleUp: { policies: [{ type: "Nodes", value: 1, periodSeconds: 1801 }] } } }, [
    'spec.behavior.scaleUp.policies[0].type: Unsupported value: "Nodes": supported values: "Percent", "Pods"', "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800",
  ]],
])("an autoscaler with %j", (spec, errors) => expect(created(autoscalers, autoscaler(spec)).errors).toEqual(errors));

test("none at all may be the least where the gate is on, or it was before; and then for metrics that are there without pods", () => {
  const toZero = horizontalPodAutoscalerDefinition({ toZero: true });
  const external = { type: "External", external: { metric: { name: "queue" }, target: { type: "Value", value: "10" } } };
  const lacks = "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas";
  expect(created(toZero, autoscaler({ minReplicas: 0, metrics: [external] })).errors).toEqual([]);
  expect(created(toZero, autoscaler({ minReplicas: 0, metrics: [cpu(50)] })).errors).toEqual([lacks]);
  expect(created(toZero, autoscaler({ minReplicas: -1, metrics: [external] })).errors).toEqual(["spec.minReplicas: Invalid value: -1: must be greater than or equal to 0"]);
  const [zero, one] = [0, 1].map((minReplicas) => created(toZero, autoscaler({ minReplicas, metrics: [external] })).object);
  expect(updated(autoscalers, zero!, { spec: { ...zero!.spec, maxReplicas: 7 } }).errors).toEqual([]);
  expect(updated(autoscalers, one!, { spec: { ...one!.spec, minReplicas: 0 } }).errors).toEqual(["spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"]);
});

const metadata = { name: "a", namespace: "d", uid: "u", resourceVersion: "1", creationTimestamp: "1970-01-01T00:00:00Z" };

test("v1 and back: what v1 has no field for travels in annotations", () => {
  const { object } = created(autoscalers, autoscaler({ metrics: [cpu(50), pods], behavior: {} }));
  const v2: HorizontalPodAutoscaler = { ...object, metadata: { ...metadata, annotations: { own: "x" } }, status: {
    desiredReplicas: 2, currentReplicas: 1, currentMetrics: [{ type: "Resource", resource: { name: "cpu", current: { averageValue: "10m", averageUtilization: 7 } } }],
    conditions: [{ type: "AbleToScale", status: "True" }],
  } };
  const v1 = convert(v2, "autoscaling/v1") as AutoscalerV1;
  expect(v1.spec).toEqual({ scaleTargetRef: { kind: "Deployment", name: "web", apiVersion: "apps/v1" }, minReplicas: 1, maxReplicas: 5, targetCPUUtilizationPercentage: 50 });
  expect(v1.status).toEqual({ currentReplicas: 1, desiredReplicas: 2, currentCPUUtilizationPercentage: 7 });
  expect(v1.metadata.annotations!["autoscaling.alpha.kubernetes.io/metrics"]).toBe('[{"type":"Pods","pods":{"metricName":"rps","targetAverageValue":"100"}}]');
  expect(Object.keys(v1.metadata.annotations!).toSorted()).toEqual(["behavior", "conditions", "current-metrics", "metrics"].map((name) => `autoscaling.alpha.kubernetes.io/${name}`).concat("own"));
  const back = convert(v1, "autoscaling/v2") as HorizontalPodAutoscaler;
  expect(back.metadata.annotations).toEqual({ own: "x" });
  expect(back.status).toMatchObject(v2.status!);
  expect(back.spec.metrics).toEqual([pods, cpu(50)] as never);
  expect(back.spec.behavior).toEqual(v2.spec.behavior!);
});

test.each<[annotation: string, read: unknown]>([
  ['[{"type":"Object","object":{"target":{"kind":"Service","name":"s"},"metricName":"m"}}]', [{ type: "Object", object: { describedObject: { kind: "Service", name: "s" }, metric: { name: "m" }, target: { type: "Value", value: "0" } } }]],
  ['[{"type":"Pods","pods":{"metricName":"m"}}]', [{ type: "Pods", pods: { metric: { name: "m" }, target: { type: "AverageValue", averageValue: "0" } } }]],
  ['[{"type":"Pods","pods":{"metricName":"m","targetAverageValue":"3x"}}]', [cpu(80)]],
  ['[{"type":"Pods","pods":5}]', [cpu(80)]],
  ["[5]", [cpu(80)]],
  ['[{"type":"Pods","pods":{"metricName":"m","targetAverageValue":"3"},"note":"x"}]', [{ type: "Pods", pods: { metric: { name: "m" }, target: { type: "AverageValue", averageValue: "3" } } }]],
  ["[null]", [{ type: "" }]],
])("metrics of v1 that are written %s", (annotation, read) => {
  const v1 = { apiVersion: "autoscaling/v1", kind: "HorizontalPodAutoscaler", metadata: { ...metadata, annotations: { "autoscaling.alpha.kubernetes.io/metrics": annotation } }, spec: { scaleTargetRef: target, maxReplicas: 5 } };
  expect((convert(v1, "autoscaling/v2") as HorizontalPodAutoscaler).spec.metrics).toEqual(read as never);
});

test.each<[name: string, annotation: string, read: unknown]>([
  ["behavior", '{"ScaleUp":{"StabilizationWindowSeconds":"5"},"ScaleDown":{"SelectPolicy":"Min"}}', undefined], ["behavior", '{"ScaleUp":{"Policies":[{"Type":"Pods","Value":1.5}]}}', undefined], ["behavior", '{"ScaleUp":{"Tolerance":"x"}}', undefined],
  ["behavior", '{"ScaleUp":{"StabilizationWindowSeconds":5,"Tolerance":"100m","Policies":[{"Type":"Pods","Value":1,"PeriodSeconds":2}]},"ScaleDown":null}', { scaleUp: { stabilizationWindowSeconds: 5, tolerance: "100m", policies: [{ type: "Pods", value: 1, periodSeconds: 2 }] } }],
  ["conditions", '[{"type":"A","status":"True","lastTransitionTime":"soon"}]', undefined], ["conditions", '[{"type":5}]', undefined], ["conditions", '[{"type":"A","status":"True","lastTransitionTime":null},null]', [{ type: "A", status: "True", lastTransitionTime: null }, { type: "", status: "", lastTransitionTime: null }]],
  ["current-metrics", "null", []], ["current-metrics", "x", [{ type: "Resource", resource: { name: "cpu", current: { averageUtilization: 7 } } }]],
])("of a %s of v1 of another type nothing is read: %s", (name, annotation, read) => {
  const v1 = {
    apiVersion: "autoscaling/v1", kind: "HorizontalPodAutoscaler", metadata: { ...metadata, annotations: { [`autoscaling.alpha.kubernetes.io/${name}`]: annotation } }, spec: { scaleTargetRef: target, maxReplicas: 5 },
    status: { currentReplicas: 1, desiredReplicas: 1, currentCPUUtilizationPercentage: 7 },
  };
  const { spec, status } = convert(v1, "autoscaling/v2") as HorizontalPodAutoscaler;
  expect({ "behavior": spec.behavior, "conditions": status?.conditions, "current-metrics": status?.currentMetrics }[name]).toEqual(read as never);
});

test("events have two names for the same thing", () => {
  const core = { apiVersion: "v1", kind: "Event", metadata, involvedObject: { kind: "Pod", name: "p" }, message: "hello", reportingComponent: "kubelet", count: 3 };
  const event = convert(core, "events.k8s.io/v1");
  expect(event).toMatchObject({ apiVersion: "events.k8s.io/v1", regarding: { kind: "Pod", name: "p" }, note: "hello", reportingController: "kubelet", deprecatedCount: 3, deprecatedFirstTimestamp: null });
  expect(convert(event, "v1")).toMatchObject(core);
});
