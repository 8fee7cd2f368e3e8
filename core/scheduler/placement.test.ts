/** Where pods go, as users are told they will: labels and affinity of nodes, other pods, spreading, taints. Each is a worked example. */
import { expect, test } from "vitest";
import type { Node, Pod, PodSpec, Taint, Toleration, TopologySpreadConstraint } from "../api/gen/core.v1.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import { tolerates } from "../api/meta/tolerations.ts";
import { candidate, first, node, pod, schedulingCluster, stored } from "../../test/scheduling-cluster.ts";
import type { Score } from "./plugin.ts";
import { place } from "./place.ts";
import { DEFAULT_PROFILE } from "./plugins.ts";
import { imageLocality } from "./scores/node.ts";
import { interPodAffinityScore } from "./scores/pods.ts";
import { balancedAllocation, type FitStrategy, nodeResourcesFitScore } from "./scores/resources.ts";

type Running = readonly (readonly [Pod, string])[];

function placed(wanted: Pod, nodes: readonly Node[], running: Running = [], objects: readonly ApiObject[] = [], random = first) {
  const result = place(candidate(wanted), schedulingCluster({ nodes, placed: running, objects }), DEFAULT_PROFILE, { random, start: { next: 0 } });
  return result.type === "node" ? result.node : result.message;
}

/** Puts one after the other, each where it goes; how many there are on each node. */
function filled(pods: readonly Pod[], nodes: readonly Node[], running: Running = []): string {
  const all = [...running];
  for (const one of pods) all.push([one, placed(one, nodes, all)]);
  return nodes.map(({ metadata: { name } }) => all.filter(([, on]) => on === name).length).join(" ");
}

const NO_MATCH = "node(s) didn't match Pod's node affinity/selector";
const required = (...nodeSelectorTerms: object[]): Partial<PodSpec> => ({ affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } } }) as Partial<PodSpec>;
const where = (key: string, operator: string, ...values: string[]) => ({ key, operator, values });

const labelled = [node("a", { labels: { disk: "hdd", cores: "4" } }), node("b", { labels: { disk: "ssd", cores: "16", gpu: "yes", bytes: "9007199254740993" } }), node("c")];

test.each<[what: string, spec: Partial<PodSpec>, result: string]>([
  ["every label of the selector", { nodeSelector: { disk: "ssd", gpu: "yes" } }, "b"],
  ["one of them is missing", { nodeSelector: { disk: "hdd", gpu: "yes" } }, `0/3 nodes are available: 3 ${NO_MATCH}.`],
  ["selector and affinity must both hold", { nodeSelector: { disk: "ssd" }, ...required({ matchExpressions: [where("cores", "In", "4")] }) }, `0/3 nodes are available: 3 ${NO_MATCH}.`],
  ["any term is enough", required({ matchExpressions: [where("disk", "In", "nvme")] }, { matchExpressions: [where("gpu", "Exists")] }), "b"],
  ["all expressions of a term", required({ matchExpressions: [where("disk", "Exists"), where("gpu", "Exists")] }), "b"],
  ["In", required({ matchExpressions: [where("disk", "In", "ssd", "nvme")] }), "b"],
  ["NotIn holds for nodes without the label", required({ matchExpressions: [where("disk", "NotIn", "hdd", "ssd")] }), "c"],
  ["DoesNotExist", required({ matchExpressions: [where("cores", "DoesNotExist")] }), "c"],
  ["Gt", required({ matchExpressions: [where("cores", "Gt", "8")] }), "b"],
  ["Lt", required({ matchExpressions: [where("cores", "Lt", "8")] }), "a"],
  ["numbers to their last digit", required({ matchExpressions: [where("bytes", "Gt", "9007199254740992")] }), "b"],
  ["a number that is too large is none", required({ matchExpressions: [where("cores", "Lt", "9223372036854775808")] }), `0/3 nodes are available: 3 ${NO_MATCH}.`],
  ["no number, no match", required({ matchExpressions: [where("disk", "Gt", "1")] }), `0/3 nodes are available: 3 ${NO_MATCH}.`],
  ["an empty term matches nothing", required({}), `0/3 nodes are available: 3 ${NO_MATCH}.`],
  ["a preference that no node meets does not keep the pod away", { affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, preference: { matchExpressions: [where("x", "Exists") as never] } }] } } }, "a"],
])("node labels: %s", (_, spec, result) => expect(placed(pod("p", spec), labelled)).toBe(result));

