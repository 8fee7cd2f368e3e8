import { expect, test } from "vitest";
import type { Pod } from "../api/gen/core.v1.ts";
import { parseLabelSelector } from "../api/meta/label-selector.ts";
import { node, pod } from "../../test/scheduling-cluster.ts";
import type { Kind } from "./kinds.ts";
import type { PodQuery } from "./pod-index.ts";
import { podRequests } from "./pod-requests.ts";
import { countsTheSame, Snapshot } from "./snapshot.ts";

/** Numbers that are the same in every run. */
function dice(seed: number): (sides: number) => number {
  let state = seed;
  return (sides) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * sides);
  };
}

const web: PodQuery = { key: "web", namespaces: ["default"], matches: ({ metadata }) => parseLabelSelector("app=web").matches(metadata.labels) && metadata.deletionTimestamp === undefined };

function view(snapshot: Snapshot): unknown {
  return {
    web: Object.fromEntries([...snapshot.pods.where(web).perNode].sort()),
    zones: Object.fromEntries([...snapshot.pods.where(web).by("zone")].sort()),
    racksInZones: Object.fromEntries([...snapshot.pods.where(web).by("rack", ["rack", "zone"])].sort()),
    domains: [snapshot.pods.domains.by("zone"), snapshot.pods.domains.by("rack", ["rack", "zone"])].map((found) => [...found].sort()),
    holders: (["affinity", "antiAffinity"] as const).map((kind) => [...snapshot.pods.holders(kind)].map(({ term, where }) => [term.key, [...where.perNode].sort(), [...where.by("zone")].sort()]).sort()),
    nodes: snapshot.nodes().map(({ name, requested, assumed, pods, hostPorts }) => ({ name, cpu: requested["cpu"] ?? 0, assumed: { ...assumed }, pods: [...pods.keys()].sort(), hostPorts: [...hostPorts].sort() })).sort((a, b) => (a.name < b.name ? -1 : 1)),
  };
}

test.each([1, 2, 3, 4, 5])("whatever comes and goes, it is as if read anew (seed %d)", (seed) => {
  const roll = dice(seed);
  const kept = new Snapshot();
  const labelled = (name: string) => node(name, { labels: { ...(roll(4) > 0 && { zone: `z${roll(2)}` }), ...(roll(4) > 0 && { rack: `r${roll(2)}` }) } });
  const nodes = ["a", "b", "c"].map(labelled);
  for (const one of nodes) kept.setNode(one);
  const now = new Map<string, Pod>();
  for (let step = 0; step < 300; step++) {
    const name = `p${roll(12)}`;
    const old = now.get(name);
    if (roll(8) === 0) { // a node has other labels, or goes and comes again
      const which = roll(3);
      nodes[which] = labelled(nodes[which]!.metadata.name);
      if (roll(3) === 0) kept.removeNode(nodes[which].metadata.name);
      kept.setNode(nodes[which]);
    }
    if (old && roll(3) === 0) {
      kept.removePod(old);
      now.delete(name);
      continue;
    }
    const term = { labelSelector: { matchLabels: { app: ["web", "db"][roll(2)]! } }, topologyKey: "zone" };
    const apart = roll(2) === 0 ? { affinity: { [roll(2) === 0 ? "podAntiAffinity" : "podAffinity"]: { requiredDuringSchedulingIgnoredDuringExecution: [term] } } } : {};
    const made = pod(name, {
      cpu: `${roll(9) + 1}00m`, labels: { app: ["web", "db"][roll(2)]! }, container: { ports: roll(3) === 0 ? [{ containerPort: 1, hostPort: 80 + roll(2) }] : [] },
      metadata: { generation: step, ...(roll(4) === 0 ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}) }, ...apart,
      ...(roll(6) === 0 ? { status: { phase: "Succeeded" as const } } : {}),
    });
    const placed = { ...made, spec: { ...made.spec, nodeName: nodes[roll(3)]!.metadata.name } };
    if (roll(4) === 0 && !old) { // assumed, and then the binding fails
      kept.assume({ pod: made, requests: { cpu: 100 }, terms: { affinity: [], antiAffinity: [], preferred: [], preferredAnti: [] } }, "a");
      kept.forget(made);
    }
    kept.setPod(placed);
    now.set(name, placed);
    view(kept);
    for (const text of ["app=web", "app in (web,db,web)", "app in (web,none),app!=db", "app=none", "app"]) { // found by label, as if all were looked at
      const selector = parseLabelSelector(text), query: PodQuery = { key: "", namespaces: ["default"], matches: ({ metadata }) => selector.matches(metadata.labels) };
      const found = [{ ...query, key: `${step} ${text}`, selectors: [selector, parseLabelSelector("app")] }, { ...query, key: `all ${step} ${text}` }].map((one) => [...kept.pods.where(one).perNode].sort());
      expect(found[0]).toEqual(found[1]);
    }
  }
  const anew = new Snapshot();
  for (const one of nodes) anew.setNode(one);
  for (const one of now.values()) anew.setPod(one);
  expect(view(kept)).toEqual(view(anew));
});

