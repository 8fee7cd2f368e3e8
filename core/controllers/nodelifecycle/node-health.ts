/**
 * Which nodes there are, when each was last heard from, and what its silence means at once: its conditions are Unknown, its pods are not ready.
 *
 * Source: kubernetes v1.36 pkg/controller/nodelifecycle/node_lifecycle_controller.go (monitorNodeHealth, tryUpdateNodeHealth)
 */
import type { Lease } from "../../api/gen/coordination.v1.ts";
import type { Node, Pod } from "../../api/gen/core.v1.ts";
import { objectKey } from "../../api/meta/object-meta.ts";
import { NODE_LEASES } from "../../client/cluster-objects.ts";
import type { EventRecorder } from "../../client/events.ts";
import type { Index, Informer } from "../../client/informer.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import { settleAll } from "../../lifecycle/settle-all.ts";
import type { NodeWriter } from "./node-writer.ts";
import { type Health, healthAfter, isSilent, type NodeLifecycleSettings, readyStatus, unknownConditions } from "./plan.ts";

export const PODS_BY_NODE: Index<Pod> = { name: "node", valuesOf: ({ spec }) => (spec.nodeName ? [spec.nodeName] : []) };

interface Deps {
  readonly pods: Informer<Pod>;
  /** Of nodes. */
  readonly leases: Informer<Lease>;
  readonly writer: NodeWriter;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
  readonly settings: NodeLifecycleSettings;
}

export class NodeHealth {
  readonly #deps: Deps;
  readonly #health = new Map<string, Health>(); // by node
  readonly #uids = new Map<string, string>(); // of the nodes that are known
  readonly #retry = new Set<string>(); // nodes whose pods could not all be marked
  /** By this silence is told: uptime, but of a pause between two looks no more than half of what a node may be silent for, or than two periods. After one, be it that the process was stopped or starved, what nodes have said meanwhile is heard first. */
  #watchedMs = 0;
  #lookedMs: number | undefined;

  constructor(deps: Deps) { this.#deps = deps; }

  /** Whether the node has been examined once. */
  knows(name: string): boolean { return this.#health.has(name); }

  /** Begins a look at all nodes: says what must be said of those that came and went. */
  register(all: readonly Readonly<Node>[]): void {
    const { clock, settings: { graceMs, periodMs } } = this.#deps;
    const uptimeMs = clock.uptimeMs();
    this.#watchedMs += Math.min(uptimeMs - (this.#lookedMs ?? uptimeMs), Math.max(graceMs / 2, 2 * periodMs));
    this.#lookedMs = uptimeMs;
    const names = new Set(all.map(({ metadata }) => metadata.name));
    for (const { metadata } of all) {
      if (this.#uids.has(metadata.name)) continue;
      this.#uids.set(metadata.name, metadata.uid);
      this.#tell(metadata, "RegisteredNode", `Node ${metadata.name} event: Registered Node ${metadata.name} in Controller`);
    }
    for (const [name, uid] of this.#uids) {
      if (names.has(name)) continue;
      this.#tell({ name, uid }, "RemovingNode", `Node ${name} event: Removing Node ${name} from Controller`);
      this.#uids.delete(name);
      this.#health.delete(name);
      this.#retry.delete(name);
    }
  }

  /** Writes what is known of one node; returns the node as it is then. */
  async examine(node: Readonly<Node>, signal: AbortSignal): Promise<Readonly<Node>> {
    const { pods, leases, writer, clock, settings } = this.#deps;
    const { name } = node.metadata;
    const watchedMs = this.#watchedMs, nowMs = clock.nowMs();
    const health = healthAfter(this.#health.get(name), node, leases.get(objectKey(NODE_LEASES, name)), { watchedMs, nowMs });
    this.#health.set(name, health);
    const wasReady = readyStatus(node) === "True";
    let current = node;
    if (isSilent(health, node, watchedMs, settings)) {
      const conditions = unknownConditions(node, nowMs);
      const written = conditions === node.status?.conditions ? node : await writer.setConditions(node, conditions, signal);
      if (written === undefined) return node; // it has just been heard from, or is gone
      current = written;
    }
    const isReady = readyStatus(current) === "True";
    if (wasReady && !isReady) this.#tell(current.metadata, "NodeNotReady", `Node ${name} status is now: NodeNotReady`);
    if ((wasReady && !isReady) || (this.#retry.has(name) && !isReady)) {
      this.#retry.add(name);
      await settleAll(pods.by(PODS_BY_NODE, name).map((pod) => writer.markPodNotReady(pod, signal)));
    }
    this.#retry.delete(name);
    return current;
  }

  #tell({ name, uid }: { readonly name: string; readonly uid: string }, reason: string, message: string): void {
    this.#deps.recorder.event({ apiVersion: "v1", kind: "Node", name, uid }, "Normal", reason, message);
  }
}
