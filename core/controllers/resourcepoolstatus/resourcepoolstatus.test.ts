import { expect, test } from "vitest";
import { eventually } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import type { ResourceClaim, ResourceSlice } from "../../api/gen/resource.v1.ts";
import type { ResourcePoolStatusRequest } from "../../api/gen/resource.v1alpha3.ts";
import { RESOURCE_CLAIMS, RESOURCE_POOL_STATUS_REQUESTS, RESOURCE_SLICES } from "../../client/resources.ts";
import { metricsRegistry } from "../../observe/metrics.ts";
import { expiresMs, poolsOf, resourcePoolStatusController } from "./resourcepoolstatus.ts";

let made = 0;
const slice = (pool: string, devices: number, { driver = "d", node, generation = 1, of = 1 }: { readonly driver?: string; readonly node?: string; readonly generation?: number; readonly of?: number } = {}) => ({
  apiVersion: "resource.k8s.io/v1", kind: "ResourceSlice", metadata: { name: `s${made++}` },
  spec: { driver, ...(node === undefined ? {} : { nodeName: node }), pool: { name: pool, generation, resourceSliceCount: of }, devices: Array.from({ length: devices }, (_, i) => ({ name: `dev-${i}` })) },
}) as unknown as ResourceSlice;
const claim = (name: string, ...pools: string[]) => ({ apiVersion: "resource.k8s.io/v1", kind: "ResourceClaim", metadata: { name, namespace: "ns" }, spec: {}, status: { allocation: { devices: { results: pools.map((pool) => ({ request: "r", driver: "d", pool, device: "x" })) } } } }) as unknown as ResourceClaim;
const request = (spec: object = {}, more: object = {}) => ({ apiVersion: "resource.k8s.io/v1alpha3", kind: "ResourcePoolStatusRequest", metadata: { name: "q" }, spec: { driver: "d", ...spec }, ...more }) as unknown as ResourcePoolStatusRequest;

test.each<[what: string, spec: object, slices: ResourceSlice[], claims: ResourceClaim[], pools: string[]]>([
  ["nothing", {}, [], [], []],
  ["none is taken", {}, [slice("p", 3, { node: "n" })], [], ["p on n: 0 of 3 in 1"]],
  ["some are taken", {}, [slice("p", 3)], [claim("a", "p"), claim("b", "p", "q")], ["p on -: 2 of 3 in 1"]],
  ["several, by name", {}, [slice("q", 1), slice("p", 2), slice("p", 9, { driver: "e" })], [], ["p on -: 0 of 2 in 1", "q on -: 0 of 1 in 1"]],
  ["one of them", { poolName: "q" }, [slice("q", 1), slice("p", 2)], [], ["q on -: 0 of 1 in 1"]],
  ["in several slices", {}, [slice("p", 1, { node: "n", of: 2 }), slice("p", 2, { node: "n", of: 2 })], [], ["p on n: 0 of 3 in 2"]],
  ["on several nodes", {}, [slice("p", 1, { node: "n", of: 2 }), slice("p", 2, { node: "m", of: 2 })], [], ["p on -: 0 of 3 in 2"]],
  ["an older generation does not count", {}, [slice("p", 1, { generation: 1 }), slice("p", 2, { generation: 2 })], [], ["p on -: 0 of 2 in 1"]],
  ["one that is being published", {}, [slice("p", 1, { of: 3 }), slice("p", 1, { of: 3 }), slice("q", 1)], [], ["p on -: pool d/p is incomplete: observed 2/3 slices at generation 1", "q on -: 0 of 1 in 1"]],
])("pools: %s", (_, spec, slices, claims, pools) => {
  const told = poolsOf(request(spec), slices, claims);
  expect(told.map((one) => `${one.poolName} on ${one.nodeName ?? "-"}: ${one.validationError ?? `${one.allocatedDevices} of ${one.totalDevices} in ${one.resourceSliceCount}`}`)).toEqual(pools);
  for (const { totalDevices, allocatedDevices, availableDevices, unavailableDevices } of told) if (totalDevices !== undefined) expect([availableDevices, unavailableDevices]).toEqual([totalDevices - allocatedDevices!, 0]);
});

test.each<[what: string, status: object | undefined, afterHours: number]>([
  ["without an answer", undefined, 24], ["with one", { conditions: [{ type: "Complete", lastTransitionTime: "2026-01-01T02:00:00Z" }] }, 3], ["with one that says nothing", {}, 1],
])("a request goes: %s", (_, status, afterHours) => {
  expect(expiresMs(request({}, { metadata: { name: "q", creationTimestamp: "2026-01-01T00:00:00Z" }, status }))).toBe(Date.parse("2026-01-01T00:00:00Z") + afterHours * 3_600_000);
});

test("a request is answered once, when all of its pools are published; one that is too old goes", () => {
  const metrics = metricsRegistry();
  return withControllers((deps) => [resourcePoolStatusController({ ...deps, metrics })], async (api, call) => {
    const requests = api.client.resource(RESOURCE_POOL_STATUS_REQUESTS), slices = api.client.resource(RESOURCE_SLICES);
    const held = (name: string) => api.all(RESOURCE_POOL_STATUS_REQUESTS).find(({ metadata }) => metadata.name === name);
    await slices.create(slice("p", 1, { of: 2 }), call);
    await slices.create(slice("other", 1), call);
    await api.client.resource(RESOURCE_CLAIMS).create(claim("a", "p"), call);
    await requests.create(request({ poolName: "p" }, { metadata: { name: "one" } }), call);
    await requests.create(request({ driver: "none" }, { metadata: { name: "none" } }), call);
    await eventually(() => held("none")?.status, (status) => status?.poolCount === 0);
    expect(held("none")?.status).toMatchObject({ pools: [], conditions: [{ type: "Complete", status: "True", reason: "CalculationComplete", message: "Calculated status for 0 pools" }] });
    expect(held("one")?.status).toBeUndefined();
    await slices.create(slice("p", 2, { of: 2 }), call);
    expect(await eventually(() => held("one")?.status, (status) => status !== undefined)).toMatchObject({
      poolCount: 1, pools: [{ driver: "d", poolName: "p", generation: 1, resourceSliceCount: 2, totalDevices: 3, allocatedDevices: 1, availableDevices: 2, unavailableDevices: 0 }], conditions: [{ message: "Calculated status for 1 pools" }],
    });
    await requests.create(request({ limit: 1 }, { metadata: { name: "few" } }), call);
    expect(await eventually(() => held("few")?.status, (status) => status !== undefined)).toMatchObject({ poolCount: 2, pools: [{ poolName: "other" }] });
    await requests.updateStatus({ ...held("one")!, status: { ...held("one")!.status, conditions: [{ type: "Complete", status: "True", reason: "CalculationComplete", message: "", lastTransitionTime: "2026-01-01T00:00:00Z" }] } }, call);
    await eventually(() => held("one"), (one) => one === undefined);
    expect(metrics.render()).toContain('resourcepoolstatusrequest_controller_requests_processed_total{driver_name="d"} 2\n');
  });
});