test("weights of the preferences that hold are summed: the heavier node wins over the lighter", () => {
  const prefer = (weight: number, key: string) => ({ weight, preference: { matchExpressions: [where(key, "Exists") as never] } });
  const wish = (...preferred: ReturnType<typeof prefer>[]): Partial<PodSpec> => ({ affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferred } } });
  const nodes = [node("a", { labels: { light: "" } }), node("b", { labels: { heavy: "" } }), node("c", { labels: { light: "", middling: "" } })];
  expect(placed(pod("p", wish(prefer(1, "light"), prefer(50, "heavy"))), nodes)).toBe("b");
  expect(placed(pod("p", wish(prefer(30, "light"), prefer(50, "heavy"), prefer(30, "middling"))), nodes)).toBe("c");
});

test("images that are there count by their size, those of volumes too, as a share of what containers may have", () => {
  const nodes = [node("a", { images: [{ names: ["docker.io/data:1"], sizeBytes: 900 * 1024 ** 2 }] })];
  const worth = (spec: Partial<PodSpec>): number => imageLocality.prepare(candidate(pod("p", spec)), schedulingCluster({ nodes }), schedulingCluster({ nodes }).nodes())!.score(schedulingCluster({ nodes }).node("a")!);
  const volumes = [{ name: "data", image: { reference: "docker.io/data:1" } }];
  expect(worth({ volumes })).toBe(89); // (900 - 23) / (1000 - 23)
  expect(worth({ volumes, initContainers: [{ name: "i", image: "other" }] })).toBe(44);
});

test("an image is as large everywhere as on the node that told of it first", () => {
  const cluster = schedulingCluster({ nodes: [node("a", { images: [{ names: ["i:latest"], sizeBytes: 900 * 1024 ** 2 }] }), node("b", { images: [{ names: ["i:latest"], sizeBytes: 1024 }] })] });
  const score = imageLocality.prepare(candidate(pod("p")), cluster, cluster.nodes())!;
  expect(cluster.nodes().map((one) => score.score(one))).toEqual([89, 89]);
});

test("an image that is larger than a double tells keeps no pod from a node", () => {
  const cluster = schedulingCluster({ nodes: [node("a", { images: [{ names: ["i:latest"], sizeBytes: (2n ** 63n - 1n) as unknown as number }] })] });
  expect(imageLocality.prepare(candidate(pod("p")), cluster, cluster.nodes())!.score(cluster.node("a")!)).toBe(100);
});

test("of nodes that are equally good one is taken at random", () => {
  const taken = new Set([0, 0.4, 0.8].map((next) => placed(pod("p"), [node("a"), node("b"), node("c")], [], [], { ...first, next: () => next })));
  expect(taken.size).toBeGreaterThan(1);
});

// How full nodes are

const DEVICES = { foo: 5, memory: 1, cpu: 3 };
const binPacking: FitStrategy = { type: "RequestedToCapacityRatio", resources: DEVICES, shape: [{ utilization: 0, score: 0 }, { utilization: 100, score: 10 }] };
const spreading: FitStrategy = { ...binPacking, shape: [{ utilization: 0, score: 10 }, { utilization: 100, score: 0 }] };

/** What a node of so much is worth, with so much of it in use, to a pod that asks for so much. */
function worth(score: Score, wanted: Record<string, string>, has: Record<string, string>, used: Record<string, string>): number {
  const asking = (name: string, requests: Record<string, string>): Pod => pod(name, { container: { resources: { requests } } });
  const cluster = schedulingCluster({ nodes: [node("n", { allocatable: has })], placed: [[asking("used", used), "n"]] });
  const nodes = cluster.nodes();
  return score.prepare(candidate(asking("p", wanted)), cluster, nodes)?.score(nodes[0]!) ?? Number.NaN;
}

