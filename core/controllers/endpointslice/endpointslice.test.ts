import { expect, test } from "vitest";
import type { Pod, Service } from "../../api/gen/core.v1.ts";
import type { ObjectKey } from "../../api/meta/object-meta.ts";
import type { Informer } from "../../client/informer.ts";
import type { Change } from "../controller.ts";
import { eventually } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import { ENDPOINT_SLICES, EVENTS, NODES, PODS, SERVICES } from "../../client/resources.ts";
import { systemClock } from "../../lifecycle/clock.ts";
import { runController } from "../run-controller.ts";
import { endpointSliceController, servicesOfPods } from "./endpointslice.ts";
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

test("a pod whose node was not there is an endpoint once it is, whenever the next try would be", async () => {
  const clock = { ...systemClock, after: (ms: number, act: () => void) => systemClock.after(ms >= 1000 ? 1e9 : ms, act) };
  await withControllers((deps) => [runController(endpointSliceController(deps), { ...deps, clock })], async (api, call) => {
    const at = { ...pod("a", { app: "web" }), spec: { nodeName: "n1", containers: [] } };
    await api.client.resource(PODS).create(at as never, call);
    await api.client.resource(SERVICES).create({ ...service("web", { app: "web" }), apiVersion: "v1", kind: "Service", spec: { selector: { app: "web" }, clusterIP: "10.43.0.1", ipFamilies: ["IPv4"], ports: [{ port: 80 }] } } as never, call);
    await eventually(() => api.all(EVENTS).map(({ message }) => message).join(), (text) => text.includes("skipping Pod a for Service default/web: Node n1 Not Found"));
    await eventually(() => api.all(ENDPOINT_SLICES), ({ length }) => length === 1);
    await Bun.sleep(50); // it has seen that slice
    await api.client.resource(NODES).create({ metadata: { name: "other" } } as never, call);
    await api.client.resource(NODES).create({ metadata: { name: "n1" } } as never, call);
    await eventually(() => api.all(ENDPOINT_SLICES).flatMap(({ endpoints }) => endpoints ?? []).map(({ nodeName }) => nodeName).join(), (names) => names === "n1");
  });
});
