/**
 * The cluster as the scheduler sees it: nodes and the pods on them. Kept current by informers; a pod that was just placed is assumed to be there
 * until its binding comes back, or is forgotten when the binding fails. A pod that has evicted others is nominated to the node they leave.
 */
import type { Node, Pod } from "../api/gen/core.v1.ts";
import { labelsOf } from "../api/meta/object-meta.ts";
import { type LiveNode, NO_IMAGES, NodeInfo, type PlacedPod, placedPod } from "./node-info.ts";
import { PodIndex } from "./pod-index.ts";
import { isResizeInfeasible } from "./pod-requests.ts";

const NOBODY: readonly PlacedPod[] = Object.freeze([]);
/** Where a node is; of the two names of each label the old one says more. Source: component-helpers node/topology GetZoneKey */
const ZONE = ["failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"] as const;
const REGION = ["failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"] as const;

/** An image: on how many nodes it is, and its size as the first of them told it, which counts for all. Source: backend/cache/cache.go addNodeImageStates */
interface ImageState { readonly bytes: number; nodes: number }

export class Snapshot {
  readonly #nodes = new Map<string, NodeInfo>();
  readonly pods = new PodIndex(this.#nodes);
  /** Which node a pod is counted on, by uid. */
  readonly #placed = new Map<string, string>();
  readonly #assumed = new Set<string>();
  /** Thought away for a while, by uid. Invariant: it is in #placed, and not on its node. */
  readonly #aside = new Map<string, { readonly placed: PlacedPod; readonly node: string }>();
  readonly #nominated = new Map<string, { readonly node: string; readonly placed: PlacedPod }>(); // by uid
  #ordered: readonly LiveNode[] | undefined;
  readonly #images = new Map<string, ImageState>();

  /** Nodes that exist, one zone after the other in turn, so that a search that stops early has looked at all zones. */
  nodes(): readonly LiveNode[] {
    return (this.#ordered ??= inTurn([...this.#nodes.values()].filter((info): info is LiveNode => info.node !== undefined)));
  }

  node(name: string): LiveNode | undefined {
    const info = this.#nodes.get(name);
    return info?.node === undefined ? undefined : (info as LiveNode);
  }

  image(name: string): Readonly<ImageState> | undefined {
    return this.#images.get(name);
  }

  sizes(): { readonly nodes: number; readonly pods: number; readonly assumed_pods: number } {
    return { nodes: this.nodes().length, pods: this.#placed.size, assumed_pods: this.#assumed.size };
  }

  /** The same cluster, to think about it: as if the pod with this uid were nowhere. */
  copy(without: string): Snapshot {
    const copy = new Snapshot();
    for (const { node } of this.#nodes.values()) if (node) copy.setNode(node);
    for (const [uid, name] of this.#placed) {
      const placed = this.#nodes.get(name)?.pods.get(uid) ?? this.#aside.get(uid)?.placed;
      if (placed && uid !== without) copy.#place(placed, name);
    }
    for (const [uid, nominated] of this.#nominated) if (uid !== without) copy.#nominated.set(uid, nominated);
    return copy;
  }

  setNode(node: Readonly<Node>): void {
    const info = this.#info(node.metadata.name);
    if (!info.node || zoneOf(info.node) !== zoneOf(node)) this.#ordered = undefined;
    const { images, node: old } = info;
    info.set(node);
    if (!old || !Bun.deepEquals(labelsOf(old), labelsOf(node))) this.pods.nodesChanged();
    if (info.images !== images) this.#countImages(images, info.images);
  }

  removeNode(name: string): void {
    const info = this.#nodes.get(name);
    if (!info) return;
    this.#ordered = undefined;
    this.#countImages(info.images, NO_IMAGES);
    info.unset();
    if (info.pods.size === 0) this.#nodes.delete(name);
    this.pods.nodesChanged();
  }

  /** A pod as the API tells it, and as it told before: counted where it is bound, unless it has ended. */
  setPod(pod: Readonly<Pod>, old?: Readonly<Pod>): void {
    const { uid } = pod.metadata;
    const { nodeName } = pod.spec;
    if (!nodeName) {
      const unheard = old && !old.status?.nominatedNodeName ? this.#nominated.get(uid)?.node : undefined; // decided here a moment ago
      const nominated = pod.status?.nominatedNodeName || unheard;
      if (nominated && !isEnded(pod)) this.nominate(pod, nominated);
      else this.#nominated.delete(uid);
      return;
    }
    this.#assumed.delete(uid);
    this.#nominated.delete(uid);
    const known = this.#placed.get(uid);
    if (isEnded(pod)) return this.#drop(uid);
    if (known === nodeName && this.#aside.has(uid)) return void this.#aside.set(uid, { placed: placedPod(pod), node: nodeName });
    const before = known === nodeName ? this.#nodes.get(nodeName)?.pods.get(uid) : undefined;
    if (before && countsTheSame(before.pod, pod)) return void this.#nodes.get(nodeName)!.pods.set(uid, { ...before, pod });
    this.#drop(uid);
    this.#place(placedPod(pod), nodeName);
  }

  removePod({ metadata: { uid } }: Readonly<Pod>): void {
    this.#assumed.delete(uid);
    this.#nominated.delete(uid);
    this.#drop(uid);
  }

  assume(placed: PlacedPod, nodeName: string): void {
    this.#assumed.add(placed.pod.metadata.uid);
    this.#nominated.delete(placed.pod.metadata.uid);
    this.#place(placed, nodeName);
  }

  /** Whether it was assumed still. */
  forget({ metadata: { uid } }: Readonly<Pod>): boolean {
    const wasAssumed = this.#assumed.delete(uid);
    if (wasAssumed) this.#drop(uid);
    return wasAssumed;
  }

  /** As if the pod had left its node, until it is put back; it counts among those that have one all the same. */
  setAside(uid: string): void {
    const node = this.#placed.get(uid), placed = node === undefined ? undefined : this.#nodes.get(node)?.remove(uid);
    if (node === undefined || !placed) return;
    this.pods.podMoved(placed, node, -1);
    this.#aside.set(uid, { placed, node });
  }

  /** Unless it has gone meanwhile. */
  putBack(uid: string): void {
    const was = this.#aside.get(uid);
    if (!was) return;
    this.#aside.delete(uid);
    this.#info(was.node).add(was.placed);
    this.pods.podMoved(was.placed, was.node, 1);
  }

  isAssumed(pod: Readonly<Pod>): boolean {
    return this.#assumed.has(pod.metadata.uid);
  }

  /** Whether it counts on some node. */
  isPlaced({ metadata }: Readonly<Pod>): boolean { return this.#placed.has(metadata.uid); }

  /** Where it counts. */
  nodeOf({ metadata }: Readonly<Pod>): string | undefined { return this.#placed.get(metadata.uid); }

  nominate(pod: Readonly<Pod>, node: string): void {
    const known = this.#nominated.get(pod.metadata.uid);
    if (known?.node === node && countsTheSame(known.placed.pod, pod)) return;
    this.#nominated.set(pod.metadata.uid, { node, placed: placedPod(pod) });
  }

  denominate({ metadata: { uid } }: Readonly<Pod>): void {
    this.#nominated.delete(uid);
  }

  /** Pods that wait for others to leave `node`. */
  nominatedTo(node: string): readonly PlacedPod[] {
    if (this.#nominated.size === 0) return NOBODY;
    return [...this.#nominated.values()].flatMap((nominated) => (nominated.node === node ? [nominated.placed] : []));
  }

  nominatedNodeOf({ metadata: { uid } }: Readonly<Pod>): string | undefined {
    return this.#nominated.get(uid)?.node;
  }

  #countImages(before: NodeInfo["images"], after: NodeInfo["images"]): void {
    for (const name of before.keys()) {
      const known = this.#images.get(name);
      if (known && --known.nodes === 0) this.#images.delete(name);
    }
    for (const [name, bytes] of after) {
      const known = this.#images.get(name);
      if (known) known.nodes++;
      else this.#images.set(name, { bytes, nodes: 1 });
    }
  }

  #place(placed: PlacedPod, nodeName: string): void {
    this.#info(nodeName).add(placed);
    this.pods.podMoved(placed, nodeName, 1);
    this.#placed.set(placed.pod.metadata.uid, nodeName);
  }

  #drop(uid: string): void {
    const name = this.#placed.get(uid);
    if (name === undefined) return;
    this.#placed.delete(uid);
    this.#aside.delete(uid);
    const info = this.#nodes.get(name);
    const placed = info?.remove(uid);
    if (placed) this.pods.podMoved(placed, name, -1);
    if (info && !info.node && info.pods.size === 0) this.#nodes.delete(name);
  }

  #info(name: string): NodeInfo {
    let info = this.#nodes.get(name);
    if (!info) this.#nodes.set(name, (info = new NodeInfo(name)));
    return info;
  }
}

export function isEnded({ status }: Readonly<Pod>): boolean {
  return status?.phase === "Succeeded" || status?.phase === "Failed";
}

/** Most updates of a placed pod are of its status and change nothing for anybody else. */
export function countsTheSame(before: Readonly<Pod>, after: Readonly<Pod>): boolean {
  return before.metadata.generation !== undefined && before.metadata.generation === after.metadata.generation
    && before.metadata.deletionTimestamp === after.metadata.deletionTimestamp
    && Bun.deepEquals(before.metadata.labels, after.metadata.labels)
    && ((before.spec === after.spec && before.status === after.status) || Bun.deepEquals(resizing(before), resizing(after)));
}

/** Statuses that tell of no amounts are as if they were not there yet: a pod's first ones change nothing. */
function resizing({ spec, status }: Readonly<Pod>): unknown {
  const held = [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? []), ...(spec.resources && status ? [{ ...status, name: undefined }] : [])].flatMap(({ name, allocatedResources, resources }) => (allocatedResources || resources ? [[name, allocatedResources, resources?.requests]] : []));
  return [isResizeInfeasible(status), held];
}

/** Zones of one name in two regions are two. */
function zoneOf(node: Readonly<Node>): string {
  const labels = labelsOf(node);
  const [region, zone] = [REGION, ZONE].map(([old, name]) => labels[old] ?? labels[name] ?? "");
  return `${region}/${zone}`;
}

/** Z1: a b c, Z2: d e → a d b e c. Source: backend/cache/node_tree.go */
function inTurn(nodes: readonly LiveNode[]): LiveNode[] {
  const zones = [...Map.groupBy(nodes, ({ node }) => zoneOf(node)).values()];
  if (zones.length < 2) return [...nodes];
  const longest = Math.max(...zones.map(({ length }) => length));
  return Array.from({ length: longest }, (_, i) => zones.flatMap((zone) => zone.slice(i, i + 1))).flat();
}
