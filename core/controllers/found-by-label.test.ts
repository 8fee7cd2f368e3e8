import { expect, test, vi } from "vitest";
import { staticInformer, stored } from "../../test/static-informer.ts";
import type { Pod } from "../api/gen/core.v1.ts";
import type { PodDisruptionBudget } from "../api/gen/policy.v1.ts";
import { LabelSelector, labelSelector } from "../api/meta/label-selector.ts";
import { keyOf } from "../api/meta/object-meta.ts";
import { bySelector, matchingPods, nowAndBefore, selecting } from "./found-by-label.ts";

const BY_SELECTOR = bySelector<PodDisruptionBudget>({ selectorOf: ({ spec }) => labelSelector(spec.selector) });
const pod = (name: string, labels: Record<string, string>) => stored<Pod>("v1", "Pod", name, { metadata: { labels } });
const budget = (name: string, selector?: object) => stored<PodDisruptionBudget>("policy/v1", "PodDisruptionBudget", name, { spec: { selector } });
const names = (objects: Iterable<Readonly<Pod | PodDisruptionBudget>>) => [...objects].map(({ metadata }) => metadata.name).toSorted();

const PODS = [pod("ns/web", { app: "web", tier: "front" }), pod("ns/db", { app: "db", tier: "back" }), pod("ns/bare", {}), pod("other/web", { app: "web", tier: "front" })];
const SELECTORS = {
  one: { matchLabels: { app: "web" } }, both: { matchLabels: { app: "web", tier: "back" } }, any: {}, "one of": { matchExpressions: [{ key: "app", operator: "In", values: ["web", "db"] }] },
  "in one": { matchExpressions: [{ key: "app", operator: "In", values: ["db"] }] }, not: { matchExpressions: [{ key: "app", operator: "NotIn", values: ["web"] }] },
  mixed: { matchLabels: { tier: "front" }, matchExpressions: [{ key: "app", operator: "Exists" }] }, absent: { matchExpressions: [{ key: "app", operator: "DoesNotExist" }] },
};

test.each(Object.entries(SELECTORS))("pods that a selector means, and what selects them, are found as if each was asked: %s", (name, given) => {
  const selector = labelSelector(given), pods = staticInformer(...PODS), budgets = staticInformer(budget(`ns/${name.replace(" ", "-")}`, given), budget("other/all", {}), budget("ns/none"));
  expect(names(matchingPods(pods, { namespace: "ns", selector }))).toEqual(names(PODS.filter(({ metadata }) => metadata.namespace === "ns" && selector.matches(metadata.labels))));
  for (const one of PODS.slice(0, 3)) expect(names(selecting(budgets, BY_SELECTOR, one)), one.metadata.name).toEqual(selector.matches(one.metadata.labels) ? [name.replace(" ", "-")] : []);
});

test("what selects otherwise now is found by that; what cannot be read means no pod, and keeps nobody from being found", () => {
  const budgets = staticInformer(budget("ns/a", SELECTORS.one), budget("ns/bad", { matchExpressions: [{ key: "app", operator: "Like", values: ["web"] }] }));
  expect(names(selecting(budgets, BY_SELECTOR, PODS[0]!))).toEqual(["a"]);
  budgets.put(budget("ns/a", SELECTORS["in one"]));
  expect([names(selecting(budgets, BY_SELECTOR, PODS[0]!)), names(selecting(budgets, BY_SELECTOR, PODS[1]!))]).toEqual([[], ["a"]]);
});

test("of thousands only those are looked at that have the label", () => {
  const matches = vi.spyOn(LabelSelector.prototype, "matches");
  const many = Array.from({ length: 1000 }, (_, i) => String(i));
  const pods = staticInformer(...many.map((i) => pod(`ns/${i}`, { all: "yes", own: i }))), budgets = staticInformer(...many.map((i) => budget(`ns/${i}`, { matchLabels: { own: i } })));
  expect(names(matchingPods(pods, { namespace: "ns", selector: labelSelector({ matchLabels: { all: "yes", own: "7" } }) }))).toEqual(["7"]);
  expect(names(selecting(budgets, BY_SELECTOR, pods.get("ns/7" as never)!))).toEqual(["7"]);
  expect(matches).toHaveBeenCalledTimes(2);
  matches.mockRestore();
});

test("who a change concerns is asked once where nothing tells the versions apart that it goes by, else of both", () => {
  const [before] = PODS as [Pod], asked: Readonly<Pod>[] = [];
  const concerned = nowAndBefore<Pod>((one) => {
    asked.push(one);
    return [keyOf(one)];
  });
  const version = (metadata: object): Pod => ({ ...before, metadata: { ...before.metadata, ...metadata } });
  const bound = version({ resourceVersion: "2" }), relabelled = version({ labels: { app: "db" } }), owned = version({ ownerReferences: [] }), going = version({ deletionTimestamp: "2026-01-01T00:00:00Z" });
  for (const [object, versions] of [[bound, [bound]], [relabelled, [relabelled, before]], [owned, [owned, before]], [going, [going, before]]] as const) {
    asked.length = 0;
    expect(concerned({ object, old: before, deleted: false })).toEqual(versions.map(keyOf));
    expect(asked).toEqual(versions);
  }
});

test("what was asked about last is not taken for what has the same labels in another namespace, nor for labels that have changed since", () => {
  const budgets = staticInformer(budget("ns/a", SELECTORS.one), budget("other/b", SELECTORS.one)), labels = Object.freeze({ app: "web" }), changing: Record<string, string> = { app: "web" };
  const inNamespace = (namespace: string, those: Record<string, string>): Pod => ({ ...PODS[0]!, metadata: { ...PODS[0]!.metadata, namespace, labels: those } });
  expect(["ns", "other", "ns"].map((namespace) => names(selecting(budgets, BY_SELECTOR, inNamespace(namespace, labels))))).toEqual([["a"], ["b"], ["a"]]);
  expect(names(selecting(budgets, BY_SELECTOR, inNamespace("ns", changing)))).toEqual(["a"]);
  changing["app"] = "db";
  expect(names(selecting(budgets, BY_SELECTOR, inNamespace("ns", changing)))).toEqual([]);
});
