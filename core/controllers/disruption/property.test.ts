/** Budgets spent by evictions while pods come, go and fail: evictions alone never bring the healthy ones below what is wanted. */
import { expect, test } from "vitest";
import { seededRandom } from "../../../test/simulator/seeded.ts";
import { stored } from "../../../test/static-informer.ts";
import type { Pod } from "../../api/gen/core.v1.ts";
import type { PodDisruptionBudget } from "../../api/gen/policy.v1.ts";
import { expectedPods, planBudget } from "./plan.ts";

test("who evicts as long as it is allowed leaves enough, however late the controller sees it", () => {
  for (let seed = 1; seed <= 100; seed++) {
    const random = seededRandom(seed);
    const replicas = random.integer(1, 12);
    const bound = random.chance(0.5) ? random.integer(0, 5) : `${random.integer(0, 100)}%`;
    const spec = { selector: {}, ...(random.chance(0.5) ? { minAvailable: bound } : { maxUnavailable: bound }) };
    let pods = Array.from({ length: replicas }, (_, i) => ({ name: `p${i}`, ready: random.chance(0.9), going: false }));
    let status: NonNullable<PodDisruptionBudget["status"]> | undefined;
    let nowMs = Date.parse("2026-07-01T12:00:00Z");
    for (let step = 0; step < 60; step++) {
      const seen = random.chance(0.7) ? pods : undefined; // else its copy is late: it has not looked
      if (seen) {
        const budget = stored<PodDisruptionBudget>("policy/v1", "PodDisruptionBudget", "n/b", { spec, status });
        const all = seen.map(({ name, ready, going }) => stored<Pod>("v1", "Pod", `n/${name}`, { metadata: going ? { deletionTimestamp: "2026-07-01T12:00:00Z" } : {}, spec: { containers: [] }, status: { phase: "Running", conditions: [{ type: "Ready", status: ready ? "True" : "False" }] } }));
        ({ status } = planBudget(budget, { pods: all, expected: expectedPods(budget, replicas), nowMs }));
        const healthy = seen.filter(({ ready, going, name }) => ready && !going && status!.disruptedPods?.[name] === undefined).length;
        expect(status.disruptionsAllowed, `seed ${seed}`).toBe(Math.max(0, healthy - status.desiredHealthy));
      }
      // The eviction subresource: spends, then deletes.
      const victim = random.pick(pods);
      if (status && victim.ready && !victim.going && status.disruptedPods?.[victim.name] === undefined && status.disruptionsAllowed > 0) {
        status = { ...status, disruptionsAllowed: status.disruptionsAllowed - 1, disruptedPods: { ...status.disruptedPods, [victim.name]: new Date(nowMs).toISOString() } };
        victim.going = true;
        const left = pods.filter(({ ready, going }) => ready && !going).length;
        expect(left, `seed ${seed}, step ${step}`).toBeGreaterThanOrEqual(status.desiredHealthy);
      }
      pods = pods.map((pod) => (pod.going && random.chance(0.3) ? { name: `${pod.name}'`, ready: false, going: false } : pod)); // replaced
      for (const pod of pods) if (!pod.ready && random.chance(0.3)) pod.ready = true;
      nowMs += 1000;
    }
  }
});
