/** What is written of nodes and their pods. A node that has changed meanwhile, or is gone, is left to the next look. */
import type { Node, NodeCondition, Pod, Taint } from "../../api/gen/core.v1.ts";
import { ifFound } from "../../api/meta/if-found.ts";
import { isConflict, isNotFound } from "../../api/meta/status-error.ts";
import type { Client, ResourceClient } from "../../client/client.ts";
import type { EventRecorder } from "../../client/events.ts";
import type { Informer } from "../../client/informer.ts";
import { NODES, PODS } from "../../client/resources.ts";
import { type Clock, timestamp } from "../../lifecycle/clock.ts";
import { podCondition } from "../pod-state.ts";

interface Deps {
  readonly client: Client;
  readonly nodes: Informer<Node>;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
}

export class NodeWriter {
  readonly #cached: Informer<Node>;
  readonly #nodes: ResourceClient<Node>;
  readonly #pods: ResourceClient<Pod>;
  readonly #recorder: EventRecorder;
  readonly #clock: Clock;

  constructor({ client, nodes, recorder, clock }: Deps) {
    this.#cached = nodes;
    this.#nodes = client.resource(NODES);
    this.#pods = client.resource(PODS);
    this.#recorder = recorder;
    this.#clock = clock;
  }

  /** As it is at the source; undefined: it is gone, or another has its name. */
  async fresh(node: Readonly<Node>, signal: AbortSignal): Promise<Readonly<Node> | undefined> {
    const now = await ifFound(this.#nodes.get(node, { signal }));
    return now?.metadata.uid === node.metadata.uid ? now : undefined;
  }

  /** False: the node has changed, or is gone. */
  async setTaints(node: Readonly<Node>, taints: readonly Taint[], signal: AbortSignal): Promise<boolean> {
    try {
      const patch = { metadata: { resourceVersion: node.metadata.resourceVersion }, spec: { taints } };
      await this.#cached.caughtUp([await this.#nodes.patch(node, "application/merge-patch+json", patch, { signal })], signal);
      return true;
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error)) throw error;
      return false;
    }
  }

  /** Undefined: the node has changed, or is gone. */
  async setConditions(node: Readonly<Node>, conditions: readonly NodeCondition[], signal: AbortSignal): Promise<Readonly<Node> | undefined> {
    try {
      const written = await this.#nodes.updateStatus({ ...node, status: { ...node.status, conditions: [...conditions] } }, { signal });
      await this.#cached.caughtUp([written], signal);
      return written;
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error)) throw error;
      return undefined;
    }
  }

  async setLabels(node: Readonly<Node>, labels: Readonly<Record<string, string>>, signal: AbortSignal): Promise<void> {
    await this.#nodes.patch(node, "application/merge-patch+json", { metadata: { labels } }, { signal });
  }

  async markPodNotReady(pod: Readonly<Pod>, signal: AbortSignal): Promise<void> {
    const ready = podCondition(pod, "Ready");
    if (ready === undefined || ready.status === "False") return;
    const condition = { ...ready, status: "False", lastTransitionTime: timestamp(this.#clock.nowMs()) };
    const conditions = (pod.status?.conditions ?? []).map((one) => (one === ready ? condition : one));
    if (await ifFound(this.#pods.updateStatus({ ...pod, status: { ...pod.status, conditions } }, { signal }))) this.#recorder.event(pod, "Warning", "NodeNotReady", "Node is not ready");
  }
}