test.each<[what: string, strategy: FitStrategy, wanted: Record<string, string>, has: Record<string, string>, used: Record<string, string>, score: number]>([
  ["the documentation's first node: 5 of 10", binPacking, { foo: "2", memory: "256Mi", cpu: "2" }, { foo: "4", memory: "1Gi", cpu: "8" }, { foo: "1", memory: "256Mi", cpu: "1" }, 60],
  ["the documentation's second node: 7 of 10", binPacking, { foo: "2", memory: "256Mi", cpu: "2" }, { foo: "8", memory: "1Gi", cpu: "8" }, { foo: "2", memory: "512Mi", cpu: "6" }, 69],
  ["a device that the node lacks has no weight", binPacking, { foo: "2", memory: "512Mi", cpu: "4" }, { memory: "1Gi", cpu: "8" }, { memory: "0", cpu: "0" }, 50],
  ["nor has one that the pod does not ask for", binPacking, { memory: "512Mi", cpu: "4" }, { foo: "4", memory: "1Gi", cpu: "8" }, { foo: "4", memory: "0", cpu: "0" }, 50],
  ["nor what is worth nothing", spreading, { foo: "4", memory: "512Mi", cpu: "4" }, { foo: "4", memory: "1Gi", cpu: "8" }, { memory: "0", cpu: "0" }, 50],
  ["on a line that falls, what is taken off is whole", { type: "RequestedToCapacityRatio", resources: { cpu: 1 }, shape: [{ utilization: 30, score: 8 }, { utilization: 70, score: 3 }] }, { cpu: "1", memory: "0" }, { cpu: "2" }, { memory: "0" }, 49],
  ["and as much where it is not whole by itself", { type: "RequestedToCapacityRatio", resources: { cpu: 1 }, shape: [{ utilization: 30, score: 8 }, { utilization: 70, score: 3 }] }, { cpu: "330m", memory: "0" }, { cpu: "1" }, { memory: "0" }, 64],
  ["the emptier the better", { type: "LeastAllocated", resources: { cpu: 1, memory: 3 } }, { cpu: "2", memory: "512Mi" }, { cpu: "4", memory: "1Gi" }, { cpu: "1", memory: "256Mi" }, 25],
  ["the fuller the better", { type: "MostAllocated", resources: { cpu: 1, memory: 3 } }, { cpu: "2", memory: "512Mi" }, { cpu: "4", memory: "2Gi" }, { cpu: "1", memory: "512Mi" }, 56],
  ["more than there is counts as all there is", { type: "MostAllocated", resources: { cpu: 1 } }, { cpu: "3", memory: "0" }, { cpu: "4" }, { cpu: "2", memory: "0" }, 100],
  ["a container that asks for nothing counts as a tenth of a processor", { type: "MostAllocated", resources: { cpu: 1 } }, { memory: "1Mi" }, { cpu: "1" }, { memory: "1Mi" }, 20],
])("how full a node would be: %s", (_, strategy, wanted, has, used, score) => expect(worth(nodeResourcesFitScore(strategy), wanted, has, used)).toBe(score));

test("a container that asks for nothing counts for a little beside one that asks for much", () => {
  const two = stored<Pod>("v1", "Pod", "default/two", { metadata: {}, spec: { containers: [{ name: "a", resources: { requests: { cpu: "500m" } } }, { name: "b", resources: { requests: { memory: "1Mi" } } }] } } as never);
  const cluster = schedulingCluster({ nodes: [node("n")], placed: [[two, "n"]] });
  expect(cluster.nodes()[0]!.assumed).toEqual({ cpu: 600, memory: 201 * 1024 ** 2 });
});

test("a container that will not get where it is what it wants counts as one that asks for nothing", () => {
  const containerStatuses = [{ name: "a", resources: { requests: {} } }], conditions = [{ type: "PodResizePending", status: "True", reason: "Infeasible" }];
  const growing = stored<Pod>("v1", "Pod", "default/growing", { metadata: {}, spec: { containers: [{ name: "a", resources: { requests: { cpu: "2", memory: "1Gi" } } }] }, status: { containerStatuses, conditions } } as never);
  const cluster = schedulingCluster({ nodes: [node("n")], placed: [[growing, "n"]] });
  expect(cluster.nodes()[0]!.assumed).toEqual({ cpu: 100, memory: 200 * 1024 ** 2 });
});

