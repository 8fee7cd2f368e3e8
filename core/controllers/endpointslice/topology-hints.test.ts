import { expect, test } from "vitest";
import { eventually } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import { stored } from "../../../test/static-informer.ts";
import type { Node, Pod, Service } from "../../api/gen/core.v1.ts";
import type { Endpoint, EndpointSlice } from "../../api/gen/discovery.v1.ts";
import type { NewObject } from "../../api/meta/object-meta.ts";
import { ENDPOINT_SLICES, EVENTS, NODES, PODS, SERVICES } from "../../client/resources.ts";
import { endpointSliceController } from "./endpointslice.ts";
import { type Layout, planSlices } from "./plan.ts";
import { usesTopologyMode, withoutHints, withZoneHints, zoneShares } from "./topology-hints.ts";

const node = (name: string, zone: string | undefined, { cpu = "2", ready = "True", labels = {} }: { cpu?: string; ready?: string; labels?: Record<string, string> } = {}): Node =>
  stored<Node>("v1", "Node", name, { metadata: { labels: { ...(zone && { "topology.kubernetes.io/zone": zone }), ...labels } }, spec: {}, status: { allocatable: { cpu }, conditions: [{ type: "Ready", status: ready }] } });
const endpoint = (n: number, zone: string | undefined, more: Partial<Endpoint> = {}): Endpoint => ({ addresses: [`10.0.0.${n}`], conditions: { ready: true }, ...(zone && { zone }), targetRef: { kind: "Pod", name: `p${n}`, uid: `u${n}` }, ...more });
const endpointsOf = (zones: string): Endpoint[] => [...zones].map((zone, i) => endpoint(i, zone));
const slice = (endpoints: Endpoint[]): EndpointSlice => ({ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", metadata: { name: "s", uid: "s", resourceVersion: "1", creationTimestamp: "" }, addressType: "IPv4", endpoints });
const shares = (...nodes: readonly (readonly [zone: string, cpu: string])[]) => zoneShares(nodes.map(([zone, cpu], i) => node(`n${i}`, zone, { cpu })));
/** What becomes of the slice with `before`, if there is one. */
const laidOut = (endpoints: readonly Endpoint[], of: ReturnType<typeof zoneShares>, before: readonly Endpoint[]): { given: readonly Endpoint[]; written: number; problem: string | undefined } => {
  const existing = before.length === 0 ? [] : [slice([...before])];
  const layout: Layout = { addressType: "IPv4", groups: [{ ports: [], endpoints }], metadata: {}, perSliceMax: 100, placeholder: true, triggerTime: undefined };
  const { plan, problem } = withZoneHints(planSlices(existing.map(withoutHints), layout), existing, { shares: of, layout });
  const after = [...plan.create, ...plan.update];
  return { given: (after.length === 0 ? existing : after).flatMap((one) => one.endpoints ?? []), written: after.length, problem };
};
/** The zones that endpoints are for, or why for none. */
const hints = (endpoints: readonly Endpoint[], of: ReturnType<typeof zoneShares>, before: readonly Endpoint[] = []): string => {
  const { given, problem } = laidOut(endpoints, of, before);
  return problem ?? given.map((one) => one.hints?.forZones?.map(({ name }) => name).join("+") ?? "-").join("");
};
const held = (zones: string, forZones: string): Endpoint[] => [...zones].map((zone, i) => endpoint(i, zone, { hints: { forZones: [{ name: forZones[i]! }] } }));

test("the annotation, by its old and its new name", () => {
  const of = (annotations: Record<string, string>): boolean => usesTopologyMode(stored<Service>("v1", "Service", "default/web", { metadata: { annotations }, spec: {} }));
  const [now, before] = ["service.kubernetes.io/topology-mode", "service.kubernetes.io/topology-aware-hints"];
  expect([of({}), of({ [now]: "Auto" }), of({ [now]: "auto" }), of({ [now]: "Disabled" }), of({ [before]: "Auto" }), of({ [before]: "Disabled", [now]: "Auto" })]).toEqual([false, true, true, false, true, false]);
});

test("zones have what their nodes have; control planes and nodes that are not ready do not count, and one that says too little spoils it", () => {
  expect(zoneShares([node("a", "a"), node("b", "b", { cpu: "6" })])).toEqual(new Map([["a", 0.25], ["b", 0.75]]));
  expect(zoneShares([node("a", "a"), node("b", "b"), node("c", "c", { ready: "False" }), node("d", undefined, { labels: { "node-role.kubernetes.io/control-plane": "" } })])).toEqual(new Map([["a", 0.5], ["b", 0.5]]));
  expect(zoneShares([node("a", "a"), node("b", "b"), node("c", undefined)])).toBeUndefined();
  expect(zoneShares([node("a", "a"), node("b", "b", { cpu: "0" })])).toBeUndefined();
  expect(zoneShares([node("a", "a"), node("b", "a")])).toBeUndefined();
});

const EVEN = shares(["a", "2"], ["b", "2"]);
const THREE = shares(["a", "2"], ["b", "2"], ["c", "2"]);
test.each<[what: string, endpoints: readonly Endpoint[], of: ReturnType<typeof zoneShares>, before: readonly Endpoint[], result: string]>([
  ["each its own zone", endpointsOf("abab"), EVEN, [], "abab"],
  ["from the zone that has too many", endpointsOf("aaab"), EVEN, [], "baab"],
  ["a zone without any gets some", endpointsOf("aabbab"), THREE, [], "cacbab"],
  ["by CPUs, not by number of nodes", endpointsOf("aabb"), shares(["a", "1"], ["b", "3"]), [], "babb"],
  ["who is not ready has none", [...endpointsOf("ab"), endpoint(9, "a", { conditions: { ready: false } })], EVEN, [], "ab-"],
  ["fewer endpoints than zones", endpointsOf("ab"), THREE, [], "Insufficient number of endpoints (2 endpoints, 3 zones)"],
  ["too uneven", endpointsOf("aaa"), shares(["a", "10"], ["b", "10"]), [], "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold (3 endpoints, 2 zones)"],
  ["nothing known of nodes", endpointsOf("ab"), undefined, [], "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes"],
  ["an endpoint in no zone", [...endpointsOf("ab"), endpoint(9, undefined), endpoint(10, "b")], EVEN, [], "One or more endpoints do not have a zone specified"],
  ["who has a zone keeps it", endpointsOf("abab"), EVEN, held("abab", "baba"), "baba"],
  ["unless that leaves another too few", endpointsOf("aabb"), EVEN, held("aabb", "aaab"), "aabb"],
  ["or is for one that is not there", endpointsOf("abab"), EVEN, held("abab", "abac"), "abab"],
  ["what is written anyway is for its own zone again as soon as that will do", endpointsOf("aabb"), EVEN, held("aa", "ab"), "aabb"],
])("hints: %s", (_, endpoints, of, before, result) => expect(hints(endpoints, of, before)).toBe(result));

test("whatever the nodes and endpoints: all have a zone or none, no zone is overloaded by more than a fifth if it could be helped, and what was decided stays", () => {
  let state = 7;
  const pick = (n: number): number => { state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0; return (state >>> 8) % n; };
  for (let round = 0; round < 500; round++) {
    const zones = ["a", "b", "c", "d"].slice(0, 2 + pick(3));
    const of = shares(...zones.map((zone) => [zone, String(1 + pick(8))] as const))!;
    const endpoints = Array.from({ length: 1 + pick(30) }, (_, i) => endpoint(i, zones[pick(zones.length)]!));
    const { given, problem } = laidOut(endpoints, of, []);
    const counts = new Map<string, number>();
    for (const { hints: own } of given) if (own) counts.set(own.forZones![0]!.name, (counts.get(own.forZones![0]!.name) ?? 0) + 1);
    if (problem !== undefined) { expect(counts.size).toBe(0); continue; }
    expect(given.every(({ hints: own }) => own?.forZones?.length === 1)).toBe(true);
    for (const [zone, share] of of) expect(counts.get(zone) ?? 0, `round ${round}: ${zone}`).toBeGreaterThanOrEqual(Math.floor(share * endpoints.length / 1.2));
    expect(laidOut(endpoints, of, given).written).toBe(0);
  }
});

const pod = (name: string, nodeName: string, ip: string): NewObject<Pod> => ({
  apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "default", labels: { app: "web" } }, spec: { nodeName, containers: [] },
  status: { phase: "Running", podIP: ip, podIPs: [{ ip }], conditions: [{ type: "Ready", status: "True", lastTransitionTime: "2026-01-01T00:00:00Z" }] },
}) as NewObject<Pod>;

test("a Service asks for it: hints come, follow the nodes, and go with the annotation; each time it is told", () =>
  withControllers((deps) => [endpointSliceController(deps)], async (api, call) => {
    const [nodes, services] = [api.client.resource(NODES), api.client.resource(SERVICES)];
    for (const [name, zone] of [["n1", "a"], ["n2", "b"]] as const) await nodes.create({ apiVersion: "v1", kind: "Node", metadata: { name, labels: { "topology.kubernetes.io/zone": zone } }, spec: {}, status: { allocatable: { cpu: "2" }, conditions: [{ type: "Ready", status: "True" }] } } as NewObject<Node>, call);
    for (const [name, on, ip] of [["x", "n1", "10.42.0.1"], ["y", "n2", "10.42.0.2"]] as const) await api.client.resource(PODS).create(pod(name, on, ip), call);
    const web = await services.create({ apiVersion: "v1", kind: "Service", metadata: { name: "web", namespace: "default", annotations: { "service.kubernetes.io/topology-mode": "Auto" } }, spec: { clusterIP: "10.43.0.9", ipFamilies: ["IPv4"], trafficDistribution: "PreferClose", selector: { app: "web" }, ports: [{ port: 80 }] } } as NewObject<Service>, call);
    const zones = (): string => (api.all(ENDPOINT_SLICES)[0]?.endpoints ?? []).map(({ hints: own }) => own?.forZones?.[0]?.name ?? "-").sort().join("");
    const told = (): string[] => api.all(EVENTS).map(({ type, reason, message }) => `${type} ${reason}: ${message}`);
    await eventually(zones, (seen) => seen === "ab");
    await eventually(told, (all) => all.includes("Normal TopologyAwareHintsEnabled: Topology Aware Hints has been enabled, addressType: IPv4"));

    const second = api.all(NODES).find(({ metadata }) => metadata.name === "n2")!;
    await nodes.updateStatus({ ...second, status: { ...second.status, conditions: [{ type: "Ready", status: "Unknown" }] } } as Node, call);
    await eventually(zones, (seen) => seen === "--");
    await eventually(told, (all) => all.includes("Warning TopologyAwareHintsDisabled: Insufficient Node information: allocatable CPU or zone not specified on one or more nodes, addressType: IPv4"));
    await nodes.updateStatus({ ...api.all(NODES).find(({ metadata }) => metadata.name === "n2")!, status: second.status! } as Node, call);
    await eventually(zones, (seen) => seen === "ab");

    await services.patch(web, "application/merge-patch+json", { metadata: { annotations: null }, spec: { trafficDistribution: null } }, call);
    await eventually(zones, (seen) => seen === "--");
    await eventually(told, (all) => all.includes("Warning TopologyAwareHintsDisabled: Topology Aware Hints has been disabled, addressType: IPv4"));
  }));
