/**
 * What an eviction asks of the pod's disruption budget.
 *
 * Source: kubernetes v1.36 pkg/registry/core/pod/storage/eviction.go checkAndDecrement
 */
import type { Pod } from "../../api/gen/core.v1.ts";
import type { PodDisruptionBudget } from "../../api/gen/policy.v1.ts";
import { labelSelector } from "../../api/meta/label-selector.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { forbidden, statusError, type StatusError, tooManyRequests } from "../../api/meta/status-error.ts";
import { updateManagedFields } from "../../api/patch/apply/update.ts";
import { builtInSchemas } from "../../api/patch/facts-schema.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import type { WriteOptions } from "../../registry/generic/stored-resource.ts";
import type { Scope } from "../scope.ts";

/** Evictions a budget remembers that its controller has not seen yet. */
const DISRUPTED_PODS_MAX = 2000;
const CAUSE = "DisruptionBudget";
const VIOLATION = "Cannot evict pod as it would violate the pod's disruption budget.";
const RETRY_SECONDS = 10;
/** Who is told to have spent a disruption: upstream's server asks itself, whoever evicts. */
const MANAGER = "kube-apiserver";

/** The budget that covers the pod, if there is one. Throws when there are several. */
export function budgetsOf({ server }: Scope, pod: Readonly<Pod>): readonly Readonly<PodDisruptionBudget>[] {
  const store = server.registry.storeOf("policy", "poddisruptionbudgets")!;
  const found = [...store.select({ namespace: pod.metadata.namespace ?? "" })].map(({ object }) => object as Readonly<PodDisruptionBudget>).filter((budget) => covers(budget, pod));
  if (found.length > 1)
    throw statusError({ code: 500, reason: "", message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support." });
  return found;
}

function covers({ spec }: Readonly<PodDisruptionBudget>, pod: Readonly<Pod>): boolean {
  try {
    return labelSelector(spec?.selector).matches(pod.metadata.labels ?? {});
  } catch {
    return false; // a selector that cannot be read covers nothing
  }
}

/** Whether a pod that is not ready may go without counting. */
export function sparesUnhealthy({ spec, status }: Readonly<PodDisruptionBudget>): boolean {
  if (spec?.unhealthyPodEvictionPolicy === "AlwaysAllow") return true;
  return (status?.desiredHealthy ?? 0) > 0 && (status?.currentHealthy ?? 0) >= (status?.desiredHealthy ?? 0);
}

/** Takes one disruption from the budget. Throws 429 when there is none. */
export async function spendDisruption({ server }: Scope, pod: Readonly<Pod>, budget: Readonly<PodDisruptionBudget>, write: WriteOptions): Promise<void> {
  const { namespace = "", name } = budget.metadata;
  const store = server.registry.storeOf("policy", "poddisruptionbudgets")!;
  await store.update(namespace, name, async (live) => {
    const next = structuredClone(live) as PodDisruptionBudget;
    next.metadata.resourceVersion = "";
    refuseUnlessAllowed(next);
    const status = next.status!;
    status.disruptionsAllowed--;
    status.disruptedPods = { ...status.disruptedPods, [pod.metadata.name]: timestamp(server.clock.nowMs()) };
    if (status.disruptionsAllowed === 0) notAllowedAnyMore(next, server.clock.nowMs());
    return owned(next as ApiObject, live, server.clock.nowMs());
  }, { ...write, subresource: { type: "part", prepare: () => undefined, generation: false } });
}

function owned(updated: ApiObject, live: Readonly<ApiObject> | undefined, nowMs: number): ApiObject {
  const schema = builtInSchemas.schemaOf({ group: "policy", version: "v1", kind: "PodDisruptionBudget" })!;
  return updateManagedFields<ApiObject>({ live, updated, manager: MANAGER, apiVersion: updated.apiVersion, subresource: "status", schema, nowMs });
}

function refuseUnlessAllowed({ metadata, status }: Readonly<PodDisruptionBudget>): void {
  const { name } = metadata;
  if ((status?.observedGeneration ?? 0) < (metadata.generation ?? 0)) throw beingProcessed(name);
  const allowed = status?.disruptionsAllowed ?? 0;
  const resource = { group: "policy", resource: "poddisruptionbudget" };
  if (allowed < 0) throw forbidden(resource, name, "pdb disruptions allowed is negative");
  if (Object.keys(status?.disruptedPods ?? {}).length > DISRUPTED_PODS_MAX) throw forbidden(resource, name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller");
  if (allowed === 0) throw tooManyRequests(VIOLATION, 0, [{ reason: CAUSE, message: whyNot(name, status) }]);
}

function whyNot(name: string, status: PodDisruptionBudget["status"]): string {
  const condition = status?.conditions?.find(({ type }) => type === "DisruptionAllowed");
  const told = condition?.status === "False" && condition.message ? condition : undefined;
  const { currentHealthy = 0, desiredHealthy = 0 } = status ?? {};
  if (told?.reason === "SyncFailed") return `The disruption budget ${name} does not allow evicting pods currently because it failed sync: ${told.message}`;
  if (currentHealthy <= desiredHealthy) return `The disruption budget ${name} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`;
  if (told) return `The disruption budget ${name} does not allow evicting pods currently (${told.reason}): ${told.message}`;
  return `The disruption budget ${name} does not allow evicting pods currently`;
}

export function beingProcessed(name: string): StatusError {
  return tooManyRequests(VIOLATION, RETRY_SECONDS, [{ reason: CAUSE, message: `The disruption budget ${name} is still being processed by the server.` }]);
}

/** As its controller would say it: the last disruption is spent. */
function notAllowedAnyMore({ metadata, status }: PodDisruptionBudget, nowMs: number): void {
  const conditions = status!.conditions ?? [];
  const before = conditions.find(({ type }) => type === "DisruptionAllowed");
  const condition = {
    type: "DisruptionAllowed", status: "False" as const, reason: "InsufficientPods", message: "", observedGeneration: metadata.generation ?? 0,
    lastTransitionTime: before?.status === "False" ? before.lastTransitionTime : timestamp(nowMs),
  };
  status!.conditions = before ? conditions.map((one) => (one === before ? condition : one)) : [...conditions, condition];
}