test("nodes of all zones in turn", () => {
  const snapshot = new Snapshot();
  for (const [name, zone] of [["a", "1"], ["b", "1"], ["c", "1"], ["d", "2"]] as const) snapshot.setNode(node(name, { labels: { "topology.kubernetes.io/zone": zone } }));
  expect(snapshot.nodes().map(({ name }) => name)).toEqual(["a", "d", "b", "c"]);
  snapshot.removeNode("a");
  expect(snapshot.nodes().map(({ name }) => name)).toEqual(["b", "d", "c"]);
});

test("nodes are counted by the images they have", () => {
  const snapshot = new Snapshot(), counts = () => ["i", "j"].map((name) => snapshot.image(name)?.nodes ?? 0);
  const having = (name: string, ...images: string[]) => node(name, { images: images.map((image) => ({ names: [image], sizeBytes: 1 })) });
  snapshot.setNode(having("a", "i"));
  snapshot.setNode(having("b", "i", "j"));
  expect(counts()).toEqual([2, 1]);
  snapshot.setNode(having("a", "j"));
  snapshot.setNode(having("a", "j"));
  expect(counts()).toEqual([1, 2]);
  snapshot.removeNode("b");
  expect(counts()).toEqual([0, 1]);
  snapshot.setNode(having("b", "i"));
  expect(counts()).toEqual([1, 1]);
});

test("what a pod asks for in vain is free again once it is said to be infeasible", () => {
  const snapshot = new Snapshot();
  snapshot.setNode(node("n"));
  const made = pod("p", { cpu: "1900m", metadata: { generation: 2 } });
  const of = (reason: string) => ({
    ...made, spec: { ...made.spec, nodeName: "n" },
    status: { conditions: [{ type: "PodResizePending", status: "True", reason }], containerStatuses: [{ name: "c", allocatedResources: { cpu: "500m" }, resources: { requests: { cpu: "500m" } } }] },
  }) as unknown as Pod;
  const requested = (reason: string): unknown => {
    snapshot.setPod(of(reason));
    return snapshot.node("n")?.requested["cpu"];
  };
  expect([requested("Deferred"), requested("Infeasible"), requested("Deferred")]).toEqual([1900, 500, 1900]);
});

test("a pod's first statuses change nothing of its node: what that was found to say of others holds", () => {
  const snapshot = new Snapshot();
  snapshot.setNode(node("n"));
  const bound = pod("p", { cpu: "100m", nodeName: "n", metadata: { generation: 1 } });
  const having = (status: object): Pod => ({ ...bound, status: { containerStatuses: [{ name: "c", ...status }] } }) as unknown as Pod;
  snapshot.setPod(bound);
  const kind = {} as Kind;
  const said = snapshot.node("n")!.saying(kind);
  snapshot.setPod(having({ ready: false }));
  snapshot.setPod(having({ ready: true }));
  expect(snapshot.node("n")!.saying(kind)).toBe(said);
  snapshot.setPod(having({ ready: true, resources: { requests: { cpu: "200m" } } }));
  expect(snapshot.node("n")!.saying(kind)).not.toBe(said);
  expect(snapshot.node("n")!.requested["cpu"]).toBe(200);
});

