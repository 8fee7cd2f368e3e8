/**
 * Evicts pods from nodes with NoExecute taints: at once those that do not tolerate them, after `tolerationSeconds` those that do for a while.
 *
 * API:    https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/#taint-based-evictions
 * Source: kubernetes v1.36 pkg/controller/tainteviction
 */
import type { Node, Pod, Taint } from "../../api/gen/core.v1.ts";
import { conditionPatch } from "../../api/meta/condition-patch.ts";
import { asDouble } from "../../api/meta/go-integer.ts";
import { keyOf, namespaceOf, type ObjectKey, objectKey } from "../../api/meta/object-meta.ts";
import { isNotFound } from "../../api/meta/status-error.ts";
import { NODES, PODS } from "../../client/resources.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { type Controller, mapped, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { PODS_BY_NODE } from "../nodelifecycle/node-health.ts";
import { tolerationsFor } from "../taints.ts";
import { sameToApi } from "../same.ts";
import { canonical } from "../template-hash.ts";

/** How long a pod may stay with these taints: 0, a while, or for ever. */
export function staysForMs({ spec }: Readonly<Pod>, taints: readonly Readonly<Taint>[]): number {
  const used = tolerationsFor(taints, spec.tolerations ?? []);
  if (used === undefined) return 0;
  return Math.min(Number.POSITIVE_INFINITY, ...used.flatMap(({ tolerationSeconds }) => (tolerationSeconds === undefined ? [] : [Math.max(0, asDouble(tolerationSeconds)) * 1000])));
}

/** In seconds: 5 ms to 4 minutes. */
const LATE = [0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240]; // tainteviction/metrics/metrics.go

export function taintEvictionController({ client, informers, events, clock, metrics }: Pick<ControllerDeps, "client" | "informers" | "events" | "clock" | "metrics">): Controller {
  const nodes = informers.of(NODES);
  const pods = informers.of(PODS);
  const podClient = client.resource(PODS);
  const recorder = events.from({ component: "taint-eviction-controller" });
  const deletions = metrics?.counter("taint_eviction_controller_pod_deletions_total", "[ALPHA] Total number of Pods deleted by TaintEvictionController since its start.").with({});
  const lateness = metrics?.histogram(
    "taint_eviction_controller_pod_deletion_duration_seconds",
    "[ALPHA] Latency, in seconds, between the time when a taint effect has been activated for the Pod and its deletion via TaintEvictionController.", LATE,
  ).with({});
  const due = new Map<ObjectKey, { readonly uid: string; readonly atMs: number }>(); // when pods that are to be evicted later have to go, by uptime

  const tell = (key: ObjectKey, what: string): void => {
    const [namespace, name] = key.split("/");
    recorder.event({ apiVersion: "v1", kind: "Pod", namespace, name }, "Normal", "TaintManagerEviction", `${what} Pod ${key}`);
  };
  const cancel = (key: ObjectKey): void => { if (due.delete(key)) tell(key, "Cancelling deletion of"); };
  const noExecute = (node: Readonly<Node> | undefined): readonly Readonly<Taint>[] => (node?.spec?.taints ?? []).filter(({ effect }) => effect === "NoExecute");

  /** Nearly always: it is on a node that drives nobody away, or gone, and nothing was to come. A taint that comes later asks for all pods of its node. */
  const isLeftAlone = ({ spec }: Readonly<Pod>, deleted: boolean): boolean => {
    const node = deleted || !spec.nodeName ? undefined : nodes.get(objectKey("", spec.nodeName));
    return deleted || (node !== undefined && noExecute(node).length === 0);
  };

  return {
    name: "noexec_taint_pod",
    workers: 8,
    watches: [
      mapped(pods, ({ object, old, deleted }) => {
        const same = old !== undefined && !deleted && old.spec.nodeName === object.spec.nodeName && sameToApi(old.spec.tolerations ?? [], object.spec.tolerations ?? []);
        return same || !object.spec.nodeName || (isLeftAlone(object, deleted) && !due.has(keyOf(object))) ? [] : [keyOf(object)];
      }),
      mapped(nodes, ({ object, old }) => (old !== undefined && canonical(noExecute(old)) === canonical(noExecute(object)) ? [] : pods.by(PODS_BY_NODE, object.metadata.name).map(keyOf))),
    ],

    async reconcile(key, { signal, log }): Promise<Next> {
      const pod = pods.get(key);
      if (!pod?.spec.nodeName) return cancel(key); // one that is on its way out is told, too, and counts as disrupted
      const node = nodes.get(objectKey("", pod.spec.nodeName));
      const taints = noExecute(node);
      const nowMs = clock.uptimeMs(), { uid } = pod.metadata;
      if (due.get(key)?.uid !== uid) cancel(key); // another had its name
      let atMs = due.get(key)?.atMs;
      if (node !== undefined) { // else it goes when it was said, unless it is collected before
        const staysMs = staysForMs(pod, taints);
        if (staysMs === Number.POSITIVE_INFINITY) return cancel(key);
        if (staysMs === 0) cancel(key); // what was to come later
        atMs = staysMs === 0 ? nowMs : atMs ?? nowMs + staysMs; // of what it tolerates for a while, what came first counts
      }
      if (atMs === undefined) return;
      if (nowMs < atMs) {
        due.set(key, { uid, atMs });
        return { againInMs: atMs - nowMs };
      }
      log.info("evicting pod from tainted node", { node: pod.spec.nodeName, taints: taints.map(({ key: taint }) => taint) });
      tell(key, "Marking for deletion");
      await evict(pod, signal);
      lateness?.observe((clock.uptimeMs() - atMs) / 1000);
      due.delete(key);
    },
  };

  async function evict(pod: Readonly<Pod>, signal: AbortSignal): Promise<void> {
    const condition = {
      type: "DisruptionTarget", observedGeneration: pod.metadata.generation, status: "True", reason: "DeletionByTaintManager",
      message: "Taint manager: deleting due to NoExecute taint", lastTransitionTime: timestamp(clock.nowMs()),
    };
    try {
      const told = pod.status?.conditions?.some(({ type, status, reason }) => type === condition.type && status === "True" && reason === condition.reason) ?? false;
      if (!told) {
        const patch = { metadata: { uid: pod.metadata.uid }, status: conditionPatch(pod.status?.conditions, condition) };
        await podClient.patch(pod, "application/strategic-merge-patch+json", patch, { signal, subresource: "status" });
      }
      await podClient.delete({ metadata: { name: pod.metadata.name, namespace: namespaceOf(pod) } }, { preconditions: { uid: pod.metadata.uid } }, { signal });
      deletions?.inc();
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}
