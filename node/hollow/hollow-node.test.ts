import { expect, test } from "vitest";
import type { Pod } from "../../core/api/gen/core.v1.ts";
import { silentEvents } from "../../core/client/events.ts";
import { informerFactory } from "../../core/client/informer-factory.ts";
import { LEASES, NODES, PODS } from "../../core/client/resources.ts";
import { systemClock } from "../../core/lifecycle/clock.ts";
import { systemRandom } from "../../core/lifecycle/random.ts";
import { runAll } from "../../core/lifecycle/run-all.ts";
import { silentLog } from "../../core/observe/log.ts";
import { eventually, fakeApi } from "../../test/fake-api.ts";
import { memoryRuntime } from "../cri/memory-runtime.ts";
import { PodAddresses } from "./addresses.ts";
import { hollowNode } from "./hollow-node.ts";
import { planHollowPod } from "./plan.ts";

const NOW = Date.parse("2026-07-01T12:00:00Z");

function pod(name: string, { spec = {}, ...rest }: { metadata?: object; spec?: object; status?: object } = {}): Pod {
  const { metadata, ...others } = rest as { metadata?: object };
  return { apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "default", uid: name, resourceVersion: "1", creationTimestamp: "2026-07-01T00:00:00Z", ...metadata }, spec: { nodeName: "hollow-0", containers: [{ name: "app", image: "x:1" }], ...spec }, ...others } as Pod;
}

const FACTS = { nodeIps: ["198.18.0.1"], podIps: ["10.42.0.2"], nowMs: NOW };

test("a pod is as its kind wants it to be", () => {
  const of = (one: Pod, facts: object = {}): unknown => {
    const plan = planHollowPod(one, { ...FACTS, ...facts });
    if (plan.do !== "report") return plan.do;
    const { phase, podIP, conditions = [] } = plan.status;
    return [phase, podIP, conditions.find(({ type }) => type === "Ready")?.status, plan.againMs ?? "for good"].join(" ");
  };
  const job = pod("job", { spec: { restartPolicy: "Never" } });
  for (const [what, one, facts, expected] of [
    ["a new one", pod("a"), {}, "Running 10.42.0.2 True for good"],
    ["on the host's network", pod("a", { spec: { hostNetwork: true } }), {}, "Running 198.18.0.1 True for good"],
    ["with a gate nobody has opened", pod("a", { spec: { readinessGates: [{ conditionType: "x/y" }] } }), {}, "Running 10.42.0.2 False for good"],
    ["with an open gate", pod("a", { spec: { readinessGates: [{ conditionType: "x/y" }] }, status: { conditions: [{ type: "x/y", status: "True" }] } }), {}, "Running 10.42.0.2 True for good"],
    ["that ends some day", job, {}, "Running 10.42.0.2 True 1000"],
    ["that has run", { ...job, status: { startTime: "2026-07-01T11:59:59Z" } }, {}, "Succeeded 10.42.0.2 False for good"],
    ["that has ended", pod("a", { status: { phase: "Succeeded" } }), {}, "nothing"],
    ["being deleted", pod("a", { metadata: { deletionTimestamp: "2026-07-01T11:00:00Z" } }), {}, "delete"],
    ["before the node has a range", pod("a"), { podIps: undefined }, "nothing"],
  ] as const) expect(of(one, facts), what).toBe(expected);
});

test("what others have said of a pod stays, and a condition that has not changed keeps its time", () => {
  const before = pod("a", { status: { qosClass: "BestEffort", startTime: "2026-07-01T10:00:00Z", conditions: [{ type: "PodScheduled", status: "True", lastTransitionTime: "2026-07-01T09:00:00Z" }, { type: "x/y", status: "Unknown" }] } });
  const plan = planHollowPod(before, FACTS);
  expect(plan).toMatchObject({ do: "report", status: { qosClass: "BestEffort", startTime: "2026-07-01T10:00:00Z", containerStatuses: [{ name: "app", ready: true, state: { running: { startedAt: "2026-07-01T10:00:00Z" } } }] } });
  const { conditions = [] } = (plan as Extract<typeof plan, { do: "report" }>).status;
  expect(conditions.find(({ type }) => type === "PodScheduled")?.lastTransitionTime).toBe("2026-07-01T09:00:00Z");
  expect(conditions.find(({ type }) => type === "x/y")?.status).toBe("Unknown");
});

