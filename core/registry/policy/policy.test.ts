import { expect, test } from "vitest";
import { created, type Given, updated } from "../../../test/rehearse.ts";
import { podDisruptionBudgets } from "./pod-disruption-budget.ts";

const selector = { matchLabels: { app: "web" } };

test.each<[Given, string[]]>([
  [{ minAvailable: "50%", selector }, []],
  [{ minAvailable: 1, maxUnavailable: 1, selector }, [
    'spec: Invalid value: {"MinAvailable":1,"Selector":{"matchLabels":{"app":"web"}},"MaxUnavailable":1,"UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable cannot be both set',
  ]],
  [{ maxUnavailable: "120%" }, ['spec.maxUnavailable: Invalid value: "120%": must not be greater than 100%']],
  [{ minAvailable: -1 }, ["spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"]],
  [{ unhealthyPodEvictionPolicy: "Never" }, ['spec.unhealthyPodEvictionPolicy: Unsupported value: "Never": supported values: "AlwaysAllow", "IfHealthyBudget"']],
])("a budget of %j", (spec, errors) => expect(created(podDisruptionBudgets, { spec }).errors).toEqual(errors));

test("the status is the controller's", () => {
  const { object } = created(podDisruptionBudgets, { spec: { minAvailable: 1, selector }, status: { expectedPods: 3 } });
  expect(object.status).toEqual({ disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 });
  const condition = { type: "DisruptionAllowed", status: "Yes", reason: "Too Few", lastTransitionTime: "2026-05-01T12:00:00Z", message: "" };
  const status = { ...object.status, disruptionsAllowed: -1, conditions: [condition] };
  const { errors } = updated(podDisruptionBudgets, object, { spec: { minAvailable: 9 }, status }, { subresource: "status" });
  expect(errors[0]).toBe('status.conditions[0].status: Unsupported value: "Yes": supported values: "False", "True", "Unknown"');
  expect(errors[1]).toContain('status.conditions[0].reason: Invalid value: "Too Few": a condition reason must start with alphabetic character');
  expect(errors[2]).toBe("status.disruptionsAllowed: Invalid value: -1: must be greater than or equal to 0");
});
