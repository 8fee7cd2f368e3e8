import { expect, test } from "vitest";
import { eventually, fakeApi } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import { stored } from "../../../test/static-informer.ts";
import type { Service } from "../../api/gen/core.v1.ts";
import { REPORTED_EVENTS, SERVICES } from "../../client/resources.ts";
import { metricsRegistry } from "../../observe/metrics.ts";
import { nodePortProblems, serviceNodePortController } from "./node-ports.ts";

const RANGE = { first: 30_000, last: 30_009 };
/** "30001", "30001/UDP" */
const service = (name: string, ports: readonly string[], healthCheckNodePort = 0): Service => stored<Service>("v1", "Service", `d/${name}`, {
  spec: { type: "LoadBalancer", healthCheckNodePort, ports: ports.map((text) => ({ port: 80, nodePort: Number(text.split("/")[0]), protocol: text.split("/")[1] ?? "TCP" })) },
} as Partial<Service>);

test.each<[string, readonly Service[], readonly string[]]>([
  ["what is as it should be", [service("a", ["30000", "0"]), service("b", ["30001", "30001/UDP"], 30_002)], []],
  ["a port outside of the range", [service("a", ["30010"]), service("b", ["29999"])], ["a PortOutOfRange Port 30010 is not within the port range 30000-30009; please recreate service", "b PortOutOfRange Port 29999 is not within the port range 30000-30009; please recreate service"]],
  ["a port of two Services is the first one's", [service("b", ["30001"]), service("a", ["30001"])], ["b PortAlreadyAllocated Port 30001 was assigned to multiple services; please recreate service"]],
  ["a port of one Service and of another's health checks", [service("a", [], 30_003), service("b", ["30003"])], ["b PortAlreadyAllocated Port 30003 was assigned to multiple services; please recreate service"]],
  ["one protocol's port twice", [service("a", ["30001", "30001"])], ["a PortAlreadyAllocated Port 30001 was assigned to multiple services; please recreate service"]],
  ["a port that is a Service's own for health checks, too", [service("a", ["30001"], 30_001), service("b", ["30002/UDP"], 30_002)], ["a PortAlreadyAllocated Port 30001 was assigned to multiple services; please recreate service"]],
])("%s", (_, services, told) => {
  expect(nodePortProblems(services, RANGE).map(({ service: { metadata }, reason, message }) => `${metadata.name} ${reason} ${message}`)).toEqual(told);
});

test("what is wrong is told at the Service, and counted", async () => {
  const metrics = metricsRegistry(), cluster = fakeApi();
  await cluster.client.resource(SERVICES).create(service("web", ["30010"]), { signal: new AbortController().signal });
  await withControllers((deps) => [serviceNodePortController({ ...deps, metrics, nodeName: "n1", nodePortRange: RANGE })], async (api) => {
    const [told] = await eventually(() => api.all(REPORTED_EVENTS), (all) => all.length === 1);
    expect(told).toMatchObject({ reason: "PortOutOfRange", type: "Warning", action: "PortAllocation", reportingController: "portallocator-repair-controller", regarding: { kind: "Service", name: "web" } });
    expect(metrics.render()).toContain('apiserver_nodeport_repair_port_errors_total{type="outOfRange"} 1');
    expect(metrics.render()).toContain("apiserver_nodeport_repair_reconcile_errors_total 0");
  }, { api: cluster });
});
