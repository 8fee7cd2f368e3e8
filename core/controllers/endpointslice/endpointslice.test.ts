import { expect, test } from "vitest";
import type { Pod, Service } from "../../api/gen/core.v1.ts";
import type { ObjectKey } from "../../api/meta/object-meta.ts";
import type { Informer } from "../../client/informer.ts";
import type { Change } from "../controller.ts";
import { servicesOfPods } from "./endpointslice.ts";
import { TriggerTimes } from "./trigger-time.ts";

const service = (name: string, selector: Record<string, string>) => ({ metadata: { name, namespace: "default", creationTimestamp: "2026-01-01T00:00:00Z" }, spec: { selector } }) as unknown as Service;
const pod = (name: string, labels: Record<string, string>, { ip = "10.42.0.1", readyAt = "2026-01-01T00:00:00Z" } = {}) =>
  ({ metadata: { name, namespace: "default", labels }, spec: { containers: [] }, status: { podIP: ip, podIPs: [{ ip }], conditions: [{ type: "Ready", status: "True", lastTransitionTime: readyAt }] } }) as unknown as Pod;

test("a pod's change concerns the services it is an endpoint of; another label of it those alone that did not select it, or do not any more", () => {
  const services = { by: () => [service("all", { app: "web" }), service("old", { track: "a" }), service("new", { track: "b" })] } as unknown as Informer<Service>;
  let tell: ((change: Change<Pod>) => void) | undefined;
  const pods = { onChange: (handler: typeof tell) => { tell = handler; return () => undefined; } } as unknown as Informer<Pod>;
  const keys: ObjectKey[] = [];
  servicesOfPods({ pods, services }).subscribe((key) => void keys.push(key));
  const of = (object: Pod, old?: Pod, deleted = false): string => {
    tell!({ object, old, deleted });
    return [...new Set(keys.splice(0))].map((key) => key.split("/")[1]).sort().join();
  };
  const web = pod("web", { app: "web", track: "a" });
  expect(of(web)).toBe("all,old");
  expect(of(pod("web", { app: "web", track: "a" }), web)).toBe("");
  expect(of(pod("web", { app: "web", track: "a", note: "looked at" }), web)).toBe("");
  expect(of(pod("web", { app: "web", track: "b" }), web)).toBe("new,old");
  expect(of(pod("web", { app: "web", track: "b" }, { ip: "10.42.0.2" }), web)).toBe("all,new,old");
  expect(of(web, web, true)).toBe("all,old");
});

test("when a write tells that the world changed: the earliest of what is new since the last one, however often the rest is looked at", () => {
  const times = new TriggerTimes();
  const web = service("web", { app: "web" });
  const [a, b] = [pod("a", {}), pod("b", {})];
  expect(times.changedAt(web, [a, b])).toBe("2026-01-01T00:00:00Z");
  expect(times.changedAt(web, [a, b])).toBeUndefined();
  const [later, latest] = [pod("a", {}, { readyAt: "2026-01-01T00:00:09Z" }), pod("b", {}, { readyAt: "2026-01-01T00:00:10Z" })];
  expect(times.changedAt(web, [later, latest])).toBe("2026-01-01T00:00:09Z");
  expect(times.changedAt(web, [later])).toBeUndefined();
  expect(times.changedAt(web, [later, latest])).toBe("2026-01-01T00:00:10Z"); // it had gone, and is new
  times.forget("default/web" as ObjectKey);
  expect(times.changedAt(web, [later])).toBe("2026-01-01T00:00:00Z");
});
