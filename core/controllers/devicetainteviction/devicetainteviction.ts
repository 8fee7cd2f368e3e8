/**
 * Evicts pods from devices with NoExecute taints: at once, or after the `tolerationSeconds` of those who tolerate it for a while.
 *
 *   ResourceSlice or DeviceTaintRule: device tainted ─▶ claims that have it ─▶ pods they are reserved for ─▶ told why, deleted
 *
 * API:    https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/#device-taints-and-tolerations
 * Source: kubernetes v1.36 pkg/controller/devicetainteviction
 */
import type { Pod } from "../../api/gen/core.v1.ts";
import type { DeviceTaintRule } from "../../api/gen/resource.v1alpha3.ts";
import type { Device, DeviceRequestAllocationResult, DeviceTaint, DeviceToleration, ResourceClaim, ResourceSlice } from "../../api/gen/resource.v1.ts";
import { conditionPatch } from "../../api/meta/condition-patch.ts";
import { asDouble } from "../../api/meta/go-integer.ts";
import { isDeleting, keyOf, namespaceOf, type ObjectKey, objectKey } from "../../api/meta/object-meta.ts";
import { claimStatusesOf } from "../../api/meta/pod-references.ts";
import { isNotFound } from "../../api/meta/status-error.ts";
import type { Index } from "../../client/informer.ts";
import { DEVICE_TAINT_RULES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES } from "../../client/resources.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { type Controller, mapped, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { isTerminal } from "../pod-state.ts";
import { isOf, type Pending, resultsOf, ruleStatusController } from "./rule-status.ts";

const NAME = "device-taint-eviction";
/** In seconds. */
const LATE = [0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240];

const poolKey = (driver: string, pool: string): string => `${driver}/${pool}`;
const SLICES_BY_POOL: Index<ResourceSlice> = { name: "pool", valuesOf: ({ spec }) => [poolKey(spec.driver, spec.pool.name)] };
const CLAIMS_BY_POOL: Index<ResourceClaim> = { name: "pool", valuesOf: (claim) => new Set(resultsOf(claim).map(({ driver, pool }) => poolKey(driver, pool))) };

/** When a pod with this device has to go; undefined: never. Only what names the effect tolerates it here, though for the scheduler no effect means all of them. */
export function evictionMs(taints: readonly DeviceTaint[], tolerations: readonly DeviceToleration[]): number | undefined {
  let earliest: number | undefined;
  for (const taint of taints) {
    if (taint.effect !== "NoExecute") continue;
    const sinceMs = taint.timeAdded ? Date.parse(taint.timeAdded) : 0;
    const tolerating = tolerations.filter((one) => tolerates(one, taint));
    const seconds = tolerating.flatMap(({ tolerationSeconds }) => (tolerationSeconds === undefined ? [] : [Math.max(0, asDouble(tolerationSeconds))]));
    if (seconds.length < tolerating.length) continue; // for ever
    const atMs = tolerating.length === 0 ? sinceMs : sinceMs + Math.min(...seconds) * 1000;
    earliest = Math.min(earliest ?? Number.POSITIVE_INFINITY, atMs);
  }
  return earliest;
}

function tolerates({ key = "", operator = "Equal", value = "", effect }: DeviceToleration, taint: DeviceTaint): boolean {
  if (effect !== taint.effect || (key !== "" && key !== taint.key)) return false;
  return operator === "Exists" || (operator === "Equal" && value === (taint.value ?? ""));
}

