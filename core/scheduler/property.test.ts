/** Scheduling decisions against their meaning: nobody is put where it does not fit, the best node is taken, and preemption takes as few as it can, none of them as important. */
import { expect, test } from "vitest";
import type { Node, Pod } from "../api/gen/core.v1.ts";
import { candidate, first, node, pod, schedulingCluster } from "../../test/scheduling-cluster.ts";
import { seededRandom, type SeededRandom } from "../../test/simulator/seeded.ts";
import { place, scoresOf } from "./place.ts";
import { DEFAULT_PROFILE } from "./plugins.ts";
import { preempt } from "./preempt.ts";

const CPU = 2000;
function podOf(name: string, random: SeededRandom): Pod {
  const app = random.pick(["web", "db"]);
  const term = { labelSelector: { matchLabels: { app: random.pick(["web", "db"]) } }, topologyKey: random.pick(["zone", "kubernetes.io/hostname"]) };
  return pod(name, {
    cpu: `${random.integer(1, 15) * 100}m`, labels: { app }, priority: random.integer(0, 5),
    ...(random.chance(0.2) ? { nodeSelector: { zone: random.pick(["a", "b"]) } } : {}),
    ...(random.chance(0.2) ? { tolerations: [{ operator: "Exists" as const }] } : {}),
    ...(random.chance(0.2) ? { affinity: { [random.pick(["podAffinity", "podAntiAffinity"])]: { requiredDuringSchedulingIgnoredDuringExecution: [term] } } } : {}),
    ...(random.chance(0.2) ? { topologySpreadConstraints: [{ maxSkew: random.integer(1, 2), topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule" as const, labelSelector: { matchLabels: { app } } }] } : {}),
  });
}
const nodeOf = (name: string, random: SeededRandom): Node => node(name, { labels: { zone: random.pick(["a", "b"]) }, ...(random.chance(0.15) ? { taints: [{ key: "k", effect: "NoSchedule" }] } : {}), ...(random.chance(0.1) ? { unschedulable: true } : {}) });
const cpuOf = ({ spec }: Readonly<Pod>): number => Number.parseInt(String(spec.containers[0]!.resources!.requests!["cpu"]), 10);

function world(seed: number) {
  const random = seededRandom(seed);
  const nodes = Array.from({ length: random.integer(1, 6) }, (_, i) => nodeOf(`n${i}`, random));
  const placed: [Pod, string][] = [];
  for (let i = random.integer(0, 16); i > 0; i--) {
    const one = podOf(`x${i}`, random), on = random.pick(nodes).metadata.name;
    if (placed.filter(([, at]) => at === on).reduce((sum, [other]) => sum + cpuOf(other), cpuOf(one)) <= CPU) placed.push([one, on]);
  }
  return { random, nodes, placed };
}

const tryOut = (wanted: Pod, nodes: readonly Node[], placed: readonly (readonly [Pod, string])[]) => place(candidate(wanted), schedulingCluster({ nodes, placed }), DEFAULT_PROFILE, { random: first, start: { next: 0 } });

test("a pod goes where it fits, and nowhere better; where it fits does not depend on the other nodes' order", () => {
  for (let seed = 1; seed <= 200; seed++) {
    const { random, nodes, placed } = world(seed);
    const wanted = podOf("p", random);
    const result = tryOut(wanted, nodes, placed);
    const backwards = tryOut(wanted, nodes.toReversed(), placed);
    expect(backwards.type, `seed ${seed}`).toBe(result.type);
    if (result.type !== "node") { expect(backwards.type === "none" && backwards.message, `seed ${seed}`).toBe(result.message); continue; }
    const on = nodes.find(({ metadata }) => metadata.name === result.node)!;
    const used = placed.filter(([, at]) => at === result.node).reduce((sum, [other]) => sum + cpuOf(other), 0);
    expect(used + cpuOf(wanted), `seed ${seed}`).toBeLessThanOrEqual(CPU);
    for (const [key, value] of Object.entries(wanted.spec.nodeSelector ?? {})) expect(on.metadata.labels?.[key], `seed ${seed}`).toBe(value);
    if (!wanted.spec.tolerations) expect([on.spec.taints, on.spec.unschedulable], `seed ${seed}`).toEqual([undefined, undefined]);

    // The sum of its scores is the highest of those that are feasible: what is feasible is found by asking for one node at a time, among all.
    const cluster = schedulingCluster({ nodes, placed });
    const feasible = cluster.nodes().filter(({ name }) => {
      const only = { ...wanted, spec: { ...wanted.spec, affinity: { ...wanted.spec.affinity, nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In" as const, values: [name] }] }] } } }, ...(wanted.spec.topologySpreadConstraints ? { topologySpreadConstraints: wanted.spec.topologySpreadConstraints.map((one) => ({ ...one, nodeAffinityPolicy: "Ignore" as const })) } : {}) } };
      return wanted.spec.topologySpreadConstraints && wanted.spec.nodeSelector ? name === result.node : tryOut(only, nodes, placed).type === "node";
    });
    expect(feasible.map(({ name }) => name), `seed ${seed}`).toContain(result.node);
    const totals = new Map(feasible.map(({ name }) => [name, 0]));
    for (const { values, weight } of scoresOf(candidate(wanted), cluster, { feasible, scores: DEFAULT_PROFILE.scores })) for (const [i, { name }] of feasible.entries()) totals.set(name, totals.get(name)! + values[i]! * weight);
    expect(totals.get(result.node), `seed ${seed}`).toBe(Math.max(...totals.values()));
  }
});

test("without its victims the pod fits; each is of lower priority, and none of them could have stayed", () => {
  let tried = 0;
  for (let seed = 1; seed <= 900; seed++) {
    const { random, nodes, placed } = world(seed);
    const wanted = pod("p", { ...podOf("p", random).spec, cpu: `${random.integer(10, 20) * 100}m`, labels: { app: "web" }, priority: random.integer(1, 6) });
    const cluster = schedulingCluster({ nodes, placed });
    const failure = place(candidate(wanted), cluster, DEFAULT_PROFILE, { random: first, start: { next: 0 } });
    if (failure.type === "node") continue;
    const result = preempt(candidate(wanted), failure, { cluster, budgets: [], random: first, enough: DEFAULT_PROFILE.preemption! });
    if (result.type !== "node") continue;
    tried++;
    const names = new Set(result.victims.map(({ metadata }) => metadata.name));
    const onlyThere = nodes.map((one) => (one.metadata.name === result.node ? one : { ...one, spec: { ...one.spec, unschedulable: true } }));
    const fitsWithout = (gone: ReadonlySet<string>): boolean => {
      const left = tryOut(wanted, onlyThere, placed.filter(([{ metadata }]) => !gone.has(metadata.name)));
      return left.type === "node" && left.node === result.node;
    };
    expect(names.size, `seed ${seed}`).toBeGreaterThan(0);
    for (const victim of result.victims) {
      expect(victim.spec.priority ?? 0, `seed ${seed}: ${victim.metadata.name}`).toBeLessThan(wanted.spec.priority!);
      expect(placed.find(([one]) => one.metadata.name === victim.metadata.name)![1], `seed ${seed}`).toBe(result.node);
    }
    if (!wanted.spec.tolerations) {
      expect(fitsWithout(names), `seed ${seed}: it does not fit on ${result.node}`).toBe(true);
      for (const name of names) expect(fitsWithout(new Set([...names].filter((one) => one !== name))), `seed ${seed}: ${name} could have stayed`).toBe(false);
    }
  }
  expect(tried).toBeGreaterThan(60);
});
