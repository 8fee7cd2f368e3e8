import { expect, test } from "vitest";
import type { NetworkPolicy } from "../../core/api/gen/networking.v1.ts";
import { seededRandom } from "../../test/simulator/seeded.ts";
import { atOnce } from "../../core/lifecycle/breather.ts";
import { planPolicies, type PolicyPod, policyPlanner, type PolicyWorld } from "./plan.ts";
import { differenceText, type PolicyRuleset } from "./ruleset.ts";

const shape = ({ sets, chains }: PolicyRuleset) => ({ sets: new Map([...sets].map(([name, { elements, ...rest }]) => [name, { ...rest, elements: [...elements] }])), chains });

test("whatever changes, a planner that remembers plans what one without memory plans, and what did not change is the same object", () => {
  const random = seededRandom(7);
  const labels = () => Object.fromEntries(["app", "tier"].flatMap((key) => (random.integer(0, 3) === 0 ? [] : [[key, String(random.integer(0, 3))]])));
  const selector = () => (random.integer(0, 4) === 0 ? {} : { matchLabels: labels() });
  const pod = (): PolicyPod => ({
    namespace: `n${random.integer(0, 3)}`, labels: labels(), ips: [`10.0.${random.integer(0, 3)}.${random.integer(0, 250)}`, ...(random.integer(0, 4) === 0 ? [`fd00::${random.integer(1, 99)}`] : [])],
    ports: random.integer(0, 2) === 0 ? [] : [{ name: "web", protocol: random.integer(0, 4) === 0 ? "UDP" : "TCP", port: 8000 + random.integer(0, 4) }], local: random.integer(0, 3) === 0,
  });
  const peer = () => ({ ...(random.integer(0, 2) === 0 ? {} : { podSelector: selector() }), ...(random.integer(0, 2) === 0 ? { namespaceSelector: selector() } : {}) });
  const many = <T>(most: number, make: () => T): T[] => Array.from({ length: random.integer(0, most + 1) }, make);
  const ports = () => many(2, () => (random.integer(0, 2) === 0 ? { port: "web" } : { port: 80 }));
  const policy = (): NetworkPolicy => ({
    metadata: { name: `p${random.integer(0, 1e9)}`, namespace: `n${random.integer(0, 3)}` } as NetworkPolicy["metadata"],
    spec: { podSelector: selector(), policyTypes: ["Ingress", "Egress"], ingress: many(2, () => ({ from: many(2, peer), ports: ports() })), egress: many(2, () => ({ to: many(2, peer), ports: ports() })) },
  }) as NetworkPolicy;
  let world: PolicyWorld = { pods: Array.from({ length: 40 }, pod), policies: Array.from({ length: 8 }, policy), namespaces: new Map(["n0", "n1", "n2"].map((name) => [name, labels()])) };
  const changed = <T>(list: readonly T[], make: () => T): T[] => {
    const at = random.integer(0, list.length + 1);
    return random.integer(0, 3) === 0 ? list.filter((_, i) => i !== at) : [...list.slice(0, at), make(), ...list.slice(at + random.integer(0, 2))];
  };
  const plan = policyPlanner();
  let before = atOnce(plan(world));
  for (let step = 0; step < 300; step++) {
    const what = random.integer(0, 10);
    if (what < 7) world = { ...world, pods: changed(world.pods, pod) };
    else if (what < 9) world = { ...world, policies: changed(world.policies, policy) };
    else world = { ...world, namespaces: new Map([...world.namespaces].map(([name, old]) => [name, random.integer(0, 2) === 0 ? labels() : old])) };
    const after = atOnce(plan(world)), anew = planPolicies(world);
    expect(shape(after)).toEqual(shape(anew));
    expect(atOnce(differenceText(before, after))).toEqual(atOnce(differenceText({ ...before, sets: new Map([...before.sets].map(([name, set]) => [name, { ...set }])) }, anew)));
    before = after;
  }
  const again = atOnce(plan(world));
  const peers = [...again.sets].filter(([name]) => name.includes("/"));
  expect(peers.length).toBeGreaterThan(0);
  for (const [name, set] of peers) expect(set).toBe(before.sets.get(name));
});
