/**
 * The cluster as the scheduler sees it: nodes, the pods on them, and what those ask for. Kept current by informers; a pod that was just
 * placed is assumed to be there until its binding comes back, or is forgotten when the binding fails.
 */
import type { Node, Pod } from "../api/gen/core.v1.ts";
import { keyOf, type ObjectKey } from "../api/meta/object-meta.ts";
import { amounts, podRequests, type Requests } from "./pod-requests.ts";

export interface PlacedPod {
  readonly pod: Readonly<Pod>;
  readonly requests: Requests;
}

export class NodeInfo {
  readonly name: string;
  node: Readonly<Node> | undefined;
  readonly pods = new Map<string, PlacedPod>(); // by uid
  readonly requested: Record<string, number> = {};
  allocatable: Requests = {};
  /** "ip/protocol/port" → how many pods use it. */
  readonly hostPorts = new Map<string, number>();

  constructor(name: string) {
    this.name = name;
  }

  set(node: Readonly<Node>): void {
    this.node = node;
    this.allocatable = amounts(node.status?.allocatable);
  }

  add(placed: PlacedPod): void {
    this.pods.set(placed.pod.metadata.uid, placed);
    this.#count(placed, 1);
  }

  remove(uid: string): void {
    const placed = this.pods.get(uid);
    if (!placed) return;
    this.pods.delete(uid);
    this.#count(placed, -1);
  }

  #count({ pod, requests }: PlacedPod, sign: 1 | -1): void {
    for (const [name, value] of Object.entries(requests)) this.requested[name] = (this.requested[name] ?? 0) + sign * value;
    for (const port of hostPortsOf(pod)) {
      const count = (this.hostPorts.get(port) ?? 0) + sign;
      if (count > 0) this.hostPorts.set(port, count);
      else this.hostPorts.delete(port);
    }
  }
}

export function* hostPortsOf({ spec }: Readonly<Pod>): Iterable<string> {
  const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always");
  for (const { ports } of [...spec.containers, ...sidecars])
    for (const { hostPort, hostIP, protocol } of ports ?? []) if (hostPort) yield `${hostIP || "0.0.0.0"}/${protocol ?? "TCP"}/${hostPort}`;
}

export class Snapshot {
  readonly #nodes = new Map<string, NodeInfo>();
  /** Which node a pod is counted on, by uid. */
  readonly #placed = new Map<string, string>();
  readonly #assumed = new Map<string, ObjectKey>();

  /** Nodes that exist, in a stable order. */
  nodes(): readonly NodeInfo[] {
    return [...this.#nodes.values()].filter(({ node }) => node !== undefined);
  }

  node(name: string): NodeInfo | undefined {
    return this.#nodes.get(name);
  }

  setNode(node: Readonly<Node>): void {
    this.#info(node.metadata.name).set(node);
  }

  removeNode(name: string): void {
    const info = this.#nodes.get(name);
    if (!info) return;
    info.node = undefined;
    if (info.pods.size === 0) this.#nodes.delete(name);
  }

  /** A pod as the API tells it: counted where it is bound, unless it has ended. */
  setPod(pod: Readonly<Pod>): void {
    const { uid } = pod.metadata;
    if (this.#assumed.has(uid) && !pod.spec.nodeName) return;
    this.#assumed.delete(uid);
    this.#drop(uid);
    const ended = pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed";
    if (pod.spec.nodeName && !ended) this.#place(pod, pod.spec.nodeName);
  }

  removePod(pod: Readonly<Pod>): void {
    this.#assumed.delete(pod.metadata.uid);
    this.#drop(pod.metadata.uid);
  }

  assume(pod: Readonly<Pod>, nodeName: string): void {
    this.#assumed.set(pod.metadata.uid, keyOf(pod));
    this.#place(pod, nodeName);
  }

  forget(pod: Readonly<Pod>): void {
    if (this.#assumed.delete(pod.metadata.uid)) this.#drop(pod.metadata.uid);
  }

  isAssumed(pod: Readonly<Pod>): boolean {
    return this.#assumed.has(pod.metadata.uid);
  }

  #place(pod: Readonly<Pod>, nodeName: string): void {
    this.#info(nodeName).add({ pod, requests: podRequests(pod) });
    this.#placed.set(pod.metadata.uid, nodeName);
  }

  #drop(uid: string): void {
    const name = this.#placed.get(uid);
    if (name === undefined) return;
    this.#placed.delete(uid);
    const info = this.#nodes.get(name);
    info?.remove(uid);
    if (info && !info.node && info.pods.size === 0) this.#nodes.delete(name);
  }

  #info(name: string): NodeInfo {
    let info = this.#nodes.get(name);
    if (!info) this.#nodes.set(name, (info = new NodeInfo(name)));
    return info;
  }
}
