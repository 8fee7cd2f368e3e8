import { expect, test } from "vitest";
import type { Endpoint, EndpointSlice } from "../../api/gen/discovery.v1.ts";
import type { ContainerPort, Pod, Service } from "../../api/gen/core.v1.ts";
import { growth } from "../../../test/reads.ts";
import { objectKey } from "../../api/meta/object-meta.ts";
import { metricsRegistry } from "../../observe/metrics.ts";
import { sliceMetrics } from "./metrics.ts";
import { type Layout, planSlices } from "./plan.ts";
import { groupsFor } from "./service-endpoints.ts";

const PORTS = [{ name: "http", port: 80, protocol: "TCP" as const }];
const layout = (endpoints: readonly Endpoint[], more: Partial<Layout> = {}): Layout => ({
  addressType: "IPv4", groups: [{ ports: PORTS, endpoints }], metadata: { generateName: "web-", namespace: "default", labels: { a: "b" } }, perSliceMax: 4, placeholder: true, triggerTime: undefined, ...more,
});
const endpoint = (n: number, ready = true): Endpoint => ({ addresses: [`10.0.0.${n}`], conditions: { ready }, targetRef: { kind: "Pod", name: `p${n}`, uid: `u${n}` } });
const endpoints = (...numbers: number[]) => numbers.map((n) => endpoint(n));
const slice = (name: string, held: readonly Endpoint[], ports = PORTS): EndpointSlice => ({
  apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", addressType: "IPv4", endpoints: [...held], ports,
  metadata: { name, namespace: "default", uid: name, resourceVersion: "1", creationTimestamp: "", labels: { a: "b" } },
});
const shape = ({ create, update, remove }: ReturnType<typeof planSlices>) => ({
  create: create.map((s) => (s.endpoints ?? []).map((e) => e.addresses[0])), update: Object.fromEntries(update.map((s) => [s.metadata.name, (s.endpoints ?? []).map((e) => e.addresses[0])])), remove: remove.map((s) => s.metadata.name),
});
const podWith = (ports: readonly Partial<ContainerPort>[]): Pod => ({ metadata: { name: "p" }, spec: { containers: [{ name: "c", ports }], initContainers: [{ name: "s", restartPolicy: "Always", ports: [{ name: "init", containerPort: 40 }] }, { name: "i", ports: [{ name: "b", containerPort: 50 }] }] }, status: { podIP: "10.0.0.1" } }) as unknown as Pod;
const ips = (...numbers: number[]) => numbers.map((n) => `10.0.0.${n}`);

test("nothing changes: nothing is written, whatever the order of things", () => {
  const held = slice("s", endpoints(1, 2));
  expect(planSlices([held], layout(endpoints(2, 1)))).toEqual({ create: [], update: [], remove: [] });
  expect(planSlices([slice("empty", [], [])], layout([], { groups: [] }))).toEqual({ create: [], update: [], remove: [] });
});

test.each([
  { name: "first endpoints", existing: [], want: endpoints(1, 2, 3, 4, 5), create: [ips(1, 2, 3, 4), ips(5)], update: {}, remove: [] },
  { name: "what changes anyway is filled first", existing: [slice("a", endpoints(1, 2)), slice("b", endpoints(3))], want: [...endpoints(1), endpoint(2, false), ...endpoints(3, 4, 5)], create: [], update: { a: ips(1, 2, 4, 5) }, remove: [] },
  { name: "then the slice that is filled best", existing: [slice("a", endpoints(1)), slice("b", endpoints(2, 3, 4))], want: endpoints(1, 2, 3, 4, 5), create: [], update: { b: ips(2, 3, 4, 5) }, remove: [] },
  { name: "an empty slice goes", existing: [slice("a", endpoints(1)), slice("b", endpoints(2))], want: endpoints(1), create: [], update: {}, remove: ["b"] },
  { name: "the last one stays, empty", existing: [slice("a", endpoints(1))], want: [], create: [], update: { a: [] }, remove: [] },
  { name: "no endpoints at all", existing: [], want: [], create: [[]], update: {}, remove: [] },
  { name: "other ports: the slice is written over", existing: [slice("a", endpoints(1), [{ name: "http", port: 81, protocol: "TCP" }])], want: endpoints(1), create: [], update: { a: ips(1) }, remove: [] },
])("$name", ({ existing, want, ...expected }) => {
  const plan = planSlices(existing, layout(want));
  expect(shape(plan)).toEqual({ create: expected.create, update: expected.update, remove: expected.remove });
});

