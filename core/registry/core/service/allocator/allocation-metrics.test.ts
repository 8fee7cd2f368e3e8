import { afterAll, beforeAll, expect, test } from "vitest";
import { apiServer, type ApiServer } from "../../../../../test/api-server.ts";

let api: ApiServer;
beforeAll(async () => void (api = await apiServer()));
afterAll(() => api[Symbol.asyncDispose]());

test("addresses and node ports are told of as they are given out, and what is left; what is only tried takes nothing", async () => {
  const make = (name: string, spec: object, dryRun = false) => api.ask("POST", "/api/v1/namespaces/a/services", { body: { metadata: { name }, spec: { ports: [{ port: 80 }], ...spec } }, query: dryRun ? { dryRun: "All" } : {} });
  expect((await make("any", {})).code).toBe(201);
  expect((await make("named", { clusterIP: "10.43.0.9", type: "NodePort", ports: [{ port: 80, nodePort: 30001 }] })).code).toBe(201);
  expect((await make("taken", { clusterIP: "10.43.0.9" })).code).toBe(422);
  expect((await make("port", { type: "NodePort", ports: [{ port: 80, nodePort: 30001 }] })).code).toBe(422);
  expect((await make("tried", { type: "NodePort" }, true)).code).toBe(201);
  const shown = api.metrics.render().split("\n").filter((line) => /^kube_apiserver_(clusterip|nodeport)_allocator_/.test(line) && !/_(bucket|sum)/.test(line)).sort();
  expect(shown).toEqual([
    'kube_apiserver_clusterip_allocator_allocation_total{cidr="10.43.0.0/16",scope="dynamic"} 2', 'kube_apiserver_clusterip_allocator_allocation_total{cidr="10.43.0.0/16",scope="static"} 1',
    'kube_apiserver_clusterip_allocator_allocation_errors_total{cidr="10.43.0.0/16",scope="static"} 1',
    'kube_apiserver_clusterip_allocator_allocation_duration_seconds_count{cidr="10.43.0.0/16"} 3',
    'kube_apiserver_nodeport_allocator_allocation_total{scope="static"} 1', 'kube_apiserver_nodeport_allocator_allocation_errors_total{scope="static"} 1',
    'kube_apiserver_clusterip_allocator_allocated_ips{cidr="10.43.0.0/16"} 2', 'kube_apiserver_clusterip_allocator_available_ips{cidr="10.43.0.0/16"} 65532',
    "kube_apiserver_nodeport_allocator_allocated_ports 1", "kube_apiserver_nodeport_allocator_available_ports 2767",
  ].sort());
});