test("a container that asks for nothing does not count in a pod that asks for something as a whole, where another container asks", () => {
  const spec = { resources: { requests: { cpu: "2" } }, containers: [{ name: "a" }, { name: "b", resources: { requests: { memory: "1Mi" } } }] };
  const cluster = schedulingCluster({ nodes: [node("n")], placed: [[stored<Pod>("v1", "Pod", "default/two", { metadata: {}, spec } as never), "n"]] });
  expect(cluster.nodes()[0]!.assumed).toEqual({ cpu: 2000, memory: 1024 ** 2 });
});

test("what a pod asks for as a whole counts on the node it has, and not for the node it is to have: there its containers do", () => {
  const whole = pod("p", { container: { resources: {} }, resources: { requests: { cpu: "2", memory: "2Gi" } } });
  const cluster = schedulingCluster({ nodes: [node("a", { cpu: "4" }), node("b", { cpu: "4" })], placed: [[pod("x", { container: { resources: {} }, resources: { requests: { cpu: "2", memory: "2Gi" } } }), "b"]] });
  const score = nodeResourcesFitScore().prepare(candidate(whole), cluster, cluster.nodes())!;
  expect(cluster.nodes().map((one) => score.score(one))).toEqual([96, 46]); // (97.5 + 95.1) / 2, and less by half a node
});

test("use that becomes more even is better; devices count only for pods that ask for them", () => {
  const balanced = (...names: string[]) => balancedAllocation(names);
  expect(worth(balanced("cpu", "memory"), { cpu: "2", memory: "0" }, { cpu: "4", memory: "1Gi" }, { cpu: "0", memory: "512Mi" })).toBe(87);
  expect(worth(balanced("cpu", "memory"), { cpu: "2", memory: "0" }, { cpu: "4", memory: "1Gi" }, { cpu: "2", memory: "512Mi" })).toBe(62);
  expect(worth(balanced("cpu", "memory", "foo"), { cpu: "1", memory: "256Mi" }, { cpu: "4", memory: "1Gi", foo: "4" }, { cpu: "0", memory: "0", foo: "4" })).toBe(75);
  expect(worth(balanced("cpu", "memory"), { cpu: "200m", memory: "320" }, { cpu: "1", memory: "2000" }, { cpu: "0", memory: "0" })).toBe(74); // 20 and 16 percent are 2 from their mean, to the last digit
  expect(worth(balanced("cpu", "memory", "foo"), { cpu: "2", memory: "256Mi", foo: "4" }, { cpu: "4", memory: "1Gi", foo: "4" }, { cpu: "0", memory: "0" })).toBe(59);
});

test("of a resource that devices stand behind, the devices that a node can reach count, where it offers none itself", () => {
  const RESOURCE = "example.com/gpu";
  const slice = (name: string, on: object, ...devices: object[]) => stored("resource.k8s.io/v1", "ResourceSlice", name, { spec: { driver: "d", pool: { name, generation: 1, resourceSliceCount: 1 }, ...on, devices } });
  const big = (name: string, more: object = {}) => ({ name, attributes: { big: { bool: true } }, ...more }), small = (name: string) => ({ name, attributes: { big: { bool: false } } });
  const objects = [
    stored("resource.k8s.io/v1", "DeviceClass", "gpu", { spec: { extendedResourceName: RESOURCE, selectors: [{ cel: { expression: "device.attributes['d'].big" } }] } }),
    slice("a", { nodeName: "a" }, big("1"), big("2"), small("3")),
    slice("b", { nodeName: "b" }, big("1"), big("2"), big("3"), big("4")),
    slice("c", { perDeviceNodeSelection: true }, big("1", { nodeName: "c" }), big("2", { allNodes: true })),
    stored("resource.k8s.io/v1", "ResourceClaim", "default/taken", { spec: {}, status: { allocation: { devices: { results: [{ request: "r", driver: "d", pool: "b", device: "1" }] } } } }),
  ];
  const cluster = schedulingCluster({ nodes: [node("a"), node("b"), node("c"), node("d", { allocatable: { [RESOURCE]: "8" } })], objects });
  const wanted = candidate(pod("p", { container: { resources: { requests: { cpu: "1", [RESOURCE]: "1" } } } }));
  const scores = (score: Score): number[] => ["a", "b", "c", "d"].map((name) => score.prepare(wanted, cluster, cluster.nodes())!.score(cluster.node(name)!));
  expect(scores(nodeResourcesFitScore({ type: "MostAllocated", resources: { [RESOURCE]: 1 } }))).toEqual([33, 40, 50, 12]); // 1 of 3, 2 of 5, 1 of 2, 1 of 8: one device can be had anywhere
  expect(scores(balancedAllocation(["cpu", RESOURCE]))).toEqual([70, 77, 75, 65]);
});

