/** Whatever pods there are: what a ReplicaSet does next leads to as many as it wants, by the pods that cost least. */
import { expect, test } from "vitest";
import { seededRandom } from "../../../test/simulator/seeded.ts";
import type { Pod } from "../../api/gen/core.v1.ts";
import { isReady } from "../pod-state.ts";
import { planReplicas } from "./plan.ts";

const NOW = Date.parse("2026-01-02T00:00:00Z");

test("never past what is wanted, never both ways, never more than a burst; who goes is no dearer than who stays", () => {
  for (let seed = 1; seed <= 150; seed++) {
    const random = seededRandom(seed);
    const at = (): string => new Date(NOW - random.integer(1, 1_000_000) * 1000).toISOString();
    const active = Array.from({ length: random.chance(0.1) ? random.integer(400, 1200) : random.integer(0, 20) }, (_, i): Pod => ({
      apiVersion: "v1", kind: "Pod",
      metadata: { name: `p${i}`, uid: `u${random.integer(0, 1e9)}-${i}`, resourceVersion: "1", creationTimestamp: at(), ...(random.chance(0.3) ? { annotations: { "controller.kubernetes.io/pod-deletion-cost": random.pick(["-5", "0", "7", "x"]) } } : {}) },
      spec: { containers: [], ...(random.chance(0.8) ? { nodeName: random.pick(["a", "b", "c"]) } : {}) },
      status: { phase: random.pick(["Pending", "Running", "Unknown"] as const), conditions: [{ type: "Ready", status: random.pick(["True", "False"] as const), lastTransitionTime: at() }] },
    }));
    const replicas = random.integer(0, 25) * (random.chance(0.1) ? 100 : 1);
    const { create, remove } = planReplicas(replicas, active, active, NOW);
    const label = `seed ${seed}: ${active.length} pods, ${replicas} wanted`;
    expect(create === 0 || remove.length === 0, label).toBe(true);
    expect(create, label).toBe(Math.min(500, Math.max(0, replicas - active.length)));
    expect(remove.length, label).toBe(Math.min(500, Math.max(0, active.length - replicas)));
    expect(new Set(remove).size, label).toBe(remove.length);
    const kept = active.filter((pod) => !remove.includes(pod));
    const rank = (pod: Readonly<Pod>): number => (pod.spec.nodeName ? 4 : 0) + (pod.status?.phase === "Running" ? 2 : pod.status?.phase === "Unknown" ? 1 : 0) + (isReady(pod) ? 0.5 : 0);
    if (remove.length > 0 && kept.length > 0) expect(Math.max(...remove.map(rank)), label).toBeLessThanOrEqual(Math.min(...kept.map(rank)));
    expect(planReplicas(replicas, active.toReversed(), active, NOW).remove.map(({ metadata }) => metadata.name).sort(), `${label}, in another order`).toEqual(kept.length === 0 ? expect.anything() : remove.map(({ metadata }) => metadata.name).sort());
  }
});
