import { expect, test } from "vitest";
import type { Node, Pod, PodSpec } from "../api/gen/core.v1.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import { candidate, first, node, pod, schedulingCluster, stored } from "../../test/scheduling-cluster.ts";
import { place } from "./place.ts";
import { podRequests } from "./pod-requests.ts";
import { DEFAULT_PROFILE } from "./plugins.ts";

function placed(wanted: Pod, nodes: readonly Node[], running: readonly (readonly [Pod, string])[] = [], objects: readonly ApiObject[] = []) {
  const result = place(candidate(wanted), schedulingCluster({ nodes, placed: running, objects }), DEFAULT_PROFILE, { random: first, start: { next: 0 } });
  return result.type === "node" ? result.node : result.message;
}

test("the emptier node wins", () => {
  expect(placed(pod("p"), [node("a"), node("b")], [[pod("x"), "a"]])).toBe("b");
});

test("a node that was told to keep out is passed over, and each reason is counted", () => {
  const dedicated = [{ key: "dedicated", value: "db", effect: "NoSchedule" as const }];
  expect(placed(pod("p", { cpu: "3" }), [node("a"), node("b", { taints: dedicated }), node("c", { unschedulable: true })])).toBe(
    "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable.");
  expect(placed(pod("p", { tolerations: [{ key: "dedicated", operator: "Exists" }] }), [node("b", { taints: dedicated })])).toBe("b");
});

test.each([
  { nodeSelector: { disk: "ssd" } },
  { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [{ key: "disk", operator: "In" as const, values: ["ssd"] }] }] } } } },
  { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In" as const, values: ["b"] }] }] } } } },
])("labels and fields of nodes: %j", (spec) => {
  expect(placed(pod("p", spec), [node("a"), node("b", { labels: { disk: "ssd" } })])).toBe("b");
});