test("a slice of nothing has neither list, as upstream sends it: in managedFields they are nobody's", () => {
  const [made] = planSlices([], layout([])).create;
  expect([made?.endpoints, made?.ports]).toEqual([undefined, undefined]);
  const [emptied] = planSlices([slice("a", endpoints(1))], layout([], { groups: [] })).update;
  expect([emptied?.endpoints, emptied?.ports]).toEqual([undefined, undefined]);
});

test("labels that changed are written, the trigger time comes and goes", () => {
  const [changed] = planSlices([slice("a", endpoints(1))], layout(endpoints(1), { metadata: { labels: { a: "c" } }, triggerTime: "t" })).update;
  expect(changed?.metadata).toMatchObject({ name: "a", labels: { a: "c" }, annotations: { "endpoints.kubernetes.io/last-change-trigger-time": "t" } });
  const [cleared] = planSlices([changed!], layout(endpoints(1, 2))).update;
  expect(cleared?.metadata.annotations).toEqual({});
});

test("who comes again under its name and address stays in its slice, and is written anew", () => {
  const again = { ...endpoint(1), targetRef: { ...endpoint(1).targetRef!, uid: "another" } };
  const plan = planSlices([slice("a", endpoints(1, 2)), slice("b", endpoints(3, 4, 5))], layout([again, ...endpoints(2, 3, 4, 5)]));
  expect(shape(plan)).toEqual({ create: [], update: { a: ips(1, 2) }, remove: [] });
  expect(plan.update[0]!.endpoints![0]!.targetRef!.uid).toBe("another");
});

test("an owner that somebody else has added stays, beside the one that must be there", () => {
  const owner = (uid: string) => ({ apiVersion: "v1", kind: "Service", name: "web", uid });
  const owned = { ...slice("a", endpoints(1)), metadata: { ...slice("a", endpoints(1)).metadata, ownerReferences: [owner("web"), owner("theirs")] } };
  const written = (uid: string) => planSlices([owned], layout(endpoints(1, 2), { metadata: { labels: { a: "b" }, ownerReferences: [owner(uid)] } })).update.map((one) => one.metadata.ownerReferences?.map((one) => one.uid));
  expect([written("web"), written("new")]).toEqual([[["web", "theirs"]], [["new"]]]);
});

test("annotations are others' to make, unless they are given: then what is not among them goes", () => {
  const annotated = { ...slice("a", endpoints(1)), metadata: { ...slice("a", endpoints(1)).metadata, annotations: { one: "a", two: "b" } } };
  const given = (annotations: Record<string, string> | undefined, want = endpoints(1)) => {
    const { metadata } = layout(want);
    return planSlices([annotated], layout(want, { metadata: { ...metadata, ...(annotations === undefined ? {} : { annotations }) } })).update.map((one) => one.metadata.annotations);
  };
  expect([given(undefined), given(undefined, endpoints(1, 2)), given({ one: "a", two: "b" }), given({ one: "a" })]).toEqual([[], [{ one: "a", two: "b" }], [], [{ one: "a" }]]);
});

test("whatever was there before: every endpoint in exactly one slice, no slice too full", () => {
  for (let seed = 1; seed < 400; seed++) {
    let state = seed * 7919;
    const pick = (n: number): number => { state = (Math.imul(state, 1103515245) + 12345) >>> 0; return (state >>> 8) % n; };
    const all = Array.from({ length: 20 }, (_, n) => n + 1);
    const before = all.filter(() => pick(2) === 0);
    const existing: EndpointSlice[] = [];
    while (before.length > 0) existing.push(slice(`s${existing.length}`, before.splice(0, 1 + pick(4)).map((n) => endpoint(n, pick(3) > 0))));
    const want = all.filter(() => pick(2) === 0).map((n) => endpoint(n, pick(3) > 0));
    const plan = planSlices(existing, layout(want));
    const after = [...existing.filter((s) => !plan.remove.includes(s) && !plan.update.some((u) => u.metadata.name === s.metadata.name)), ...plan.update, ...plan.create];
    expect(after.flatMap((s) => s.endpoints ?? []).toSorted(byAddress), `seed ${seed}`).toEqual(want.toSorted(byAddress));
    for (const s of after) expect((s.endpoints ?? []).length).toBeLessThanOrEqual(4);
  }
});

