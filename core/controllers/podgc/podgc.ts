/**
 * Removes pods that nobody else will: of nodes that are gone, on nodes out of service, deleted before they had a node, and finished ones
 * beyond the limit.
 *
 * Source: kubernetes v1.36 pkg/controller/podgc
 */
import type { Node, Pod, PodCondition } from "../../api/gen/core.v1.ts";
import { conditionPatch } from "../../api/meta/condition-patch.ts";
import { isConditionTrue } from "../../api/meta/conditions.ts";
import { isDeleting, type ObjectKey, objectKey } from "../../api/meta/object-meta.ts";
import { isNotFound } from "../../api/meta/status-error.ts";
import { NODES, PODS } from "../../client/resources.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { settleEach } from "../../lifecycle/settle-all.ts";
import type { Log } from "../../observe/log.ts";
import type { Controller, Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { isTerminal } from "../pod-state.ts";
import { TAINT } from "../taints.ts";

const PERIOD_MS = 20_000;
/** A node may be registered again, its pods still running. */
const QUARANTINE_MS = 40_000;
/** --terminated-pod-gc-threshold */
export const TERMINATED_MAX = 12_500;
/** A node that is gone leaves a hundred pods behind, and a thousand may go together. */
const REMOVED_AT_ONCE = 64;

/** Why a pod goes, and under which reason it is counted. */
const REASONS = { terminated: "terminated", "node is gone": "orphaned", "deleted before it was scheduled": "unscheduled", "node is out of service": "out-of-service" } as const;
type Why = keyof typeof REASONS;

/** Finished pods beyond `max`: evicted ones first, then the oldest. */
export function terminatedBeyond(pods: readonly Readonly<Pod>[], max: number): Readonly<Pod>[] {
  const finished = pods.filter((pod) => pod.status?.phase !== undefined && isTerminal(pod));
  const evicted = ({ status }: Readonly<Pod>): boolean => status?.phase === "Failed" && status.reason === "Evicted";
  const order = (pod: Readonly<Pod>): string => `${evicted(pod) ? 0 : 1} ${pod.metadata.creationTimestamp} ${pod.metadata.name}`;
  return finished.toSorted((a, b) => (order(a) < order(b) ? -1 : 1)).slice(0, Math.max(0, finished.length - max));
}

/** Its kubelet is out of service by the word of the administrator: pods being deleted there will never report it. */
function isOutOfService(node: Readonly<Node> | undefined): boolean {
  return node !== undefined && !isConditionTrue(node.status?.conditions, "Ready") && (node.spec?.taints ?? []).some(({ key }) => key === TAINT.outOfService);
}

export function podGcController({ client, informers, clock, metrics, terminatedMax = TERMINATED_MAX }: Pick<ControllerDeps, "client" | "informers" | "clock" | "metrics"> & { readonly terminatedMax?: number | undefined }): Controller {
  const pods = informers.of(PODS);
  const nodes = informers.of(NODES);
  const podClient = client.resource(PODS);
  const nodeClient = client.resource(NODES);
  const removals = metrics?.counter("pod_gc_collector_force_delete_pods_total", "[ALPHA] Number of pods that are being forcefully deleted since the Pod GC Controller started.");
  const errors = metrics?.counter("pod_gc_collector_force_delete_pod_errors_total", "[ALPHA] Number of errors encountered when forcefully deleting the pods since the Pod GC Controller started.");
  const missing = new Map<string, number>(); // nodes that pods name and nobody has: since when, by uptime

  return {
    name: "pod_gc",
    workers: 1,
    watches: [],
    reads: [pods, nodes],
    starts: ["all" as ObjectKey],
    async reconcile(_key, { signal, log }): Promise<Next> {
      const all = [...pods.list()];
      const doomed = new Map<string, { readonly pod: Readonly<Pod>; readonly why: Why; readonly condition?: PodCondition }>();
      const add = (pod: Readonly<Pod>, why: Why, condition?: PodCondition): void => void doomed.set(pod.metadata.uid, { pod, why, ...(condition === undefined ? {} : { condition }) });
      if (terminatedMax > 0) for (const pod of terminatedBeyond(all, terminatedMax)) add(pod, "terminated");
      const gone = await goneNodes(all, signal, log);
      const orphaned = { type: "DisruptionTarget", status: "True", reason: "DeletionByPodGC", message: "PodGC: node no longer exists", lastTransitionTime: timestamp(clock.nowMs()) };
      for (const pod of all) {
        const node = pod.spec.nodeName ?? "";
        if (gone.has(node)) add(pod, "node is gone", orphaned);
        else if (isDeleting(pod) && node === "") add(pod, "deleted before it was scheduled");
        else if (isDeleting(pod) && isOutOfService(nodes.get(objectKey("", node)))) add(pod, "node is out of service");
      }
      await settleEach(doomed.values(), REMOVED_AT_ONCE, async ({ pod, why, condition }) => {
        log.info("removing pod", { pod: `${pod.metadata.namespace}/${pod.metadata.name}`, why });
        const labels = { namespace: pod.metadata.namespace ?? "", reason: REASONS[why] };
        removals?.inc(labels);
        await remove(pod, condition, signal).catch((error: unknown) => { errors?.inc(labels); throw error; });
      }).catch((error: unknown) => { if (!signal.aborted) log.warn("pods could not be removed, will try again", { error }); });
      return { againInMs: PERIOD_MS };
    },
  };

  /** Nodes that have been missing for long enough and do not exist at the source either. */
  async function goneNodes(all: readonly Readonly<Pod>[], signal: AbortSignal, log: Log): Promise<ReadonlySet<string>> {
    const named = new Set(all.flatMap(({ spec }) => (spec.nodeName && nodes.get(objectKey("", spec.nodeName)) === undefined ? [spec.nodeName] : [])));
    const nowMs = clock.uptimeMs();
    for (const name of [...missing.keys()]) if (!named.has(name)) missing.delete(name);
    for (const name of named) if (!missing.has(name)) missing.set(name, nowMs);
    const gone = new Set<string>();
    for (const [name, sinceMs] of missing) {
      if (nowMs - sinceMs < QUARANTINE_MS) continue;
      await nodeClient.get({ metadata: { name } }, { signal }).then(() => missing.delete(name), (error: unknown) => {
        if (signal.aborted) throw error;
        if (isNotFound(error)) gone.add(name);
        else log.warn("a node that pods name could not be asked for, will try again", { node: name, error }); // the other pods do not wait for it
      });
    }
    return gone;
  }

  async function remove(pod: Readonly<Pod>, condition: PodCondition | undefined, signal: AbortSignal): Promise<void> {
    try {
      if (!isTerminal(pod)) {
        const { uid, generation: observedGeneration } = pod.metadata;
        const patch = { metadata: { uid }, status: { phase: "Failed", observedGeneration, ...(condition === undefined ? {} : conditionPatch(pod.status?.conditions, { ...condition, observedGeneration })) } };
        await podClient.patch(pod, "application/strategic-merge-patch+json", patch, { signal, subresource: "status" });
      }
      await podClient.delete(pod, { gracePeriodSeconds: 0, preconditions: { uid: pod.metadata.uid } }, { signal });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}
