/**
 * Writes the node's object: registers it, and reports its status when it changes, and every 5 minutes.
 *
 * Source: kubernetes v1.36 pkg/kubelet/kubelet_node_status.go (syncNodeStatus)
 */
import type { Node, NodeCondition, NodeStatus, ObjectReference } from "../../../core/api/gen/core.v1.ts";
import { isConditionTrue } from "../../../core/api/meta/conditions.ts";
import { objectKey } from "../../../core/api/meta/object-meta.ts";
import { notFound } from "../../../core/api/meta/status-error.ts";
import type { Client, ResourceClient } from "../../../core/client/client.ts";
import type { EventRecorder } from "../../../core/client/events.ts";
import type { Informer } from "../../../core/client/informer.ts";
import { revisionOf } from "../../../core/client/object-cache.ts";
import { NODES } from "../../../core/client/resources.ts";
import { backoffMs } from "../../../core/lifecycle/backoff.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { MachineInfo } from "../../os/machine.ts";
import type { KubeletSettings } from "../settings.ts";
import { nodeReference } from "./node-reference.ts";
import { changedFacts, isSameStatus, newNode, nodeStatusPatch } from "./node-status.ts";
import { registerNode } from "./register-node.ts";
import type { StartupLatency } from "./startup-latency.ts";

export interface StatusReportDeps {
  readonly settings: KubeletSettings;
  readonly client: Client;
  /** All nodes, or this one. Absent: the node is read at each look. */
  readonly nodes?: Informer<Node> | undefined;
  readonly machine: MachineInfo;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: EventRecorder;
  /** Learns how much room there is. */
  readonly measure: () => Promise<void>;
  /** Learns which images there are, from time to time. */
  readonly lookAtImages: (signal: AbortSignal) => Promise<void>;
  /** The status as it is to be, of what has been learned. */
  readonly statusAfter: (before: NodeStatus | undefined) => Promise<NodeStatus>;
  /** The node as the API server has it, at each look. */
  readonly lookAtNode?: ((node: Readonly<Node>, signal: AbortSignal) => Promise<void>) | undefined;
  /** The API server has this status. */
  readonly onReported?: ((status: NodeStatus) => void) | undefined;
  /** No kubelet has run on this machine before. */
  readonly isNewMachine?: boolean | undefined;
  /** Measures how long it takes to become a node. */
  readonly startup?: StartupLatency | undefined;
}

/** What was registered comes back by watch within this time. */
const WATCH_MS_MAX = 30_000;
/** How often two machines that are one node say so. */
const DOUBLED_EVERY_MS = 10 * 60_000;
const RETRY = { minMs: 100, maxMs: 7_000 };

export class StatusReport implements Runnable {
  readonly name = "node-status";
  readonly #deps: StatusReportDeps;
  readonly #nodes: ResourceClient<Node>;
  readonly #reference: ObjectReference;
  #known: Readonly<Node> | undefined; // as it was read or written last
  #registeredMs = Number.NEGATIVE_INFINITY;
  #reportedMs = Number.NEGATIVE_INFINITY;
  #doubledMs = Number.NEGATIVE_INFINITY; // when it was told
  #isUnschedulable = false; // when it was looked last
  #woken = new AbortController();

  constructor(deps: StatusReportDeps) {
    const { nodeName } = deps.settings;
    this.#deps = deps;
    this.#nodes = deps.client.resource(NODES);
    this.#reference = nodeReference(nodeName);
  }