function byAddress(a: Endpoint, b: Endpoint): number { return a.addresses[0]! < b.addresses[0]! ? -1 : 1; }

test("how many endpoints there are, in how many slices and in how few they would fit, can be scraped under upstream's names", () => {
  const metrics = metricsRegistry();
  const told = sliceMetrics(metrics, { perSliceMax: 4 });
  const service = (trafficDistribution?: string) => ({ metadata: { name: "web" }, spec: { trafficDistribution } }) as Service;
  const sample = (name: string): number => Number(new RegExp(`^endpoint_slice_controller_${name} (\\S+)$`, "m").exec(metrics.render())?.[1] ?? -1);
  const before = [slice("a", endpoints(1, 2)), slice("b", endpoints(3))];
  const [web, db] = [objectKey("n", "web"), objectKey("n", "db")];
  told.synced(web, service("PreferSameZone"), before, [planSlices(before, layout(endpoints(1, 3, 4, 5, 6)))]);
  told.synced(db, service(), [], [{ create: [], update: [], remove: [] }]);
  expect([sample("endpoints_desired"), sample("num_endpoint_slices"), sample("desired_endpoint_slices")]).toEqual([5, 2, 3]); // one at least for each
  expect([sample("endpoints_added_per_sync_sum"), sample("endpoints_removed_per_sync_sum"), sample("endpoints_added_per_sync_count")]).toEqual([3, 1, 2]);
  expect(metrics.render()).toContain('endpoint_slice_controller_services_count_by_traffic_distribution{traffic_distribution="PreferSameZone"} 1\n');
  expect(metrics.render()).toContain('endpoint_slice_controller_changes{operation="update"} 1\n');
  expect(metrics.render()).toContain('endpoint_slice_controller_endpointslices_changed_per_sync_sum{topology="Disabled",traffic_distribution="PreferSameZone"} 1\n');
  told.synced(db, { ...service("PreferSameZone"), metadata: { name: "db", annotations: { "service.kubernetes.io/topology-mode": "Auto" } } } as unknown as Service, [], []);
  expect(metrics.render()).toContain('services_count_by_traffic_distribution{traffic_distribution="PreferSameZone"} 1\n'); // the annotation goes first
  told.gone(web);
  expect([sample("endpoints_desired"), sample("num_endpoint_slices"), sample("desired_endpoint_slices")]).toEqual([0, 0, 1]);
});

test("a Service's ports and a pod's are looked up by name, not each for each of the others", () => {
  const found = groupsFor({ spec: { ports: [{ port: 1, targetPort: "a" }, { port: 2, protocol: "UDP", targetPort: "a" }, { port: 3, targetPort: "b" }, { port: 4, targetPort: "init" }, { port: 5 }, { port: 6, targetPort: "" }, { port: 7, targetPort: 70 }] } } as Service, [podWith([{ name: "a", containerPort: 10 }, { containerPort: 9 }, { name: "a", protocol: "UDP", containerPort: 20 }, { name: "a", containerPort: 11 }])], "IPv4", () => undefined);
  expect(found.groups[0]!.ports.map(({ port }) => port)).toEqual([10, 20, 40, 5, 6, 70]);
  expect(growth((n, reads) => {
    const ports = Array.from({ length: n }, (_, i) => ({ name: `p${i}`, port: i + 1, targetPort: `q${i}`, containerPort: i + 1 }));
    groupsFor({ spec: { ports } } as unknown as Service, [podWith(reads.of(ports.map(({ targetPort, containerPort }) => ({ name: targetPort, containerPort }))))], "IPv4", () => undefined);
  })).toBeLessThan(3);
});