test("a node goes by what it said last, not by a copy that may be late", () => {
  const late = pod("a"); // it does not show the start that has been reported
  const first = planHollowPod(late, FACTS) as { readonly status: Pod["status"] };
  const again = planHollowPod(late, { ...FACTS, said: first.status, nowMs: NOW + 60_000 }) as { readonly status: Pod["status"] };
  expect(again.status).toEqual(first.status);
  const job = pod("job", { spec: { restartPolicy: "Never" } });
  const ran = planHollowPod(job, { ...FACTS, said: first.status, nowMs: NOW + 1_000 }) as { readonly status: Pod["status"] };
  expect(ran.status?.phase).toBe("Succeeded");
  expect(planHollowPod(job, { ...FACTS, said: first.status, nowMs: NOW - 86_400_000 })).toMatchObject({ status: { phase: "Succeeded" } }); // its clock was ahead
  expect(planHollowPod(job, { ...FACTS, said: ran.status, nowMs: NOW + 9_000 })).toEqual({ do: "report", status: ran.status });
});

test("no two pods have one address, a pod keeps its own, and what is released comes round again", () => {
  const addresses = new PodAddresses();
  expect(addresses.of("old", ["10.42.3.0/29"], ["10.42.3.4"])).toEqual(["10.42.3.4"]);
  const given = ["a", "b", "c", "d"].map((uid) => addresses.of(uid, ["10.42.3.0/29"], [])![0]);
  expect(given).toEqual(["10.42.3.2", "10.42.3.3", "10.42.3.5", "10.42.3.6"]); // .1 is the gateway's
  expect(addresses.of("a", ["10.42.3.0/29"], [])).toEqual(["10.42.3.2"]);
  expect(addresses.of("one too many", ["10.42.3.0/29"], [])).toBeUndefined();
  addresses.release("b");
  expect(addresses.of("e", ["10.42.3.0/29"], [])).toEqual(["10.42.3.3"]);
  expect(addresses.of("elsewhere", ["10.42.4.0/24", "fd00:4::/64"], ["10.9.9.9"])).toHaveLength(2);
  expect(addresses.of("no range", [], [])).toBeUndefined();
});

test("a hollow node registers, becomes Ready, keeps a lease, runs pods and lets them go", async () => {
  const api = fakeApi();
  const { client } = api;
  const stop = new AbortController(), { signal } = stop;
  const informers = informerFactory({ client, clock: systemClock, random: systemRandom, log: silentLog });
  const parts = hollowNode({
    name: "hollow-7", index: 7, version: "v1.36.0", labels: { team: "a" }, annotations: {}, taints: [], client, pods: informers.of(PODS), nodes: informers.of(NODES),
    cri: memoryRuntime({ nowMs: systemClock.nowMs }), events: silentEvents, clock: systemClock, log: silentLog,
  });
  const running = runAll([informers, ...parts], signal);
  await eventually(() => api.all(NODES).some(({ status }) => status?.conditions?.some(({ type, status: value }) => type === "Ready" && value === "True")), Boolean);
  const node = api.all(NODES)[0]!;
  expect(node.metadata.labels).toMatchObject({ "kubernetes.io/hostname": "hollow-7", team: "a", "coracle.local/simulated": "true" });
  expect(node.status?.addresses?.[0]).toEqual({ type: "InternalIP", address: "198.18.0.8" });
  await eventually(() => api.all(LEASES).some(({ metadata }) => metadata.name === "hollow-7"), Boolean);

  await client.resource(PODS).create(pod("web", { spec: { nodeName: "hollow-7" } }), { signal });
  await client.resource(PODS).create(pod("other", { spec: { nodeName: "elsewhere" } }), { signal });
  await client.resource(NODES).patch(node, "application/strategic-merge-patch+json", { spec: { podCIDR: "10.42.9.0/24", podCIDRs: ["10.42.9.0/24"] } }, { signal });
  const find = (name: string): Pod | undefined => api.all(PODS).find(({ metadata }) => metadata.name === name);
  await eventually(() => find("web")?.status?.phase === "Running", Boolean);
  expect(find("web")?.status?.podIP).toBe("10.42.9.2");
  await client.resource(PODS).delete(find("web")!, {}, { signal });
  await eventually(() => find("web") === undefined, Boolean);
  expect(find("other")?.status?.phase).toBeUndefined();
  stop.abort();
  await running;
});
