import { expect, test } from "vitest";
import type { Pod } from "../api/gen/core.v1.ts";
import { candidate, first, node, pod, schedulingCluster, stored } from "../../test/scheduling-cluster.ts";
import { seededRandom } from "../../test/simulator/seeded.ts";
import { Batch, type FlushReason, signatureOf } from "./batch.ts";
import { schedulerSettings } from "./config/profiles.ts";
import { place } from "./place.ts";
import { DEFAULT_PROFILE, type Profile } from "./plugins.ts";

const CONFIGURATION = (args: string): string => `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: default-scheduler, pluginConfig: [{name: PodTopologySpread, args: {defaultingType: List, defaultConstraints: []}}${args}]}]`;
const BATCHING = schedulerSettings(CONFIGURATION("")).profiles[0]!;
const UNLABELLED = schedulerSettings(CONFIGURATION(", {name: InterPodAffinity, args: {ignorePreferredTermsOfExistingPods: true}}")).profiles[0]!;
const alone: Parameters<typeof pod>[1] = { container: { ports: [{ containerPort: 80, hostPort: 80 }] } };

/** Places pods one after the other; where they went, and how it came about. */
function run(pods: readonly Pod[], nodes: number, { batches = true, profile = BATCHING, msBetween = 1, seed = 1 }: { readonly batches?: boolean; readonly profile?: Profile; readonly msBetween?: number; readonly seed?: number } = {}) {
  const random = seededRandom(seed);
  const told: string[] = [];
  const batch = new Batch(profile, { batchAttempt: (result) => void told.push(result), batchFlushed: (reason: FlushReason) => void told.push(`flushed: ${reason}`) });
  const all = Array.from({ length: nodes }, (_, i) => node(`n${i}`, { cpu: "8" }));
  const used = all.map((one, i): [Pod, string] => [pod(`used-${i}`, { cpu: `${random.integer(1, 6000)}m` }), one.metadata.name]);
  const placed: [Pod, string][] = [...used];
  const went = pods.map((one, i) => {
    const cluster = schedulingCluster({ nodes: all, placed });
    const wanted = candidate(one);
    const nowMs = i * msBetween;
    const signature = batches ? signatureOf(wanted, cluster, profile) : undefined;
    const turn = { candidate: wanted, signature, cycle: i + 1, nowMs };
    const hint = batches ? batch.hint(turn, cluster) : undefined;
    const placement = hint ? { type: "node" as const, ...hint, feasible: 1, others: undefined } : place(wanted, cluster, profile, { random: first, start: { next: 0 }, ranks: signature !== undefined });
    const on = placement.type === "node" ? placement.node : undefined;
    if (batches) batch.decided(placement.type === "node" ? { ...placement, isPrepared: true } : { node: undefined, feasible: 0, isPrepared: true }, turn);
    if (on) placed.push([one, on]);
    return on;
  });
  return { went, told };
}

test("pods that are alike, one to a node, go where they would have gone anyhow, and only the first is thought through", () => {
  for (let seed = 1; seed <= 30; seed++) {
    const pods = Array.from({ length: 12 }, (_, i) => pod(`p${i}`, { cpu: "100m", labels: { app: "web" }, ...alone }));
    const { went, told } = run(pods, 10, { seed });
    expect(went, `seed ${seed}`).toEqual(run(pods, 10, { seed, batches: false }).went);
    expect(told.filter((one) => one === "hint_used").length, `seed ${seed}`).toBe(9);
    expect([new Set(went.slice(0, 10)).size, went.slice(10)], `seed ${seed}`).toEqual([10, [undefined, undefined]]);
  }
});

test.each<[what: string, pods: readonly Pod[], options: Parameters<typeof run>[2], told: string]>([
  ["the node could take another", [pod("a"), pod("b")], {}, "no_hint,flushed: node_not_full,no_hint"],
  ["another kind of pod", [pod("a", alone), pod("b", { ...alone, cpu: "1" })], {}, "no_hint,flushed: pod_incompatible,no_hint"],
  ["other labels", [pod("a", alone), pod("b", { ...alone, labels: { x: "y" } })], {}, "no_hint,flushed: pod_incompatible,no_hint"],
  ["other labels, where those of others' wishes are not weighed", [pod("a", alone), pod("b", { ...alone, labels: { x: "y" } })], { profile: UNLABELLED }, "no_hint,hint_used"],
  ["too late", [pod("a", alone), pod("b", alone)], { msBetween: 501 }, "no_hint,flushed: expired,no_hint"],
  ["one that fits nowhere came between", [pod("a", alone), pod("no", { nodeSelector: { x: "y" } }), pod("b", alone)], {}, "no_hint,flushed: pod_incompatible,no_hint,flushed: pod_skipped,no_hint"],
  ["pods are spread by default", [pod("a", alone), pod("b", alone)], { profile: DEFAULT_PROFILE }, "no_hint,flushed: pod_not_batchable,no_hint,flushed: pod_not_batchable"],
  ["a pod that spreads", [pod("a", { ...alone, topologySpreadConstraints: [{ maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "ScheduleAnyway" }] }), pod("b", alone)], {}, "no_hint,flushed: pod_not_batchable,no_hint"],
  ["a pod with company", [pod("a", { ...alone, affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: "x", labelSelector: {} }] } } }), pod("b", alone)], {}, "no_hint,flushed: pod_not_batchable,no_hint"],
])("%s", (_, pods, options, told) => expect(run(pods, 5, options).told.join()).toBe(told));

test("a pod that is nominated goes to its node, whichever would be the best", () => {
  const plain = run([pod("a", alone), pod("b", alone)], 5).went;
  const other = ["n0", "n1", "n2", "n3", "n4"].find((name) => !plain.includes(name))!;
  const { went, told } = run([pod("a", alone), pod("b", { ...alone, status: { nominatedNodeName: other } })], 5);
  expect([went, told.join()]).toEqual([[plain[0], other], "no_hint,hint_not_used,flushed: empty_list"]);
});

test("what differs from pod to pod and from node to node not is no difference; devices are", () => {
  const cluster = schedulingCluster({ objects: [stored("resource.k8s.io/v1", "DeviceClass", "gpu", { spec: { extendedResourceName: "example.com/gpu" } })] });
  const of = (one: Pod): string | undefined => signatureOf(candidate(one), cluster, BATCHING);
  const token = (name: string) => pod("p", { volumes: [{ name, projected: { sources: [{ serviceAccountToken: { path: "token" } }] } }, { name: "c", configMap: { name } }] });
  expect(of(token("kube-api-access-abcde"))).toBe(of(token("kube-api-access-fghij")));
  expect(of(pod("p", { volumes: [{ name: "d", persistentVolumeClaim: { claimName: "a" } }] }))).not.toBe(of(pod("p", { volumes: [{ name: "d", persistentVolumeClaim: { claimName: "b" } }] })));
  const tolerant = (seconds: bigint) => pod("p", { tolerations: [{ operator: "Exists", effect: "NoExecute", tolerationSeconds: seconds as unknown as number }] });
  expect(of(tolerant(2n ** 60n))).not.toBe(of(tolerant(2n ** 60n + 1n))); // no double tells them apart
  expect(of(pod("p", { resourceClaims: [{ name: "r", resourceClaimName: "c" }] }))).toBeUndefined();
  expect(of(pod("p", { container: { resources: { requests: { "example.com/gpu": "1" } } } }))).toBeUndefined();
});