test("a pod that names its node is not looked at elsewhere", () => {
  const only = { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In" as const, values: ["b"] }] }] } } } };
  expect(placed(pod("p", { ...only, cpu: "9" }), [node("a"), node("b"), node("c")])).toBe("0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity].");
});

test("a pod whose nodes are all there but one, and none will do, waits for that one as well", () => {
  const two = { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In" as const, values: ["a", "b"] }] }] } } } };
  const result = place(candidate(pod("p", { ...two, cpu: "9" })), schedulingCluster({ nodes: [node("a")] }), DEFAULT_PROFILE, { random: first, start: { next: 0 } });
  expect(result.type === "none" && [...result.filters].sort()).toEqual(["NodeAffinity", "NodeResourcesFit"]);
});

test("two pods cannot have the same host port", () => {
  const web = { container: { ports: [{ containerPort: 80, hostPort: 80, protocol: "TCP" as const }] } };
  expect(placed(pod("p", web), [node("a")], [[pod("x", web), "a"]])).toBe("0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.");
  const other = { container: { ports: [{ containerPort: 80, hostPort: 80, hostIP: "127.0.0.1", protocol: "UDP" as const }] } };
  expect(placed(pod("p", other), [node("a")], [[pod("x", web), "a"]])).toBe("a");
  const at = (hostIP: string) => ({ container: { ports: [{ containerPort: 80, hostPort: 80, hostIP, protocol: "TCP" as const }] } });
  expect(placed(pod("p", at("::")), [node("a")], [[pod("x", at("10.0.0.1")), "a"]])).toBe("a"); // all of IPv6's
});

test("sidecars count with what runs after them, other init containers only while they run", () => {
  const init = (cpu: string, restartPolicy?: "Always") => ({ name: cpu, image: "i", resources: { requests: { cpu } }, ...(restartPolicy && { restartPolicy }) });
  expect(podRequests(pod("p", { initContainers: [init("1")] }))["cpu"]).toBe(1000);
  expect(podRequests(pod("p", { initContainers: [init("300m", "Always"), init("1")] }))["cpu"]).toBe(1300);
  expect(podRequests(pod("p", { initContainers: [init("300m", "Always")] }))["cpu"]).toBe(800);
});

test("what many sidecars ask for, each something else, is added up in time that grows with how many there are", { timeout: 5_000 }, () => {
  const initContainers = Array.from({ length: 15_000 }, (_, i) => ({ name: `c${i}`, image: "i", restartPolicy: "Always" as const, resources: { requests: { [`a.b/${i}`]: "2" } } }));
  const requests = podRequests(pod("p", { initContainers }));
  expect([requests["a.b/0"], requests["a.b/14999"]]).toEqual([2, 2]);
});

const deferred = { type: "PodResizePending", status: "True" as const, reason: "Deferred" }, infeasible = { ...deferred, reason: "Infeasible" };
const resized = (cpu: string, status: unknown, more: object = {}): number | undefined => podRequests(pod("p", { cpu, nodeName: "a", status: status as NonNullable<Pod["status"]>, ...more }))["cpu"];

test("while a container is resized the most of what it has and wants counts, unless it cannot be had", () => {
  const status = { containerStatuses: [{ name: "c", allocatedResources: { cpu: "200m" }, resources: { requests: { cpu: "200m" } } }] };
  expect(resized("500m", status)).toBe(500);
  expect(resized("100m", status)).toBe(200);
  expect(resized("500m", { ...status, conditions: [deferred] })).toBe(500);
  expect(resized("500m", { ...status, conditions: [infeasible] })).toBe(200);
});

test("what was promised counts beside what is had, not alone", () => {
  expect(resized("100m", { containerStatuses: [{ name: "c", allocatedResources: { cpu: "900m" } }] })).toBe(100);
  expect(resized("100m", { containerStatuses: [{ name: "c", allocatedResources: { cpu: "900m" }, resources: {} }] })).toBe(900);
});

test("sidecars are resized, init containers that end are not", () => {
  const init = (restartPolicy?: "Always"): object => ({ initContainers: [{ name: "i", image: "i", resources: { requests: { cpu: "200m" } }, ...(restartPolicy && { restartPolicy }) }] });
  const status = { initContainerStatuses: [{ name: "i", allocatedResources: { cpu: "900m" }, resources: { requests: { cpu: "900m" } } }] };
  expect(resized("100m", status, init("Always"))).toBe(1000);
  expect(resized("100m", status, init())).toBe(200);
});

test("a pod that has no node yet asks for what it wants, whatever its status says", () => {
  expect(resized("500m", { containerStatuses: [{ name: "c", allocatedResources: { cpu: "3" }, resources: { requests: { cpu: "3" } } }] }, { nodeName: undefined })).toBe(500);
});

test("so it does while the pod as a whole is", () => {
  const sized = (cpu: string, status: Pod["status"]): number | undefined => resized("10m", status, { resources: { requests: { cpu } } });
  const status: Pod["status"] = { resources: { requests: { cpu: "200m" } }, allocatedResources: { cpu: "300m" } };
  expect(sized("500m", status)).toBe(500);
  expect(sized("100m", status)).toBe(300);
  expect(sized("500m", { ...status, conditions: [infeasible] })).toBe(300);
  expect(resized("10m", status)).toBe(10);
});

test("no nodes at all", () => {
  expect(placed(pod("p"), [])).toBe("no nodes available to schedule pods");
});

// Inter-pod affinity

const zones = [node("a1", { labels: { zone: "a" } }), node("a2", { labels: { zone: "a" } }), node("b1", { labels: { zone: "b" } })];
const near = (app: string, topologyKey = "zone", more: object = {}): Partial<PodSpec> => ({ affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ labelSelector: { matchLabels: { app } }, topologyKey, ...more }] } } });
const apart = (app: string, topologyKey = "zone"): Partial<PodSpec> => ({ affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ labelSelector: { matchLabels: { app } }, topologyKey }] } } });
const AFFINITY = "node(s) didn't match pod affinity rules";

