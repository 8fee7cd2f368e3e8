/** Nodes as endpoints of the ingress: each once in each family it has, in slices that are not too large and have names of their own. */
import { expect, test } from "vitest";
import { seededRandom } from "../../../test/simulator/seeded.ts";
import { stored } from "../../../test/static-informer.ts";
import type { Node, Service } from "../../api/gen/core.v1.ts";
import { ingressSlices } from "./plan.ts";

test("every node that can serve is in one slice of each of its families, in whatever order nodes come", () => {
  for (let seed = 1; seed <= 25; seed++) {
    const random = seededRandom(seed);
    const at = `seed ${seed}`;
    const nodes = Array.from({ length: random.pick([0, 1, 7, 999, 1000, 1001, 2300]) }, (_, i) => stored<Node>("v1", "Node", `n${i}`, {
      metadata: { labels: { "kubernetes.io/os": random.pick(["linux", "linux", "linux", "windows"]) }, ...(random.integer(0, 9) === 0 ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}) }, spec: {},
      status: {
        addresses: [{ type: "Hostname", address: `n${i}` }, ...random.pick([[4], [4], [6], [4, 6], [6, 4], []]).map((family) => ({ type: "InternalIP", address: family === 4 ? `10.0.${i >> 8}.${i & 255}` : `fd00::${i.toString(16)}` }))],
        conditions: [{ type: "Ready", status: random.pick(["True", "False", "Unknown"]) }],
      },
    } as never));
    const ipFamilies = random.pick([["IPv4"], ["IPv6"], ["IPv4", "IPv6"], ["IPv6", "IPv4"]]);
    const service = stored<Service>("v1", "Service", "kube-system/coracle-ingress", { spec: { ipFamilies } } as never);
    const slices = ingressSlices(service, nodes);
    expect(ingressSlices(service, nodes.toReversed()), at).toEqual(slices);
    expect(new Set(slices.map(({ metadata }) => metadata.name)).size, at).toBe(slices.length);
    expect([...new Set(slices.map(({ addressType }) => addressType))].sort(), at).toEqual(ipFamilies.toSorted());
    for (const { endpoints } of slices) expect(endpoints!.length, at).toBeLessThanOrEqual(1000);

    const isReady = (node: Node): boolean => node.status!.conditions![0]!.status === "True";
    for (const family of ipFamilies) {
      const wanted = nodes.filter(({ metadata }) => metadata.deletionTimestamp === undefined && metadata.labels!["kubernetes.io/os"] !== "windows")
        .flatMap((node) => node.status!.addresses!.filter(({ type, address }) => type === "InternalIP" && address.includes(":") === (family === "IPv6")).map(({ address }) => `${node.metadata.name} ${address} ${isReady(node)}`));
      const given = slices.filter(({ addressType }) => addressType === family).flatMap(({ endpoints }) => endpoints!.map(({ nodeName, addresses, conditions }) => `${nodeName} ${addresses.join()} ${conditions?.ready}`));
      expect(given.sort(), at).toEqual(wanted.sort());
    }
  }
});
