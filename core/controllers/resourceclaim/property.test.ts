/** Claims for devices while their pods come and go: never taken from one that runs, given back when none is left, and then left in peace. */
import { expect, test } from "vitest";
import { seededRandom } from "../../../test/simulator/seeded.ts";
import { stored } from "../../../test/static-informer.ts";
import type { Pod } from "../../api/gen/core.v1.ts";
import type { ResourceClaim } from "../../api/gen/resource.v1.ts";
import { FINALIZER, isDone, planClaim } from "./plan.ts";

test("who runs keeps its reservation; without users devices are given back; carried out, nothing is left to do", () => {
  for (let seed = 1; seed <= 500; seed++) {
    const random = seededRandom(seed);
    const pods = Array.from({ length: random.integer(0, 5) }, (_, i) => stored<Pod>("v1", "Pod", `default/p${i}`, {
      metadata: { uid: `u${i}`, ...(random.chance(0.3) ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}) }, spec: { containers: [], ...(random.chance(0.7) ? { nodeName: "n" } : {}) }, status: { phase: random.pick(["Pending", "Running", "Succeeded", "Failed"]) },
    }));
    const unknown = random.chance(0.2) ? [{ resource: "pods", name: "lost", uid: "lost" }] : [];
    let claim = stored<ResourceClaim>("resource.k8s.io/v1", "ResourceClaim", "default/c", {
      metadata: { finalizers: [FINALIZER], ...(random.chance(0.3) ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}) }, spec: {},
      status: { allocation: {}, reservedFor: [...pods.map(({ metadata: { name, uid } }) => ({ resource: "pods", name, uid })), ...unknown] },
    });
    const users = new Map(pods.map((pod) => [pod.metadata.uid, pod]));
    const running = pods.filter((pod) => !isDone(pod)).map(({ metadata }) => metadata.uid).sort();
    let steps = 0;
    for (; steps < 5; steps++) {
      const plan = planClaim(claim, { users, owner: undefined });
      if (plan.reservedFor === undefined && !plan.deallocate && !plan.removeFinalizer) break;
      if (plan.deallocate) expect(running, `seed ${seed}: devices in use`).toEqual([]);
      if (plan.removeFinalizer) expect(running, `seed ${seed}`).toEqual([]);
      const { allocation, ...status } = claim.status ?? {};
      claim = { ...claim, metadata: { ...claim.metadata, finalizers: plan.removeFinalizer ? [] : claim.metadata.finalizers ?? [] }, status: { ...status, ...(allocation && !plan.deallocate ? { allocation } : {}), ...(plan.reservedFor ? { reservedFor: [...plan.reservedFor] } : {}) } };
    }
    expect(steps, `seed ${seed}: it does not settle`).toBeLessThan(5);
    expect((claim.status?.reservedFor ?? []).map(({ uid }) => uid).sort(), `seed ${seed}`).toEqual(running);
    if (running.length === 0 && (pods.length > 0 || unknown.length > 0)) expect(claim.status?.allocation, `seed ${seed}: devices of nobody`).toBeUndefined();
  }
});
