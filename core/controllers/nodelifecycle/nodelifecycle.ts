/**
 * Watches over nodes: who is silent becomes Unknown, who is not ready is tainted, and its pods are told to be not ready.
 *
 *   every 5 s   leases and statuses ─▶ health (node-health.ts) ─▶ Ready=Unknown, pods Ready=False ─▶ NoExecute taints, as fast as the zone's health allows (zones.ts)
 *   on change   conditions ─▶ NoSchedule taints; labels; a pod that lands on a node that is not ready
 *
 * When every node of the cluster is silent the fault is likely ours: then nothing is tainted, and what was is untainted.
 *
 * API:    https://kubernetes.io/docs/concepts/architecture/nodes/#node-controller
 * Source: kubernetes v1.36 pkg/controller/nodelifecycle
 */
import type { Node } from "../../api/gen/core.v1.ts";
import { keyOf, type ObjectKey, objectKey } from "../../api/meta/object-meta.ts";
import { NODE_LEASES } from "../../client/cluster-objects.ts";
import { LEASES, NODES, PODS } from "../../client/resources.ts";
import { settleEach } from "../../lifecycle/settle-all.ts";
import { type Controller, itself, mapped, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { NodeHealth } from "./node-health.ts";
import { NodeWriter } from "./node-writer.ts";
import { betaLabels, evictionFor, NODE_LIFECYCLE, type NodeLifecycleSettings, readyStatus, scheduleTaints, zoneOf } from "./plan.ts";
import { Zones } from "./zones.ts";

/** Of each the pods are marked at once: when a thousand nodes fall silent together, theirs must not all be. Source: node_lifecycle_controller.go nodeUpdateWorkerSize */
const EXAMINED_AT_ONCE = 8;
/** Source: controller_utils.go updateTaintBackoff */
const TAINT_TRIES_MAX = 5;
/** What somebody else wrote meanwhile is here by then. */
const CHANGED_MS = 50;

/** Source: kubernetes v1.36 pkg/controller/nodelifecycle/metrics.go */
const quadrupling = (first: number): number[] => Array.from({ length: 8 }, (_, i) => first * 4 ** i);
const ALL_SECONDS = quadrupling(0.01);
const ONE_SECONDS = quadrupling(0.001);

const ZONE_GAUGES: readonly (readonly [name: string, help: string, read: (counts: { readonly nodes: number; readonly ready: number }) => number])[] = [
  ["zone_health", "percentage of healthy nodes per zone", ({ nodes, ready }) => (100 * ready) / nodes],
  ["zone_size", "number of registered Nodes per zones", ({ nodes }) => nodes],
  ["unhealthy_nodes_in_zone", "number of not Ready Nodes per zones", ({ nodes, ready }) => nodes - ready],
];

interface Deps extends Pick<ControllerDeps, "client" | "informers" | "events" | "clock" | "metrics"> { readonly settings?: NodeLifecycleSettings | undefined }

export function nodeLifecycleControllers({ client, informers, events, clock, metrics, settings = NODE_LIFECYCLE }: Deps): Controller[] {
  const nodes = informers.of(NODES);
  const pods = informers.of(PODS);
  const leases = informers.of(LEASES, { namespace: NODE_LEASES });
  const recorder = events.from({ component: "node-controller" });
  const writer = new NodeWriter({ client, nodes, recorder, clock });
  const health = new NodeHealth({ pods, leases, writer, recorder, clock, settings });
  const zones = new Zones(settings);
  for (const [name, help, read] of ZONE_GAUGES) metrics?.gaugeFrom(`node_collector_${name}`, `[ALPHA] Gauge measuring ${help}.`, () => [...zones.counts()].map(({ zone, ...counts }) => [{ zone }, read(counts)] as const));
  const evictions = metrics?.counter("node_collector_evictions_total", "[STABLE] Number of Node evictions that happened since current instance of NodeController started.");
  const allHealth = metrics?.histogram("node_collector_update_all_nodes_health_duration_seconds", "[ALPHA] Duration in seconds for NodeController to update the health of all nodes.", ALL_SECONDS);
  const oneHealth = metrics?.histogram("node_collector_update_node_health_duration_seconds", "[ALPHA] Duration in seconds for NodeController to update the health of a single node.", ONE_SECONDS);

  async function timed<T>(seconds: { observe(value: number): void } | undefined, work: () => Promise<T>): Promise<T> {
    const startMs = clock.uptimeMs();
    try {
      return await work();
    } finally {
      seconds?.observe((clock.uptimeMs() - startMs) / 1000);
    }
  }

  /** `current`: as it was when it was examined. Its NoSchedule taint comes at the same moment. */
  async function taint(current: Readonly<Node> | undefined, signal: AbortSignal): Promise<void> {
    for (let tries = 1; current && tries <= TAINT_TRIES_MAX; tries++) {
      const step = evictionFor(current, zones.areAllSilent ? "True" : readyStatus(current), clock.nowMs());
      if (step.do === "nothing" || (step.do === "taint" && !zones.mayTaint(current))) return;
      if (!(await writer.setTaints(current, step.taints, signal))) {
        current = await writer.fresh(current, signal);
        continue;
      }
      if (step.do === "set") return;
      zones.take(current);
      return evictions?.inc({ zone: zoneOf(current) });
    }
  }

  const monitor: Controller = {
    name: "node_lifecycle_monitor",
    workers: 1,
    watches: [],
    reads: [nodes, pods, leases],
    starts: ["monitor" as ObjectKey],
    async reconcile(_key, { signal, log }): Promise<Next> {
      const all = [...nodes.list()];
      health.register(all);
      const examined = await timed(allHealth, () => settleEach(all, EXAMINED_AT_ONCE, (node) => timed(oneHealth, () => health.examine(node, signal)).catch((error: unknown) => {
        if (!signal.aborted) log.warn("node could not be examined", { error });
        return node;
      })));
      zones.judge(examined, clock.uptimeMs());
      for (const zone of zones.names()) evictions?.inc({ zone }, 0); // shown from the first look on
      for (const node of examined) await taint(node, signal).catch((error: unknown) => { if (!signal.aborted) log.warn("node could not be tainted", { node: node.metadata.name, error }); });
      return { againInMs: settings.periodMs };
    },
  };

  const taints: Controller = {
    name: "node_lifecycle_controller",
    workers: 2,
    watches: [itself(nodes)],
    async reconcile(key, { signal }): Promise<Next> {
      const node = nodes.get(key);
      if (node === undefined) return;
      const wanted = scheduleTaints(node, clock.nowMs());
      if (wanted !== undefined && !(await writer.setTaints(node, wanted, signal))) return { againInMs: CHANGED_MS }; // nodes that start write much
      const labels = betaLabels(node);
      if (labels !== undefined) await writer.setLabels(node, labels, signal);
    },
  };

  const readyStatusOf = (nodeName: string): string | undefined => {
    const node = nodes.get(objectKey("", nodeName));
    return node && readyStatus(node);
  };

  /** Pods that land on a node that is not ready. */
  const assignments: Controller = {
    name: "node_lifecycle_controller_pods",
    workers: 2,
    reads: [nodes],
    watches: [mapped(pods, ({ object, old, deleted }) => (!deleted && object.spec.nodeName && object.spec.nodeName !== old?.spec.nodeName && readyStatusOf(object.spec.nodeName) !== "True" ? [keyOf(object)] : []))],
    async reconcile(key, { signal }) {
      const pod = pods.get(key);
      const node = pod?.spec.nodeName ? nodes.get(objectKey("", pod.spec.nodeName)) : undefined;
      if (pod === undefined || node === undefined || !health.knows(node.metadata.name)) return;
      const ready = readyStatus(node);
      if (ready !== undefined && ready !== "True") await writer.markPodNotReady(pod, signal);
    },
  };

  return [monitor, taints, assignments];
}