test.each([1, 2, 3])("pods that count the same ask for the same, whatever their statuses tell (seed %d)", (seed) => {
  const roll = dice(seed);
  const amount = (): object => (roll(2) === 0 ? {} : { requests: { cpu: `${roll(3)}00m` } });
  const statuses = (names: readonly string[]): readonly object[] => names.flatMap((name) => (roll(3) === 0 ? [] : [{ name, ...(roll(3) === 0 && { allocatedResources: { cpu: `${roll(3)}00m` } }), ...(roll(2) === 0 && { resources: amount() }) }]));
  const made = pod("p", { nodeName: "n", metadata: { generation: 1 } });
  const whole = roll(2) === 0 ? { resources: { requests: { cpu: "100m" } } } : {};
  const spec = { ...made.spec, containers: ["a", "b"].map((name) => ({ ...made.spec.containers[0], name, resources: { requests: { cpu: "100m" } } })), initContainers: [{ name: "s", image: "i", restartPolicy: "Always", resources: { requests: { cpu: "100m" } } }], ...whole };
  const any = (): Pod => ({
    ...made, spec,
    status: { conditions: roll(2) === 0 ? [] : [{ type: "PodResizePending", status: "True", reason: "Infeasible" }], containerStatuses: statuses(roll(2) === 0 ? ["a", "b"] : ["b", "a"]), initContainerStatuses: statuses(["s"]), ...(roll(3) === 0 && { resources: amount() }) },
  }) as unknown as Pod;
  let alike = 0;
  for (let i = 0; i < 2_000; i++) {
    const [before, after] = [any(), any()];
    if (!countsTheSame(before, after)) continue;
    alike++;
    expect(podRequests(after)).toEqual(podRequests(before));
  }
  expect(alike).toBeGreaterThan(5);
});

test("zones take turns, and zones of one name in two regions are two", () => {
  const snapshot = new Snapshot();
  const at = (name: string, region: string, zone: string): void => snapshot.setNode(node(name, { labels: { "topology.kubernetes.io/region": region, "topology.kubernetes.io/zone": zone } }));
  at("a1", "eu", "1");
  at("a2", "eu", "1");
  at("b1", "us", "1");
  snapshot.setNode(node("c1", { labels: { "failure-domain.beta.kubernetes.io/region": "eu", "failure-domain.beta.kubernetes.io/zone": "1", "topology.kubernetes.io/zone": "other" } }));
  const order = (): string[] => snapshot.nodes().map(({ name }) => name);
  expect(order()).toEqual(["a1", "b1", "a2", "c1"]);
  at("a2", "us", "1");
  expect(order()).toEqual(["a1", "a2", "c1", "b1"]);
});

test("a nomination that the API has not heard of yet survives what else happens to the pod, and ends when the API says so", () => {
  const snapshot = new Snapshot();
  const nominated = (nominatedNodeName?: string, labels: Record<string, string> = {}): Pod => pod("p", { labels, metadata: { generation: 1 }, ...(nominatedNodeName && { status: { nominatedNodeName } }) });
  const plain = nominated();
  snapshot.setPod(plain);
  snapshot.nominate(plain, "n");
  const changed = nominated(undefined, { app: "web" });
  snapshot.setPod(changed, plain);
  expect(snapshot.nominatedTo("n").map((one) => one.pod.metadata.labels)).toEqual([{ app: "web" }]);
  const told = nominated("n", { app: "web" });
  snapshot.setPod(told, changed);
  expect(snapshot.nominatedNodeOf(plain)).toBe("n");
  snapshot.setPod(nominated(), told);
  expect(snapshot.nominatedNodeOf(plain)).toBeUndefined();
});

test("a pod that is thought away counts nowhere but among those that have a node, and is put back as it has become, unless it has gone", () => {
  const snapshot = new Snapshot();
  snapshot.setNode(node("a"));
  const placed = (name: string, cpu: string) => ({ ...pod(name, { cpu }), spec: { ...pod(name, { cpu }).spec, nodeName: "a" } });
  const [stays, goes] = [placed("stays", "1"), placed("goes", "1")];
  for (const one of [stays, goes]) snapshot.setPod(one);
  for (const { metadata } of [stays, goes]) snapshot.setAside(metadata.uid);
  expect([snapshot.node("a")!.requested["cpu"], snapshot.node("a")!.pods.size, snapshot.nodeOf(stays), snapshot.copy("").node("a")!.pods.size]).toEqual([0, 0, "a", 2]);
  snapshot.setPod(placed("stays", "1500m"), stays);
  snapshot.removePod(goes);
  expect(snapshot.node("a")!.pods.size).toBe(0);
  for (const { metadata } of [stays, goes]) snapshot.putBack(metadata.uid);
  expect([snapshot.node("a")!.requested["cpu"], [...snapshot.node("a")!.pods.values()].map((one) => one.pod.metadata.name), snapshot.nodeOf(goes)]).toEqual([1500, ["stays"], undefined]);
});