// Other pods

const term = (app: string, topologyKey = "kubernetes.io/hostname") => ({ labelSelector: { matchLabels: { app } }, topologyKey });
const withAffinity = (app: string, { near, apart }: { near?: string; apart?: string }, key?: string): Partial<PodSpec> & { labels: Record<string, string> } => ({
  labels: { app }, affinity: { ...(near && { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term(near, key)] } }), ...(apart && { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term(apart, key)] } }) },
});

test("three caches that avoid each other and three web servers that want a cache each and avoid each other: one of each on a node", () => {
  const nodes = ["a", "b", "c"].map((name) => node(name));
  const small = { cpu: "100m" };
  const caches = [1, 2, 3].map((i): [Pod, string] => [pod(`cache-${i}`, { ...withAffinity("cache", { apart: "cache" }), ...small }), ""]);
  const running: [Pod, string][] = [];
  for (const [one] of caches) running.push([one, placed(one, nodes, running)]);
  expect(running.map(([, on]) => on).sort()).toEqual(["a", "b", "c"]);
  const web = [1, 2, 3].map((i) => pod(`web-${i}`, { ...withAffinity("web", { near: "cache", apart: "web" }), ...small }));
  expect(filled(web, nodes, running)).toBe("2 2 2");
  expect(placed(pod("web-4", withAffinity("web", { near: "cache", apart: "web" })), nodes, [...running, ...web.map((one, i): [Pod, string] => [one, "abc"[i]!])]))
    .toBe("0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules.");
});

test("a zone must hold a companion already; one to be avoided if possible only steers", () => {
  const zones = [node("a1", { labels: { zone: "a" } }), node("b1", { labels: { zone: "b" } })];
  const wish = { affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term("s1", "zone")] }, podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, podAffinityTerm: term("s2", "zone") }] } } };
  const s1 = (name: string) => pod(name, { labels: { app: "s1" }, cpu: "10m" });
  expect(placed(pod("p", wish), zones, [[s1("x"), "b1"]])).toBe("b1");
  expect(placed(pod("p", wish), zones, [[s1("x"), "a1"], [s1("y"), "b1"], [pod("z", { labels: { app: "s2" }, cpu: "10m" }), "a1"]])).toBe("b1");
  expect(placed(pod("p", wish), zones, [[s1("x"), "a1"], [pod("z", { labels: { app: "s2" }, cpu: "10m" }), "a1"]])).toBe("a1");
});

test("a node without the topology key is in no domain", () => {
  const nodes = [node("bare"), node("a1", { labels: { zone: "a" } })];
  expect(placed(pod("p", withAffinity("web", { near: "db" }, "zone")), nodes, [[pod("x", { labels: { app: "db" } }), "bare"]])).toBe("0/2 nodes are available: 2 node(s) didn't match pod affinity rules.");
  expect(placed(pod("p", withAffinity("web", { apart: "db" }, "zone")), nodes, [[pod("x", { labels: { app: "db" }, cpu: "10m" }), "a1"]])).toBe("bare");
});

