/** Of one pod with very many terms and constraints, how often the others are looked at. */
import { expect, test, vi } from "vitest";
import type { PodSpec } from "../api/gen/core.v1.ts";
import { candidate, first, node, pod, schedulingCluster } from "../../test/scheduling-cluster.ts";
import { place } from "./place.ts";
import { DEFAULT_PROFILE } from "./plugins.ts";

const PODS = 300, TERMS = 500;
const nodes = ["a", "b", "c"].map((name) => node(name, { cpu: "1000", labels: { zone: name } }));

/** `count`: how often labels of the placed pods were read. */
function crowd() {
  const reads = { count: 0 };
  const placed = Array.from({ length: PODS }, (_, i) => {
    const made = pod(`p${i}`, { cpu: "1m" });
    const labels = { app: "web", i: `i${i}` };
    return [{ ...made, metadata: Object.defineProperty({ ...made.metadata }, "labels", { get: () => (reads.count++, labels), enumerable: true }) }, "abc"[i % 3]!] as const;
  });
  return { reads, cluster: schedulingCluster({ nodes, placed }) };
}

const terms = (labels: (i: number) => Record<string, string>) => Array.from({ length: TERMS }, (_, i) => ({ topologyKey: "zone", labelSelector: { matchLabels: labels(i) } }));
const weighted = (labels: (i: number) => Record<string, string>) => terms(labels).map((podAffinityTerm) => ({ weight: 1, podAffinityTerm }));
const constraints = (whenUnsatisfiable: "DoNotSchedule" | "ScheduleAnyway"): PodSpec["topologySpreadConstraints"] => terms((i) => ({ app: "web", i: `i${i}` })).map((one) => ({ ...one, maxSkew: 5, whenUnsatisfiable }));

test.each<[string, Partial<PodSpec>]>([
  ["anti-affinity", { affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms((i) => ({ app: `none${i}` })) } } }],
  ["preferred affinity", { affinity: { podAffinity: { preferredDuringSchedulingIgnoredDuringExecution: weighted((i) => ({ app: "web", i: `i${i}` })) } } }],
  ["preferred anti-affinity", { affinity: { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: weighted((i) => ({ i: `i${i}` })) } } }],
  ["constraints", { topologySpreadConstraints: constraints("DoNotSchedule")! }],
  ["wishes to be spread", { topologySpreadConstraints: constraints("ScheduleAnyway")! }],
])("a pod with hundreds of terms looks for each at those pods alone that it means: %s", (_, spec) => {
  const { reads, cluster } = crowd();
  for (let attempt = 0; attempt < 2; attempt++) {
    reads.count = 0;
    expect(place(candidate(pod("new", spec)), cluster, DEFAULT_PROFILE, { random: first, start: { next: 0 } })).toHaveProperty("node");
    expect(reads.count).toBeLessThan((PODS + TERMS) * 4);
  }
});

test("hundreds of required terms that all mean the same pods are asked of a node once", () => {
  const { cluster } = crowd();
  const lookups = vi.spyOn(Map.prototype, "get");
  try {
    expect(place(candidate(pod("new", { affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms(() => ({ app: "web" })) } } })), cluster, DEFAULT_PROFILE, { random: first, start: { next: 0 } })).toHaveProperty("node");
    expect(lookups.mock.calls.length).toBeLessThan(TERMS * 20);
  } finally {
    lookups.mockRestore();
  }
});

test("thousands of labels that nodes must have are put together once, not for each of them", () => {
  const { cluster } = crowd();
  const topologySpreadConstraints = (["DoNotSchedule", "ScheduleAnyway"] as const).flatMap((whenUnsatisfiable) => constraints(whenUnsatisfiable)!.map((one, i) => ({ ...one, topologyKey: `k${i}`, labelSelector: { matchLabels: { app: "web" } } })));
  for (const wanted of [topologySpreadConstraints.slice(0, TERMS), topologySpreadConstraints.slice(TERMS)]) {
    const joins = vi.spyOn(Array.prototype, "join");
    try {
      place(candidate(pod("new", { topologySpreadConstraints: wanted })), cluster, DEFAULT_PROFILE, { random: first, start: { next: 0 } });
      expect(joins.mock.contexts.filter((one) => (one as unknown[]).length >= TERMS).length).toBeLessThan(10);
    } finally {
      joins.mockRestore();
    }
  }
});