test.each<[what: string, wanted: Pod, running: [Pod, string][], result: string]>([
  ["next to another", pod("p", near("db")), [[pod("x", { labels: { app: "db" } }), "b1"]], "b1"],
  ["nobody to be next to", pod("p", near("db")), [], `0/3 nodes are available: 3 ${AFFINITY}.`],
  ["the first of a series", pod("p", { ...near("web"), labels: { app: "web" } }), [], "a1"],
  ["the first of a series needs the label as well", pod("p", { ...near("web", "rack"), labels: { app: "web" } }), [], `0/3 nodes are available: 3 ${AFFINITY}.`],
  ["whatever the label is called", pod("p", { ...near("web", "constructor"), labels: { app: "web" } }), [], `0/3 nodes are available: 3 ${AFFINITY}.`],
  ["spread over what no node has", pod("p", { topologySpreadConstraints: [{ maxSkew: 1, topologyKey: "constructor", whenUnsatisfiable: "DoNotSchedule", labelSelector: {} }] }), [], "0/3 nodes are available: 3 node(s) didn't match pod topology spread constraints (missing required label)."],
  ["another namespace does not count", pod("p", near("db")), [[pod("x", { labels: { app: "db" }, namespace: "other" }), "b1"]], `0/3 nodes are available: 3 ${AFFINITY}.`],
  ["unless it is named", pod("p", near("db", "zone", { namespaces: ["other"] })), [[pod("x", { labels: { app: "db" }, namespace: "other" }), "b1"]], "b1"],
  ["or selected", pod("p", near("db", "zone", { namespaceSelector: { matchLabels: { team: "x" } } })), [[pod("x", { labels: { app: "db" }, namespace: "other" }), "b1"]], "b1"],
  ["all namespaces", pod("p", near("db", "zone", { namespaceSelector: {} })), [[pod("x", { labels: { app: "db" }, namespace: "third" }), "b1"]], "b1"],
  ["apart from another", pod("p", apart("db")), [[pod("x", { labels: { app: "db" } }), "a1"]], "b1"],
  ["apart from all", pod("p", apart("db")), [[pod("x", { labels: { app: "db" } }), "a1"], [pod("y", { labels: { app: "db" } }), "b1"]], "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules."],
  ["another wants to be apart", pod("p", { labels: { app: "web" } }), [[pod("x", apart("web", "kubernetes.io/hostname")), "a1"], [pod("y", apart("web")), "b1"]], "a2"],
  ["all others want to be apart", pod("p", { labels: { app: "web" } }), [[pod("x", apart("web")), "a1"], [pod("y", apart("web")), "b1"]], "0/3 nodes are available: 3 node(s) didn't satisfy existing pods anti-affinity rules."],
])("affinity: %s", (_what, wanted, running, result) => {
  expect(placed(wanted, zones, running, [stored("v1", "Namespace", "other", { metadata: { labels: { team: "x" } } })])).toBe(result);
});

test("preferred affinity of the pod, and of those that are there, weighs", () => {
  const term = (app: string, weight: number) => [{ weight, podAffinityTerm: { labelSelector: { matchLabels: { app } }, topologyKey: "zone" } }];
  const db = [pod("x", { labels: { app: "db" }, cpu: "1" }), "b1"] as const;
  expect(placed(pod("p", { affinity: { podAffinity: { preferredDuringSchedulingIgnoredDuringExecution: term("db", 100) } } }), zones, [db])).toBe("b1");
  expect(placed(pod("p", { affinity: { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: term("db", 100) } } }), zones, [db])).toBe("a1");
  const fond = [pod("x", { affinity: { podAffinity: { preferredDuringSchedulingIgnoredDuringExecution: term("web", 100) } }, cpu: "1" }), "b1"] as const;
  expect(placed(pod("p", { labels: { app: "web" } }), zones, [fond])).toBe("b1");
});

// Topology spread