test("an empty value of the topology key is a domain of its own, and not that of nodes without it", () => {
  const nodes = [node("bare", { cpu: "1" }), node("empty", { labels: { zone: "" } })];
  const db: Running = [[pod("x", { labels: { app: "db" }, cpu: "10m" }), "empty"]];
  expect(placed(pod("p", withAffinity("web", { apart: "db" }, "zone")), nodes, db)).toBe("bare");
  expect(placed(pod("p", { affinity: { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, podAffinityTerm: term("db", "zone") }] } } }), nodes, db)).toBe("bare");
});

test("what other pods are worth is rounded down as a share of the most: 29 of 100 are 28", () => {
  const nodes = ["a", "b", "c"].map((name) => node(name));
  const near = (app: string, weight: number) => ({ weight, podAffinityTerm: term(app) });
  const wanted = candidate(pod("p", { affinity: { podAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [near("db", 100), near("cache", 29)] } } }));
  const cluster = schedulingCluster({ nodes, placed: [[pod("x", { labels: { app: "db" } }), "a"], [pod("y", { labels: { app: "cache" } }), "b"]] });
  const score = interPodAffinityScore().prepare(wanted, cluster, cluster.nodes())!;
  expect(score.normalize!(cluster.nodes().map((one) => score.score(one)), cluster.nodes())).toEqual([100, 28, 0]);
});

// Spreading

