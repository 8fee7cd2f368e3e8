/**
 * Watches over nodes: who is silent becomes Unknown, who is not ready is tainted, and its pods are told to be not ready.
 *
 *   every 5 s   leases and statuses ─▶ health ─▶ Ready=Unknown ─▶ NoExecute taints, as fast as the zone's health allows ─▶ pods Ready=False
 *   on change   conditions ─▶ NoSchedule taints; labels; a pod that lands on a node that is not ready
 *
 * When every node of the cluster is silent the fault is likely ours: then nothing is tainted, and what was is untainted.
 *
 * API:    https://kubernetes.io/docs/concepts/architecture/nodes/#node-controller
 * Source: kubernetes v1.36 pkg/controller/nodelifecycle
 */
import type { Node, Pod, Taint } from "../../api/gen/core.v1.ts";
import { keyOf, type ObjectKey, objectKey } from "../../api/meta/object-meta.ts";
import { isConflict, isNotFound } from "../../api/meta/status-error.ts";
import type { Index } from "../../client/informer.ts";
import { LEASES, NODES, PODS } from "../../client/resources.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { settleAll, settleEach } from "../../lifecycle/settle-all.ts";
import { findCondition } from "../conditions.ts";
import { type Controller, itself, mapped, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { podCondition } from "../pod-state.ts";
import { betaLabels, evictionFor, type Health, healthAfter, isExcludedFromDisruption, isSilent, NODE_LIFECYCLE, type NodeLifecycleSettings, scheduleTaints, taintsPerSecond, unknownConditions, zoneOf, zoneState, type ZoneState } from "./plan.ts";

/** Of each the pods are marked at once: when a thousand nodes fall silent together, theirs must not all be. Source: node_lifecycle_controller.go nodeUpdateWorkerSize */
const EXAMINED_AT_ONCE = 8;
/** What somebody else wrote meanwhile is here by then. */
const CHANGED_MS = 50;
const NODE_LEASES = "kube-node-lease";

export const PODS_BY_NODE: Index<Pod> = { name: "node", valuesOf: ({ spec }) => (spec.nodeName ? [spec.nodeName] : []) };

interface Zone { readonly state: ZoneState; readonly nodes: number; tokens: number; filledMs: number }
interface Deps extends Pick<ControllerDeps, "client" | "informers" | "events" | "clock" | "metrics"> { readonly settings?: NodeLifecycleSettings | undefined }

export function nodeLifecycleControllers({ client, informers, events, clock, metrics, settings = NODE_LIFECYCLE }: Deps): Controller[] {
  const nodes = informers.of(NODES);
  const pods = informers.of(PODS);
  const leases = informers.of(LEASES, { namespace: NODE_LEASES });
  const nodeClient = client.resource(NODES);
  const podClient = client.resource(PODS);
  const recorder = events.from({ component: "node-controller" });
  const health = new Map<string, Health>();
  const retry = new Set<string>(); // nodes whose pods could not all be marked
  let zones = new Map<string, Zone>();
  const evictions = metrics?.counter("node_collector_evictions_total", "[STABLE] Number of Node evictions that happened since current instance of NodeController started.");

  const tell = ({ name, uid }: { readonly name: string; readonly uid: string }, reason: string, message: string): void => {
    recorder.event({ apiVersion: "v1", kind: "Node", name, uid }, "Normal", reason, message);
  };

  /** Conflicts mean the node has changed: the next look decides anew. */
  async function setTaints(node: Readonly<Node>, taints: readonly Taint[], signal: AbortSignal): Promise<boolean> {
    try {
      const patch = { metadata: { resourceVersion: node.metadata.resourceVersion }, spec: { taints } };
      await nodes.caughtUp([await nodeClient.patch(node, "application/merge-patch+json", patch, { signal })], signal);
      return true;
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error)) throw error;
      return false;
    }
  }

  async function markNotReady(pod: Readonly<Pod>, signal: AbortSignal): Promise<void> {
    const ready = podCondition(pod, "Ready");
    if (ready === undefined || ready.status === "False") return;
    const condition = { ...ready, status: "False", lastTransitionTime: timestamp(clock.nowMs()) };
    const conditions = (pod.status?.conditions ?? []).map((one) => (one === ready ? condition : one));
    try {
      await podClient.updateStatus({ ...pod, status: { ...pod.status, conditions } }, { signal });
    } catch (error) {
      if (isNotFound(error)) return;
      throw error;
    }
    recorder.event(pod, "Warning", "NodeNotReady", "Node is not ready");
  }

  /** Writes what is known of one node; returns the node as it is then. */
  async function examine(node: Readonly<Node>, signal: AbortSignal): Promise<Readonly<Node>> {
    const { name } = node.metadata;
    const nowMs = clock.nowMs();
    const now = healthAfter(health.get(name), node, leases.get(objectKey(NODE_LEASES, name)), nowMs);
    health.set(name, now);
    const wasReady = readyStatus(node) === "True";
    let current = node;
    if (isSilent(now, node, nowMs, settings)) {
      const conditions = unknownConditions(node, nowMs);
      if (conditions !== node.status?.conditions) {
        try {
          current = await nodeClient.updateStatus({ ...node, status: { ...node.status, conditions: [...conditions] } }, { signal });
          await nodes.caughtUp([current], signal);
        } catch (error) {
          if (!isConflict(error) && !isNotFound(error)) throw error;
          return node; // it has just been heard from, or is gone
        }
      }
    }
    const isReady = readyStatus(current) === "True";
    if (wasReady && !isReady) tell(current.metadata, "NodeNotReady", `Node ${name} status is now: NodeNotReady`);
    if ((wasReady && !isReady) || (retry.has(name) && !isReady)) {
      retry.add(name);
      await settleAll(pods.by(PODS_BY_NODE, name).map((pod) => markNotReady(pod, signal)));
    }
    retry.delete(name);
    return current;
  }

  /** All that must be said of nodes that came and went. */
  function register(all: readonly Readonly<Node>[]): void {
    const names = new Set(all.map(({ metadata }) => metadata.name));
    for (const { metadata } of all) if (!health.has(metadata.name)) tell(metadata, "RegisteredNode", `Node ${metadata.name} event: Registered Node ${metadata.name} in Controller`);
    for (const name of [...health.keys()]) {
      if (names.has(name)) continue;
      tell({ name, uid: "" }, "RemovingNode", `Node ${name} event: Removing Node ${name} from Controller`);
      health.delete(name);
      retry.delete(name);
    }
  }

  function judgeZones(all: readonly Readonly<Node>[]): void {
    const counted = Map.groupBy(all.filter((node) => !isExcludedFromDisruption(node)), zoneOf);
    const nowMs = clock.uptimeMs();
    const next = new Map<string, Zone>();
    for (const [name, members] of counted) {
      const ready = members.filter((node) => readyStatus(node) === "True").length;
      const state = zoneState(ready, members.length - ready, settings);
      const { tokens = 1, filledMs = nowMs } = zones.get(name) ?? {};
      const rate = taintsPerSecond(state, members.length, settings);
      evictions?.inc({ zone: name }, 0); // shown from the first look on
      next.set(name, { state, nodes: members.length, tokens: Math.min(1, tokens + (rate * (nowMs - filledMs)) / 1000), filledMs: nowMs });
    }
    zones = next;
  }

  async function taintAll(all: readonly Readonly<Node>[], signal: AbortSignal): Promise<void> {
    const allSilent = zones.size > 0 && [...zones.values()].every(({ state }) => state === "FullDisruption");
    for (const node of all) {
      const step = evictionFor(node, allSilent ? "True" : readyStatus(node), clock.nowMs());
      if (step.do === "set") await setTaints(node, step.taints, signal);
      if (step.do !== "taint") continue;
      const zone = zones.get(zoneOf(node)) ?? { state: "Normal", nodes: 1, tokens: 1, filledMs: 0 };
      if (zone.tokens < 1 || taintsPerSecond(zone.state, zone.nodes, settings) === 0) continue;
      if (!(await setTaints(node, step.taints, signal))) continue;
      zone.tokens -= 1;
      evictions?.inc({ zone: zoneOf(node) });
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
      register(all);
      const examined = await settleEach(all, EXAMINED_AT_ONCE, (node) => examine(node, signal).catch((error: unknown) => {
        if (!signal.aborted) log.warn("node could not be examined", { error });
        return node;
      }));
      judgeZones(examined);
      await taintAll(examined, signal).catch((error: unknown) => { if (!signal.aborted) log.warn("node could not be tainted", { error }); });
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
      if (wanted !== undefined && !(await setTaints(node, wanted, signal))) return { againInMs: CHANGED_MS }; // nodes that start write much
      const labels = betaLabels(node);
      if (labels !== undefined) await nodeClient.patch(node, "application/merge-patch+json", { metadata: { labels } }, { signal });
    },
  };

  const assignments: Controller = {
    name: "node_lifecycle_controller_pods",
    workers: 2,
    reads: [nodes],
    watches: [mapped(pods, ({ object, old, deleted }) => (!deleted && object.spec.nodeName && object.spec.nodeName !== old?.spec.nodeName ? [keyOf(object)] : []))],
    async reconcile(key, { signal }) {
      const pod = pods.get(key);
      const node = pod?.spec.nodeName ? nodes.get(objectKey("", pod.spec.nodeName)) : undefined;
      if (pod === undefined || node === undefined || !health.has(node.metadata.name)) return;
      const ready = readyStatus(node);
      if (ready !== undefined && ready !== "True") await markNotReady(pod, signal);
    },
  };

  return [monitor, taints, assignments];
}

function readyStatus(node: Readonly<Node>): string | undefined { return findCondition(node.status?.conditions, "Ready")?.status; }