  /** Once it is registered, as far as this process has heard. */
  get uid(): string | undefined { return this.#known?.metadata.uid; }

  /** The node as the API server last had it; before that, as it will be registered. */
  current(): Pick<Node, "metadata" | "spec"> { return newest(this.#known, this.#watched()) ?? asNode(newNode(this.#deps)); }

  /** Does not wait for the next regular look. */
  refresh(): void { this.#woken.abort(); }

  async run(signal: AbortSignal, ready: () => void): Promise<void> {
    const { settings, clock, log, nodes } = this.#deps;
    this.#event("Starting", "Starting kubelet.");
    await this.#deps.measure();
    void nodes?.whenSynced(signal).then(() => {
      const watched = this.#watched();
      if (!watched) return;
      if (this.#known === undefined && watched.status) this.#deps.onReported?.(watched.status); // of an earlier life: its pods have their volumes again while the server is away
      ready(); // it is a node, as far as is remembered: its pods wait for nobody
    });
    for (let failures = 0; !signal.aborted; ) {
      this.#woken = new AbortController();
      try {
        await this.#report(signal);
        failures = 0;
        ready();
      } catch (error) {
        if (signal.aborted) return;
        failures++;
        log.warn("node status not reported, next try soon", { node: settings.nodeName, error });
        if ((error as { code?: number }).code === 404) this.#known = undefined; // someone deleted the node: register it again
      }
      if (failures > 0) ready(); // pods that run already must not wait for an API server that is away
      await clock.sleep(failures > 0 ? backoffMs(failures, RETRY) : settings.statusMs, AbortSignal.any([signal, this.#woken.signal]));
    }
  }

  async #report(signal: AbortSignal): Promise<void> {
    const { settings, clock, machine } = this.#deps;
    if (this.#known === undefined) {
      this.#known = await registerNode(
        {
          ...this.#deps, isNewMachine: this.#deps.isNewMachine === true && this.#registeredMs === Number.NEGATIVE_INFINITY,
          onRebooted: () => this.#event("Rebooted", `Node ${settings.nodeName} has been rebooted, boot id: ${machine.bootId}`, "Warning"),
        },
        signal,
      );
      this.#registeredMs = clock.uptimeMs();
    }
    await this.#deps.measure();
    await this.#deps.lookAtImages(signal);
    const current = await this.#latest(signal);
    this.#tellSchedulable(current.spec.unschedulable ?? false);
    await this.#deps.lookAtNode?.(current, signal);
    const before = current.status;
    this.#tellDoubled(before);
    const after = await this.#deps.statusAfter(before);
    this.#known = current;
    const labels = changedFacts(current.metadata.labels, machine);
    if (!labels && isSameStatus(before, after) && clock.uptimeMs() - this.#reportedMs < settings.reportMs) return this.#deps.onReported?.(after);
    this.#known = await this.#nodes.patch({ metadata: { name: settings.nodeName } }, "application/strategic-merge-patch+json", { ...(labels && { metadata: { labels } }), ...nodeStatusPatch(before, after) }, { subresource: "status", signal });
    this.#reportedMs = clock.uptimeMs();
    if (isConditionTrue(after.conditions, "Ready")) this.#deps.startup?.ready();
    this.#deps.onReported?.(after);
    this.#tellTransitions(before?.conditions ?? [], after.conditions ?? []);
  }

  /** As the API server has it: by watch if there is one, which costs nothing while nothing changes. */
  async #latest(signal: AbortSignal): Promise<Readonly<Node>> {
    const { nodes, clock, settings: { nodeName } } = this.#deps;
    const watched = this.#watched();
    if (!nodes?.synced || (watched === undefined && clock.uptimeMs() - this.#registeredMs < WATCH_MS_MAX)) return await this.#nodes.get({ metadata: { name: nodeName } }, { signal });
    if (watched === undefined) throw notFound({ group: "", resource: "nodes" }, nodeName);
    return newest(this.#known, watched)!;
  }

  #watched(): Readonly<Node> | undefined { return this.#deps.nodes?.get(objectKey("", this.#deps.settings.nodeName)); }

  #tellSchedulable(isUnschedulable: boolean): void {
    if (this.#isUnschedulable !== isUnschedulable) this.#eventOfStatus(isUnschedulable ? "NodeNotSchedulable" : "NodeSchedulable");
    this.#isUnschedulable = isUnschedulable;
  }

  /** What this process has reported is another machine's now: two of them have one data directory, copied with a card or an image, and each takes away what the other says and runs. */
  #tellDoubled({ nodeInfo, addresses = [] }: NodeStatus = {}): void {
    const { machine, clock, log, settings } = this.#deps;
    const bootId = nodeInfo?.bootID ?? "";
    if (bootId === "" || machine.bootId === "" || bootId === machine.bootId || this.#reportedMs === Number.NEGATIVE_INFINITY || clock.uptimeMs() - this.#doubledMs < DOUBLED_EVERY_MS) return;
    this.#doubledMs = clock.uptimeMs();
    const at = addresses.filter(({ type }) => type === "InternalIP").map(({ address }) => address).join(", ") || "no address";
    const message = `Another machine (at ${at}, boot id ${bootId}) says that it is node ${settings.nodeName}, too: stop one of the two, remove its data directory, and join it under another name`;
    log.error("another machine says that it is this node, too: stop one of the two, remove its data directory, and join it under another name", { node: settings.nodeName, ours: machine.bootId, theirs: bootId, at });
    this.#event("NodeDoubled", message, "Warning");
  }

  #tellTransitions(before: readonly NodeCondition[], after: readonly NodeCondition[]): void {
    for (const { type, status, reason = "" } of after) {
      const old = before.find((condition) => condition.type === type)?.status;
      if (old === status || (old === undefined && type === "Ready" && status === "False")) continue; // one that begins has not become not ready
      const event = type === "Ready" ? (status === "True" ? "NodeReady" : "NodeNotReady") : reason.replace(/^Kubelet/, "Node");
      this.#eventOfStatus(event);
    }
  }

  #eventOfStatus(event: string): void { this.#event(event, `Node ${this.#deps.settings.nodeName} status is now: ${event}`); }

  #event(reason: string, message: string, type: "Normal" | "Warning" = "Normal"): void { this.#deps.events.event(this.#reference, type, reason, message); }
}

function newest(a: Readonly<Node> | undefined, b: Readonly<Node> | undefined): Readonly<Node> | undefined {
  return a === undefined || (b !== undefined && revisionOf(b) > revisionOf(a)) ? b : a;
}

function asNode({ metadata, spec }: ReturnType<typeof newNode>): Pick<Node, "metadata" | "spec"> {
  return { metadata: { ...metadata, uid: "", resourceVersion: "", creationTimestamp: "" }, spec };
}