export function deviceTaintEvictionControllers({ client, informers, events, clock, metrics, gates, statusPeriodMs }: Pick<ControllerDeps, "client" | "informers" | "events" | "clock" | "metrics" | "gates"> & { readonly statusPeriodMs?: number }): Controller[] {
  const rules = gates?.has("DRADeviceTaintRules") ? informers.of(DEVICE_TAINT_RULES) : undefined;
  const pods = informers.of(PODS);
  const claims = informers.of(RESOURCE_CLAIMS);
  const slices = informers.of(RESOURCE_SLICES);
  const podClient = client.resource(PODS);
  const recorder = events.from({ component: "device-taint-eviction-controller" });
  const deletions = metrics?.counter("device_taint_eviction_controller_pod_deletions_total", "[ALPHA] Total number of Pods deleted by DeviceTaintEvictionController since its start.").with({});
  const lateness = metrics?.histogram(
    "device_taint_eviction_controller_pod_deletion_duration_seconds",
    "[ALPHA] Latency, in seconds, between the time when a device taint effect has been activated and a Pod's deletion via DeviceTaintEvictionController.", LATE,
  ).with({});
  const waiting = new Set<ObjectKey>(); // pods that are to go later

  const usersOf = (claim: Readonly<ResourceClaim>): ObjectKey[] => (claim.status?.reservedFor ?? []).filter(({ apiGroup = "", resource }) => apiGroup === "" && resource === "pods").map(({ name }) => objectKey(namespaceOf(claim), name));

  const status = rules && ruleStatusController({ client, informers, clock, periodMs: statusPeriodMs, pendingBy });
  const eviction: Controller = {
    name: NAME,
    workers: 8,
    watches: [
      mapped(slices, ({ object, old }) => {
        const pool = poolKey(object.spec.driver, object.spec.pool.name);
        const related = [object, ...(old ? [old] : []), ...slices.by(SLICES_BY_POOL, pool)]; // a newer generation hides the taints of an older one, and shows them again when it goes
        return related.some(isTainted) ? claims.by(CLAIMS_BY_POOL, pool).flatMap(usersOf) : [];
      }),
      ...(rules ? [mapped(rules, ({ object, old, deleted }) => {
        if (old && !deleted && Bun.deepEquals(old.spec, object.spec)) return []; // its status alone
        const either = [object, ...(old ? [old] : [])];
        return [...claims.list()].filter((claim) => resultsOf(claim).some((result) => either.some((rule) => isOf(rule, result)))).flatMap(usersOf);
      })] : []),
      mapped(claims, ({ object, old }) => [object, ...(old ? [old] : [])].flatMap(usersOf)),
      mapped(pods, ({ object, old }) => {
        const of = (pod: Readonly<Pod>): string => [pod.spec.nodeName, ...namesOf(pod)].join();
        return !object.spec.nodeName || namesOf(object).length === 0 || (old !== undefined && of(old) === of(object)) ? [] : [keyOf(object)];
      }),
    ],
    async reconcile(key, { signal, log }): Promise<Next> {
      const pod = pods.get(key);
      if (!pod || isDeleting(pod) || isTerminal(pod)) return void waiting.delete(key);
      const due = pod.spec.nodeName ? evictionOf(pod, evictingRules()) : undefined;
      if (due === undefined) {
        if (waiting.delete(key)) recorder.event(pod, "Normal", "DeviceTaintManagerEviction", "Cancelling deletion");
        return;
      }
      status?.expect(due.rules);
      const { atMs } = due;
      const leftMs = atMs - clock.nowMs();
      if (leftMs > 0) {
        waiting.add(key);
        return { againInMs: leftMs };
      }
      log.info("evicting pod from tainted device", { pod: key });
      recorder.event(pod, "Normal", "DeviceTaintManagerEviction", "Marking for deletion");
      if (await evict(pod, signal)) {
        deletions?.inc();
        lateness?.observe((clock.nowMs() - atMs) / 1000);
        status?.evicted(due.rules);
      }
      waiting.delete(key);
    },
  };
  return [eviction, ...(status ? [status.controller] : [])];

  function evictingRules(): Readonly<DeviceTaintRule>[] { return rules ? [...rules.list()].filter(({ spec }) => spec.taint?.effect === "NoExecute") : []; }

  /** Pods that have to go, now or later, because of `rule`; as if it said so, if it says something else. */
  function pendingBy(rule: Readonly<DeviceTaintRule>): Pending {
    const ruleNow = { ...rule, spec: { ...rule.spec, taint: { key: "", ...rule.spec.taint, effect: "NoExecute" as const } } };
    const mine = [...claims.list()].filter((claim) => resultsOf(claim).some((result) => isOf(ruleNow, result)));
    const all = [...new Set(mine.flatMap(usersOf))].flatMap((key) => pods.get(key) ?? []);
    const pending = all.filter((pod) => !isDeleting(pod) && pod.spec.nodeName && evictionOf(pod, [ruleNow])?.rules.length === 1);
    return { pods: pending.length, namespaces: new Set(pending.map(namespaceOf)).size };
  }

  /** When a pod has to go, and which of the rules are among the reasons. */
  function evictionOf(pod: Readonly<Pod>, evicting: readonly Readonly<DeviceTaintRule>[]): { readonly atMs: number; readonly rules: readonly Readonly<DeviceTaintRule>[] } | undefined {
    const reasons = new Set<Readonly<DeviceTaintRule>>();
    const times = namesOf(pod).flatMap((name) => {
      const claim = claims.get(objectKey(namespaceOf(pod), name));
      if (!claim?.status?.reservedFor?.some(({ uid }) => uid === pod.metadata.uid)) return [];
      return resultsOf(claim).flatMap((result) => {
        const own = evictionMs(deviceOf(result)?.taints ?? [], result.tolerations ?? []);
        const byRules = evicting.filter((rule) => isOf(rule, result)).flatMap((rule) => {
          const atMs = evictionMs([rule.spec.taint!], result.tolerations ?? []);
          if (atMs !== undefined) reasons.add(rule);
          return atMs ?? [];
        });
        return own === undefined ? byRules : [own, ...byRules];
      });
    });
    return times.length > 0 ? { atMs: Math.min(...times), rules: [...reasons] } : undefined;
  }

  /** As the newest generation of its pool has it. */
  function deviceOf({ driver, pool, device }: DeviceRequestAllocationResult): Device | undefined {
    const all = slices.by(SLICES_BY_POOL, poolKey(driver, pool));
    const newest = all.reduce((most, { spec }) => (spec.pool.generation > most ? spec.pool.generation : most), 0); // a driver may count in nanoseconds, which no double holds
    return all.filter(({ spec }) => spec.pool.generation === newest).flatMap(({ spec }) => spec.devices ?? []).find(({ name }) => name === device);
  }

  /** False: it was gone. */
  async function evict(pod: Readonly<Pod>, signal: AbortSignal): Promise<boolean> {
    const condition = { type: "DisruptionTarget", status: "True", reason: "DeletionByDeviceTaintManager", message: "Device Taint manager: deleting due to NoExecute taint", lastTransitionTime: timestamp(clock.nowMs()) };
    try {
      await podClient.patch(pod, "application/strategic-merge-patch+json", { metadata: { uid: pod.metadata.uid }, status: conditionPatch(pod.status?.conditions, condition) }, { signal, subresource: "status" });
      await podClient.delete(pod, { preconditions: { uid: pod.metadata.uid } }, { signal });
      return true;
    } catch (error) {
      if (!isNotFound(error)) throw error; // gone is what was wanted
      return false;
    }
  }
}

function isTainted({ spec }: Readonly<ResourceSlice>): boolean {
  return (spec.devices ?? []).some(({ taints = [] }) => taints.some(({ effect }) => effect === "NoExecute"));
}

function namesOf(pod: Readonly<Pod>): string[] {
  const extended = pod.status?.extendedResourceClaimStatus?.resourceClaimName;
  const made = claimStatusesOf(pod);
  return [...(pod.spec.resourceClaims ?? []).flatMap(({ name, resourceClaimName }) => resourceClaimName ?? made.get(name)?.resourceClaimName ?? []), ...(extended ? [extended] : [])];
}
