import { expect, test, vi } from "vitest";
import { staticInformer, stored } from "../../../test/static-informer.ts";
import type { HorizontalPodAutoscaler } from "../../api/gen/autoscaling.v2.ts";
import type { Pod } from "../../api/gen/core.v1.ts";
import { LabelSelector } from "../../api/meta/label-selector.ts";
import { keyOf } from "../../api/meta/object-meta.ts";
import { SelectedPods } from "./selected-pods.ts";

const autoscaler = (name: string) => stored<HorizontalPodAutoscaler>("autoscaling/v2", "HorizontalPodAutoscaler", name);
const pod = (name: string, labels: Record<string, string>) => stored<Pod>("v1", "Pod", name, { metadata: { labels } });

test("pods that several autoscalers want are nobody's until one of them is gone, or its target has others", () => {
  const [a, b, c] = [autoscaler("ns/a"), autoscaler("ns/b"), autoscaler("other/c")];
  const autoscalers = staticInformer(a, b, c), pods = staticInformer(pod("ns/web", { app: "web" }), pod("ns/db", { app: "db" }), pod("other/web", { app: "web" }));
  const selected = new SelectedPods({ autoscalers, pods });
  const told = (one: typeof a, selector: string): unknown => { const found = selected.of(one, selector); return "pods" in found ? found.pods.map(({ metadata }) => metadata.name) : found.refusal.told; };
  expect([told(a, "app=web"), told(c, "app=web")]).toEqual([["web"], ["web"]]);
  expect([told(b, "app!=db"), told(a, "app=web")]).toEqual(["pods by selector app!=db are controlled by multiple HPAs: [ns/a ns/b]", "pods by selector app=web are controlled by multiple HPAs: [ns/a ns/b]"]);
  expect([told(b, "app=db"), told(a, "app=web")]).toEqual([["db"], ["web"]]);
  expect(told(b, "app=web")).toContain("multiple");
  autoscalers.remove(b);
  expect(told(a, "app=web")).toEqual(["web"]);
  selected.forget(keyOf(b));
  expect(told(a, "app in (web,db)")).toEqual(["web", "db"]);
});

test("a thousand autoscalers of as many targets look at their own pods, not at all", () => {
  const many = Array.from({ length: 1000 }, (_, i) => String(i));
  const autoscalers = staticInformer(...many.map((i) => autoscaler(`ns/${i}`))), pods = staticInformer(...many.map((i) => pod(`ns/${i}`, { app: i })));
  const selected = new SelectedPods({ autoscalers, pods });
  const matches = vi.spyOn(LabelSelector.prototype, "matches");
  for (const one of autoscalers.list()) expect(selected.of(one, `app=${one.metadata.name}`)).toMatchObject({ pods: [{}] });
  expect(matches.mock.calls.length).toBeLessThanOrEqual(2 * many.length);
  matches.mockRestore();
});
