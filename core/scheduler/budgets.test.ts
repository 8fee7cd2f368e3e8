import { expect, test } from "vitest";
import { pod, stored } from "../../test/scheduling-cluster.ts";
import type { PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus } from "../api/gen/policy.v1.ts";
import * as labelSelectors from "../api/meta/label-selector.ts";
import { Budgets } from "./budgets.ts";

function budget(name: string, selector: PodDisruptionBudgetSpec["selector"], status: Partial<PodDisruptionBudgetStatus> = {}): PodDisruptionBudget {
  return stored<PodDisruptionBudget>("policy/v1", "PodDisruptionBudget", `default/${name}`, { spec: { ...(selector && { selector }) }, status: { disruptionsAllowed: 0, ...status } as PodDisruptionBudgetStatus });
}

test("who goes counts for each budget that means it, for one node at a time", () => {
  const budgets = new Budgets([
    budget("a", { matchLabels: { app: "a" } }, { disruptionsAllowed: 1 }), budget("many", { matchExpressions: [{ key: "app", operator: "Exists" }] }, { disruptionsAllowed: 2 }),
    budget("all", {}), budget("none", undefined), budget("b", { matchLabels: { app: "b", tier: "x" } }, { disruptedPods: { b2: "2026-07-01T00:00:00Z" } }),
  ]);
  const a = [1, 2, 3].map((n) => pod(`a${n}`, { labels: { app: "a" } }));
  const left = budgets.left();
  expect(a.map((one) => left.forbids(one))).toEqual([false, true, true]);
  expect(budgets.left().forbids(a[2]!)).toBe(false);
  const other = budgets.left();
  expect([pod("b1", { labels: { app: "b", tier: "x" } }), pod("b2", { labels: { app: "b", tier: "x" } }), pod("b3", { labels: { app: "b", tier: "y" } })].map((one) => other.forbids(one))).toEqual([true, false, true]); // the third is one too many of those that have the label
  expect([pod("plain"), pod("c", { labels: { other: "a" } })].map((one) => budgets.left().forbids(one))).toEqual([false, false]);
});

test("a budget is looked at for those pods alone that have a label it asks for", () => {
  const budgets = new Budgets(Array.from({ length: 100 }, (_, i) => budget(`p${i}`, { matchLabels: { app: `a${i}` } })));
  let looked = 0;
  const { matches } = labelSelectors.LabelSelector.prototype;
  labelSelectors.LabelSelector.prototype.matches = function (labels) { looked++; return matches.call(this, labels); };
  try {
    expect([budgets.left().forbids(pod("x", { labels: { app: "a7", tier: "x" } })), looked]).toEqual([true, 1]);
  } finally {
    labelSelectors.LabelSelector.prototype.matches = matches;
  }
});
