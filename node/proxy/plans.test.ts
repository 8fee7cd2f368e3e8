import { expect, test } from "vitest";
import { staticInformer, stored } from "../../test/static-informer.ts";
import type { Service } from "../../core/api/gen/core.v1.ts";
import type { EndpointSlice } from "../../core/api/gen/discovery.v1.ts";
import { keyOf } from "../../core/api/meta/object-meta.ts";
import { ServicePlans } from "./plans.ts";

const service = (name: string, port: number) => stored<Service>("v1", "Service", `default/${name}`, { spec: { clusterIPs: ["10.43.0.5"], ports: [{ port, protocol: "TCP" }] } });

test("between Services others have their turn; one that changes while others are planned is planned again, one that has been is not", async () => {
  const services = staticInformer(...Array.from({ length: 100 }, (_, i) => service(`s${i}`, i + 1)));
  const asked: string[] = [];
  const plans = new ServicePlans({
    services: { get(key) { asked.push(key); return services.get(key); } }, slices: staticInformer<EndpointSlice>(),
    clusterCidrs: { 4: ["10.42.0.0/16"], 6: [] }, node: { name: "n", ips: [], zone: undefined },
  });
  for (const one of services.list()) plans.change(keyOf(one));
  await plans.plan(() => {
    if (asked.length !== 50) return undefined;
    const changed = service("s7", 1007);
    services.put(changed);
    plans.change(keyOf(changed));
    return Promise.resolve();
  });
  expect([asked.length, asked.filter((key) => key === "default/s7").length, plans.isStale]).toEqual([101, 2, false]);
  expect([...plans.rulesets[4].containers.get("no-endpoint-services")!.keys()].filter((key) => key.endsWith(". 1007") || key.endsWith(". 8"))).toEqual(["10.43.0.5 . tcp . 1007"]);
});

test("where another node's kubelet is reached is not its port's Service's any more; Services without other addresses are not planned again", async () => {
  const outside = stored<Service>("v1", "Service", "default/outside", { spec: { clusterIPs: ["10.43.0.6"], externalIPs: ["172.30.0.2"], ports: [{ port: 10_250, protocol: "TCP" }] } });
  const services = staticInformer(service("s", 80), outside);
  const asked: string[] = [];
  const plans = new ServicePlans({
    services: services, slices: { by(_, key) { asked.push(key); return []; } },
    clusterCidrs: { 4: ["10.42.0.0/16"], 6: [] }, node: { name: "n", ips: [], zone: undefined },
  });
  for (const one of services.list()) plans.change(keyOf(one));
  const plan = async (): Promise<string[]> => {
    await plans.plan(() => undefined);
    return asked.splice(0);
  };
  const external = (): string[] => [...plans.rulesets[4].containers.get("no-endpoint-services")!.keys()].filter((key) => key.startsWith("172."));
  expect([await plan(), external()]).toEqual([["default/s", "default/outside"], ["172.30.0.2 . tcp . 10250"]]);
  const kept = new Map([["172.30.0.2", new Set(["tcp 10250"])]]);
  expect([plans.placeNode({ zone: undefined, kept }), await plan(), external()]).toEqual([true, ["default/outside"], []]);
  expect([plans.placeNode({ zone: undefined, kept: new Map(kept) }), await plan()]).toEqual([false, []]);
  expect([plans.placeNode({ zone: "z", kept }), await plan()]).toEqual([true, ["default/s", "default/outside"]]);
});
