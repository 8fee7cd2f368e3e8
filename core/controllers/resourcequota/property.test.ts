/** Quotas counted anew: every object once, whatever the order, and two scopes that are each other's opposite share out all there is. */
import { expect, test } from "vitest";
import { seededRandom } from "../../../test/simulator/seeded.ts";
import { stored } from "../../../test/static-informer.ts";
import type { Pod, ResourceQuota, Service } from "../../api/gen/core.v1.ts";
import { formatGroupResource } from "../../api/meta/gvk.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { add, amountsOf, listOf, withoutZeros } from "../../api/quota/amounts.ts";
import { countUsage, isLess } from "./plan.ts";

const HARD = { pods: "9", "count/pods": "9", "requests.cpu": "9", "limits.memory": "9Gi", services: "9", "services.nodeports": "9", configmaps: "9", "count/deployments.apps": "9" };
/** What a quota of any pod scope may hold, and every pod has. */
const POD_HARD = { pods: "9" };

const quota = (hard: object, scopes: readonly string[] = [], used?: object) => stored<ResourceQuota>("v1", "ResourceQuota", "ns/q", { spec: { hard, scopes }, ...(used ? { status: { used } } : {}) } as never);

test("the whole is the sum of its parts, in any order, and of two opposite scopes", () => {
  for (let seed = 1; seed <= 100; seed++) {
    const random = seededRandom(seed);
    const at = `seed ${seed}`;
    const pods = Array.from({ length: random.integer(0, 8) }, (_, i) => stored<Pod>("v1", "Pod", `ns/p${i}`, {
      spec: {
        ...random.pick([{}, {}, { activeDeadlineSeconds: 5 }]),
        containers: Array.from({ length: random.integer(1, 2) }, (_, c) => ({ name: `c${c}`, image: "i", resources: random.pick([{}, { requests: { cpu: random.pick(["100m", "1", "1500m"]) } }, { requests: { cpu: "1" }, limits: { cpu: "1", memory: "64Mi" } }]) })),
      },
      status: { phase: random.pick(["Pending", "Running", "Running", "Succeeded", "Failed"]) },
    } as never));
    const services = Array.from({ length: random.integer(0, 4) }, (_, i) => stored<Service>("v1", "Service", `ns/s${i}`, { spec: { type: random.pick(["ClusterIP", "NodePort", "LoadBalancer"]), ports: [{ port: 80, nodePort: 30_080 }, { port: 443 }] } } as never));
    const things: Record<string, readonly ApiObject[]> = { pods, services, configmaps: [] };
    const used = (hard: object, { scopes = [] as readonly string[], of = (all: readonly ApiObject[]) => all, noted = undefined as object | undefined } = {}) =>
      countUsage(quota(hard, scopes, noted), { objects: (resource) => { const all = things[formatGroupResource(resource)]; return all && of(all); }, nowMs: 0 });

    const whole = used(HARD);
    expect(Object.keys(HARD), at).toEqual(expect.arrayContaining([...whole.keys()]));
    expect(listOf(used(HARD, { of: (all) => all.toReversed() })), at).toEqual(listOf(whole));
    const [some, others] = [0, 1].map((rest) => used(HARD, { of: (all) => all.filter((_, i) => i % 2 === rest) }));
    expect(listOf(add(some!, others!)), at).toEqual(listOf(whole));
    expect(isLess(whole, some!), at).toBe(false);
    expect(isLess(some!, whole), at).toBe(withoutZeros(others!).size > 0);
    for (const opposite of [["Terminating", "NotTerminating"], ["BestEffort", "NotBestEffort"]] as const) {
      const [one, other] = opposite.map((scope) => used(POD_HARD, { scopes: [scope] }));
      expect(listOf(add(one!, other!)), `${at} ${opposite}`).toEqual(listOf(used(POD_HARD)));
    }
    // what cannot be listed keeps what was noted of it; what can does not
    const noted = used(HARD, { noted: { pods: "77", "count/deployments.apps": "5", gone: "1" } });
    expect(listOf(noted), at).toEqual({ ...listOf(whole), ...listOf(amountsOf({ "count/deployments.apps": "5" })) });
  }
});
