/** Services that want ports of the nodes: no port is given twice, none of the cluster's own, and who has it keeps it whoever comes later. */
import { expect, test } from "vitest";
import { seededRandom } from "../../../test/simulator/seeded.ts";
import { stored } from "../../../test/static-informer.ts";
import type { Node, Service } from "../../api/gen/core.v1.ts";
import { planLoadBalancer } from "./plan.ts";

test("a port has one Service, the oldest that wants it, whatever the order", () => {
  for (let seed = 1; seed <= 200; seed++) {
    const random = seededRandom(seed);
    const nodes = Array.from({ length: random.integer(1, 5) }, (_, i) => stored<Node>("v1", "Node", `n${i}`, { spec: {}, status: { addresses: [{ type: "InternalIP", address: `10.0.0.${i + 1}` }], conditions: [{ type: "Ready", status: random.pick(["True", "True", "False"]) }] } }));
    const services = Array.from({ length: random.integer(1, 10) }, (_, i) => stored<Service>("v1", "Service", `default/s${i}`, {
      metadata: { creationTimestamp: `2026-01-01T00:00:0${random.integer(0, 9)}Z` },
      spec: { type: "LoadBalancer", ipFamilies: ["IPv4"], ports: Array.from({ length: random.integer(1, 2) }, () => ({ port: random.pick([80, 443, 53, 6443]), protocol: random.pick(["TCP", "UDP"]) })) },
    }));
    const reserved = [{ protocol: "TCP" as const, port: 6443, why: "the API server's" }];
    const plan = (one: Service, rivals: readonly Service[]) => planLoadBalancer(one, { nodes, slices: [], rivals, nodePortsAt: () => [], reserved });
    const given = services.filter((one) => "ingress" in plan(one, services));
    const ports = given.flatMap(({ spec }) => [...new Set(spec.ports!.map(({ port, protocol }) => `${port}/${protocol}`))]);
    expect(new Set(ports).size, `seed ${seed}`).toBe(ports.length);
    expect(ports, `seed ${seed}`).not.toContain("6443/TCP");
    for (const one of services) expect(plan(one, services.toReversed()), `seed ${seed}`).toEqual(plan(one, services));
    const late = stored<Service>("v1", "Service", "default/late", { metadata: { creationTimestamp: "2027-01-01T00:00:00Z" }, spec: { ...services[0]!.spec } });
    for (const one of given) expect(plan(one, [late, ...services]), `seed ${seed}`).toEqual(plan(one, services));
    const ready = nodes.filter(({ status }) => status?.conditions?.[0]?.status === "True").map(({ status }) => status!.addresses![0]!.address).sort();
    for (const one of given) expect((plan(one, services) as { ingress: { ip?: string }[] }).ingress.map(({ ip }) => ip), `seed ${seed}`).toEqual(ready);
  }
});