const four = [node("a1", { labels: { zone: "a" } }), node("a2", { labels: { zone: "a" } }), node("b1", { labels: { zone: "b" } }), node("b2", { labels: { zone: "b" } })];
const spread = (...constraints: Partial<TopologySpreadConstraint>[]): Partial<PodSpec> & { labels: Record<string, string>; cpu: string } => ({
  cpu: "10m", labels: { app: "web" },
  topologySpreadConstraints: constraints.map((more) => ({ maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule", labelSelector: { matchLabels: { app: "web" } }, ...more })),
});
const web = (name: string): Pod => pod(name, { labels: { app: "web" }, cpu: "10m" });
const three: Running = [[web("1"), "a1"], [web("2"), "a2"], [web("3"), "b1"]];
const HOST = { topologyKey: "kubernetes.io/hostname" };
const SKEW = "node(s) didn't match pod topology spread constraints";

test.each<[what: string, wanted: Partial<PodSpec>, nodes: readonly Node[], running: Running, result: string | RegExp]>([
  ["two of three are in zone a: the next goes to b", spread({}), four, three, /^b/],
  ["and over nodes too: only one is left", spread({}, HOST), four, three, "b2"],
  ["with a skew of two, and the nodes of b full", spread({ maxSkew: 2 }), four.slice(0, 2).concat(node("b1", { labels: { zone: "b" }, cpu: "5m" })), three, /^a/],
  ["zones and nodes that contradict each other", spread({}, HOST), four.slice(0, 3), [[web("1"), "a1"], [web("2"), "a1"], [web("3"), "a2"], [web("4"), "b1"], [web("5"), "b1"]], `0/3 nodes are available: 3 ${SKEW}.`],
  ["if that is only a wish, it goes somewhere", spread({ whenUnsatisfiable: "ScheduleAnyway" }, { ...HOST, whenUnsatisfiable: "ScheduleAnyway" }), four.slice(0, 3), [[web("1"), "a1"], [web("2"), "a1"], [web("3"), "a2"], [web("4"), "b1"], [web("5"), "b1"]], "a2"],
  ["a wish prefers the emptier domain", spread({ whenUnsatisfiable: "ScheduleAnyway" }), four, three, /^b/],
  ["as many domains as wanted: then it is as without", spread({ minDomains: 2 }), four, three, /^b/],
  ["fewer domains than wanted: the least is nought", spread({ minDomains: 3 }), four, three, `0/4 nodes are available: 4 ${SKEW}.`],
  ["nodes that are tainted count by default", spread({}), [...four.slice(0, 2), node("b1", { labels: { zone: "b" }, taints: [{ key: "k", effect: "NoSchedule" }] })], [[web("1"), "a1"]], `0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 ${SKEW}.`],
  ["and not, if the pod says so", spread({ nodeTaintsPolicy: "Honor" }), [...four.slice(0, 2), node("b1", { labels: { zone: "b" }, taints: [{ key: "k", effect: "NoSchedule" }] })], [[web("1"), "a1"]], /^a/],
  ["who does not count itself may pile up", { ...spread({}), labels: { app: "other" } } as never, four, [...three, [web("4"), "b2"], [pod("ghost", { labels: { app: "other" }, cpu: "10m" }), "b2"]], /^[ab]/],
  ["nodes without the key are passed over, and who is there does not count", spread({}), [...four.slice(0, 3), node("bare", { cpu: "100" })], [[web("1"), "a1"], [web("2"), "bare"]], "b1"],
])("spread: %s", (_, wanted, nodes, running, result) => {
  const where = placed(pod("p", wanted), nodes, running);
  if (typeof result === "string") expect(where).toBe(result);
  else expect(where).toMatch(result);
});

test("the skew is that after the pod: with 2, 2 and 1 only the third zone takes another", () => {
  const nodes = ["a", "b", "c"].map((zone) => node(`${zone}1`, { labels: { zone } }));
  const running: Running = [[web("1"), "a1"], [web("2"), "a1"], [web("3"), "b1"], [web("4"), "b1"], [web("5"), "c1"]];
  expect(placed(pod("p", { ...spread({}), nodeSelector: { zone: "a" }, topologySpreadConstraints: [{ ...spread({}).topologySpreadConstraints![0]!, nodeAffinityPolicy: "Ignore" }] }), nodes, running)).toContain(SKEW);
  expect(placed(pod("p", spread({})), nodes, running)).toBe("c1");
});

test("pods of a service, a set or a controller are spread over zones and nodes by default, others and those with constraints of their own are not", () => {
  const nodes = [node("a1", { cpu: "8", labels: { "topology.kubernetes.io/zone": "a" } }), node("b1", { labels: { "topology.kubernetes.io/zone": "b" } })];
  const running: Running = [...Array.from({ length: 3 }, (_, i): [Pod, string] => [web(`${i}`), "a1"]), [pod("big", { cpu: "1500m" }), "b1"]];
  const owner = (kind: string, apiVersion = "apps/v1") => ({ metadata: { ownerReferences: [{ apiVersion, kind, name: "web", uid: "u", controller: true }] }, labels: { app: "web" }, cpu: "10m" });
  const set = (kind: string, apiVersion = "apps/v1") => stored(apiVersion, kind, "default/web", { spec: { selector: apiVersion === "v1" ? { app: "web" } : { matchLabels: { app: "web" } } } });
  expect(placed(web("p"), nodes, running)).toBe("a1");
  expect(placed(web("p"), nodes, running, [stored("v1", "Service", "default/web", { spec: { selector: { app: "web" } } })])).toBe("b1");
  for (const [kind, apiVersion] of [["ReplicaSet", "apps/v1"], ["StatefulSet", "apps/v1"], ["ReplicationController", "v1"]] as const)
    expect(placed(pod("p", owner(kind, apiVersion)), nodes, running, [set(kind, apiVersion)]), kind).toBe("b1");
  const own = { topologySpreadConstraints: [{ maxSkew: 9, topologyKey: "none", whenUnsatisfiable: "ScheduleAnyway" as const, labelSelector: { matchLabels: { app: "web" } } }] };
  expect(placed(pod("p", { ...owner("ReplicaSet"), ...own }), nodes, running, [set("ReplicaSet")])).toBe("a1");
});

// Taints

const taint = (key: string, value: string, effect: Taint["effect"]): Taint => ({ key, value, effect });
test.each<[what: string, toleration: Toleration, taint: Taint, tolerated: boolean]>([
  ["Equal is the default", { key: "k", value: "v", effect: "NoSchedule" }, taint("k", "v", "NoSchedule"), true],
  ["another value", { key: "k", operator: "Equal", value: "w", effect: "NoSchedule" }, taint("k", "v", "NoSchedule"), false],
  ["another effect", { key: "k", value: "v", effect: "NoExecute" }, taint("k", "v", "NoSchedule"), false],
  ["another key", { key: "l", operator: "Exists" }, taint("k", "v", "NoSchedule"), false],
  ["Exists needs no value", { key: "k", operator: "Exists", effect: "NoSchedule" }, taint("k", "v", "NoSchedule"), true],
  ["no effect is every effect", { key: "k", operator: "Exists" }, taint("k", "v", "NoExecute"), true],
  ["no key is every key", { operator: "Exists" }, taint("k", "v", "NoExecute"), true],
  ["no key, of one effect", { operator: "Exists", effect: "NoExecute" }, taint("k", "v", "NoSchedule"), false],
  ["greater", { key: "sla", operator: "Gt", value: "900" }, taint("sla", "950", "NoSchedule"), true],
  ["less", { key: "sla", operator: "Lt", value: "1000" }, taint("sla", "950", "NoSchedule"), true],
  ["not less", { key: "sla", operator: "Lt", value: "950" }, taint("sla", "950", "NoSchedule"), false],
  ["no number", { key: "sla", operator: "Gt", value: "900" }, taint("sla", "gold", "NoSchedule"), false],
])("toleration: %s", (_, toleration, of, tolerated) => expect(tolerates(toleration, of)).toBe(tolerated));

test("of three taints two are tolerated, the third keeps the pod away; one that only discourages does not", () => {
  const taints = [taint("k1", "v1", "NoSchedule"), taint("k1", "v1", "NoExecute"), taint("k2", "v2", "NoSchedule")];
  const tolerations: Toleration[] = [{ key: "k1", operator: "Equal", value: "v1", effect: "NoSchedule" }, { key: "k1", operator: "Equal", value: "v1", effect: "NoExecute" }];
  const AWAY = "0/1 nodes are available: 1 node(s) had untolerated taint(s).";
  expect(placed(pod("p", { tolerations }), [node("a", { taints })])).toBe(AWAY);
  expect(placed(pod("p", { tolerations: tolerations.slice(0, 1) }), [node("a", { taints: taints.slice(0, 2) })])).toBe(AWAY); // NoExecute keeps new ones away too
  const wary = node("wary", { cpu: "64", taints: [taint("k", "v", "PreferNoSchedule")] });
  expect(placed(pod("p"), [wary])).toBe("wary");
  expect(placed(pod("p"), [wary, node("plain")])).toBe("plain");
  expect(placed(pod("p", { tolerations: [{ key: "k", operator: "Exists" }] }), [node("plain"), wary])).toBe("wary");
});

test("a cordoned node takes only who tolerates that", () => {
  const cordoned = [node("a", { unschedulable: true, taints: [{ key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" }] })];
  expect(placed(pod("p"), cordoned)).toMatch(/node\(s\) (were unschedulable|had untolerated taint)/);
  expect(placed(pod("p", { tolerations: [{ key: "node.kubernetes.io/unschedulable", operator: "Exists", effect: "NoSchedule" }] }), cordoned)).toBe("a");
});

// What pods take

test("a node must have what all containers request, and what the pod takes besides", () => {
  expect(placed(pod("p", { cpu: "2" }), [node("a")])).toBe("a");
  expect(placed(pod("p", { cpu: "2", overhead: { cpu: "250m" } }), [node("a")])).toBe("0/1 nodes are available: 1 Insufficient cpu.");
  expect(placed(pod("p", { cpu: "2", overhead: { cpu: "250m", memory: "120Mi" } }), [node("a"), node("b", { cpu: "2250m" })])).toBe("b");
  expect(placed(pod("p"), [node("a", { allocatable: { pods: "1" } })], [[pod("x"), "a"]])).toBe("0/1 nodes are available: 1 Too many pods.");
});

test("features: only nodes that declare what a pod needs", () => {
  const needs = pod("p", { container: { restartPolicyRules: [{ action: "RestartAllContainers", exitCodes: { operator: "In", values: [42] } }] } as never });
  const knows = { ...node("new"), status: { ...node("new").status, declaredFeatures: ["RestartAllContainersOnContainerExits"] } } as Node;
  expect(placed(needs, [node("old")])).toBe("0/1 nodes are available: 1 node(s) didn't match Pod's required features.");
  expect(placed(needs, [node("old"), knows])).toBe("new");
  expect(placed(pod("q", { hostNetwork: true, hostUsers: false }), [knows])).toContain("didn't match Pod's required features");
});