const spread = (more: object = {}): Partial<PodSpec> => ({ topologySpreadConstraints: [{ maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule", labelSelector: { matchLabels: { app: "web" } }, ...more }] });
const web = (name: string): Pod => pod(name, { labels: { app: "web" }, cpu: "10m" });
const SKEW = "node(s) didn't match pod topology spread constraints";

test.each<[what: string, constraint: object, running: [Pod, string][], result: string]>([
  ["to the emptier zone", {}, [[web("1"), "a1"], [web("2"), "a2"]], "b1"],
  ["leaving pods do not count", {}, [[pod("1", { labels: { app: "web" }, metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } }), "b1"], [web("2"), "a2"]], "b1"],
  ["a larger skew is allowed", { maxSkew: 3, topologyKey: "kubernetes.io/hostname" }, [[web("1"), "a1"], [web("2"), "a2"]], "b1"],
  ["fewer domains than wanted", { minDomains: 3 }, [[web("1"), "a1"], [web("2"), "b1"]], `0/3 nodes are available: 3 ${SKEW}.`],
  ["nodes without the label", { topologyKey: "rack" }, [], `0/3 nodes are available: 3 ${SKEW} (missing required label).`],
  ["another namespace does not count", {}, [[pod("1", { labels: { app: "web" }, namespace: "other", cpu: "1" }), "b1"], [web("2"), "a1"]], "b1"],
])("spread: %s", (_what, constraint, running, result) => {
  expect(placed(pod("p", { ...spread(constraint), labels: { app: "web" } }), zones, running)).toBe(result);
});

test("nodes that the pod cannot use do not count, unless it says so", () => {
  const running: [Pod, string][] = [[web("1"), "a1"]];
  const inZoneA = { nodeSelector: { zone: "a" }, labels: { app: "web" } };
  expect(placed(pod("p", { ...spread(), ...inZoneA }), zones, running)).toBe("a2");
  expect(placed(pod("p", { ...spread({ nodeAffinityPolicy: "Ignore" }), ...inZoneA }), zones, running)).toBe(`0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 2 ${SKEW}.`);
});

test("pods of a service are spread over nodes though they do not ask for it", () => {
  const service = stored("v1", "Service", "default/web", { spec: { selector: { app: "web" } } });
  const nodes = [node("a", { cpu: "8" }), node("b")];
  const running: [Pod, string][] = [[web("1"), "a"], [web("2"), "a"], [pod("x", { cpu: "1500m" }), "b"]];
  expect(placed(web("p"), nodes, running)).toBe("a");
  expect(placed(web("p"), nodes, running, [service])).toBe("b");
});

test("a large cluster is searched in part, in turn", () => {
  const nodes = Array.from({ length: 300 }, (_, i) => node(`n${i}`));
  const cluster = schedulingCluster({ nodes });
  const start = { next: 0 };
  const result = place(candidate(pod("p")), cluster, DEFAULT_PROFILE, { random: first, start });
  expect([result.type === "node" && result.evaluated, start.next]).toEqual([144, 144]); // 50 - 300/125 = 48 %
  expect(place(candidate(pod("p")), cluster, DEFAULT_PROFILE, { random: first, start })).toMatchObject({ node: "n144" });
});

test("a pod that names its node moves the turn on, too", () => {
  const cluster = schedulingCluster({ nodes: Array.from({ length: 300 }, (_, i) => node(`n${i}`)) });
  const start = { next: 0 };
  const only = { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In" as const, values: ["n7"] }] }] } } } };
  expect(place(candidate(pod("p", only)), cluster, DEFAULT_PROFILE, { random: first, start })).toMatchObject({ node: "n7" });
  expect(start.next).toBe(1);
});

test("where nothing tells nodes apart the first that will do is taken, in turn", () => {
  const cluster = schedulingCluster({ nodes: [node("a"), node("b", { unschedulable: true }), node("c"), node("d")] });
  const start = { next: 0 };
  const next = (): unknown => place(candidate(pod("p")), cluster, { ...DEFAULT_PROFILE, scores: [] }, { random: { ...first, next: () => 0.99 }, start });
  expect([next(), next(), next(), next()]).toMatchObject([{ node: "a", feasible: 1, evaluated: 2 }, { node: "c", evaluated: 1 }, { node: "d", evaluated: 1 }, { node: "a", evaluated: 2 }]);
  expect(start.next).toBe(2); // the first that would have done and was not needed
});

test("a nominated pod keeps its place from others of its priority or lower", () => {
  const nominated = [[pod("first", { cpu: "2", priority: 5 }), "a"]] as const;
  const at = (priority: number) => {
    const result = place(candidate(pod("p", { priority })), schedulingCluster({ nodes: [node("a")], nominated }), DEFAULT_PROFILE, { random: first, start: { next: 0 } });
    return result.type === "node" ? result.node : result.message;
  };
  expect([at(0), at(6)]).toEqual(["0/1 nodes are available: 1 Insufficient cpu.", "a"]);
});
