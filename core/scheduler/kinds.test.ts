import { expect, test } from "vitest";
import { candidate, first, node, pod, schedulingCluster, stored } from "../../test/scheduling-cluster.ts";
import { seededRandom } from "../../test/simulator/seeded.ts";
import { Kinds } from "./kinds.ts";
import type { LiveNode } from "./node-info.ts";
import { place } from "./place.ts";
import { DEFAULT_PROFILE } from "./plugins.ts";

test("what nodes have said before is what they would say now, whatever has happened to them", () => {
  let placed = 0, refused = 0;
  for (let seed = 1; seed <= 60; seed++) {
    const random = seededRandom(seed), kinds = new Kinds();
    const nodeOf = (i: number) => node(`n${i}`, {
      cpu: random.pick(["1", "2", "4"]), labels: { zone: random.pick(["a", "b"]) }, unschedulable: random.chance(0.1), taints: random.chance(0.2) ? [{ key: "k", effect: random.pick(["NoSchedule", "PreferNoSchedule"]) }] : [],
      images: random.chance(0.5) ? [{ names: ["i:latest"], sizeBytes: 300_000_000 }] : [],
    });
    const cluster = schedulingCluster({ nodes: Array.from({ length: 12 }, (_, i) => nodeOf(i)) }), { snapshot } = cluster;
    const there = new Map<string, ReturnType<typeof candidate>>();
    for (let step = 0; step < 80; step++) {
      const wanted = candidate(pod(`p${step}`, {
        cpu: random.pick(["100m", "400m"]), labels: { app: "web" }, ...(random.chance(0.3) ? { nodeSelector: { zone: "a" } } : {}), ...(random.chance(0.3) ? { tolerations: [{ operator: "Exists" as const }] } : {}),
        ...(random.chance(0.2) ? { topologySpreadConstraints: [{ maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule" as const, labelSelector: { matchLabels: { app: "web" } } }] } : {}),
        ...(random.chance(0.2) ? { container: { ports: [{ containerPort: 80, hostPort: 80 }] } } : {}),
      }));
      const options = { random: first, start: { next: 0 } };
      const anew = place(wanted, cluster, DEFAULT_PROFILE, options);
      const known = place(wanted, cluster, DEFAULT_PROFILE, { ...options, start: { next: 0 }, kind: kinds.of(wanted) });
      expect([known.type, known.type === "node" ? known.node : known.message], `seed ${seed}, step ${step}`).toEqual([anew.type, anew.type === "node" ? anew.node : anew.message]);
      if (anew.type === "node") {
        placed++;
        snapshot.assume(wanted, anew.node);
        there.set(wanted.pod.metadata.uid, wanted);
      } else refused++;
      const [gone] = there.values();
      if (gone && random.chance(0.3)) {
        there.delete(gone.pod.metadata.uid);
        snapshot.removePod(gone.pod);
      }
      if (random.chance(0.2)) snapshot.setNode(nodeOf(random.integer(0, 11)));
    }
  }
  expect(Math.min(placed, refused)).toBeGreaterThan(100);
});

test("a second pod of a kind asks only the node that the first went to, and a filter that looks at others everywhere", () => {
  const cluster = schedulingCluster({ nodes: ["a", "b", "c"].map((name) => node(name)) }), kinds = new Kinds();
  const spread = { topologySpreadConstraints: [{ maxSkew: 1, topologyKey: "kubernetes.io/hostname", whenUnsatisfiable: "DoNotSchedule" as const, labelSelector: { matchLabels: { app: "web" } } }] };
  const asked = (name: string) => {
    const wanted = candidate(pod(name, { labels: { app: "web" }, ...spread }));
    const placement = place(wanted, cluster, DEFAULT_PROFILE, { random: first, start: { next: 0 }, kind: kinds.of(wanted) });
    if (placement.type === "none") throw new Error(placement.message);
    cluster.snapshot.assume(wanted, placement.node);
    const times = new Map(placement.evaluation.asked());
    return [placement.node, times.get("NodeResourcesFit"), times.get("PodTopologySpread")];
  };
  expect([asked("p1"), asked("p2"), asked("p3")]).toEqual([["a", 3, 3], ["b", 1, 3], ["c", 1, 3]]);
});

test("pods are of a kind when what nodes look at is the same; those that devices may serve are of none", () => {
  const kinds = new Kinds();
  const kind = (options: Parameters<typeof pod>[1]) => kinds.of(candidate(pod("p", options)));
  const plain = kind({});
  expect(kind({ labels: { app: "other" }, namespace: "other" })).toBe(plain);
  for (const other of [{ cpu: "1" }, { nodeSelector: { zone: "a" } }, { tolerations: [{ operator: "Exists" as const }] }, { tolerations: [{ operator: "Exists" as const, tolerationSeconds: (2n ** 63n - 1n) as unknown as number }] }, { schedulerName: "own" }, { container: { ports: [{ containerPort: 1, hostPort: 1 }] } }]) expect(kind(other)).not.toBe(plain);
  expect(kind({ container: { resources: { requests: { "example.com/gpu": "1" } } } })).toBeUndefined();
});

test.each<[what: string, one: object, other: object]>([
  ["containers that say nothing where others say all", { containers: [{ name: "a", resources: { requests: { cpu: "1", memory: "1Mi" } } }, { name: "b" }] }, { containers: [{ name: "a", resources: { requests: { cpu: "1", memory: "1Mi" } } }, { name: "b", resources: { requests: { cpu: "0", memory: "0" } } }] }],
  ["what containers ask for, of pods that ask for as much as a whole", { resources: { requests: { cpu: "2" } }, containers: [{ name: "a" }] }, { resources: { requests: { cpu: "2" } }, containers: [{ name: "a", resources: { requests: { cpu: "2" } } }] }],
])("pods are of two kinds when nodes score them differently: by %s", (_, one, other) => {
  const [kinds, cluster] = [new Kinds(), schedulingCluster({ nodes: [node("n")] })];
  const [a, b] = [one, other].map((spec) => candidate(stored("v1", "Pod", "default/p", { spec } as never)));
  const score = (wanted: typeof a) => DEFAULT_PROFILE.scores.find(({ name }) => name === "NodeResourcesFit")!.prepare(wanted!, cluster, cluster.nodes())!.score(cluster.node("n")!);
  expect(score(a)).not.toBe(score(b));
  expect(a!.requests).toEqual(b!.requests);
  expect(kinds.of(a!)).not.toBe(kinds.of(b!));
});

test("a node remembers what it said of a few kinds, and nothing once it has changed", () => {
  const { snapshot } = schedulingCluster({ nodes: [node("a")] }), a = snapshot.node("a") as LiveNode;
  const kinds = Array.from({ length: 40 }, (_, i) => ({ signature: String(i) }));
  for (const kind of kinds) a.saying(kind).worth = 1;
  expect(kinds.filter((kind) => a.saying(kind).worth === 1).length).toBeLessThanOrEqual(16);
  const last = kinds.at(-1)!;
  a.saying(last).worth = 1;
  snapshot.setNode(node("a", { unschedulable: true }));
  expect(a.saying(last).worth).toBeUndefined();
});
