/** A node, the pods on it, and what they take up. */
import type { Node, Pod } from "../api/gen/core.v1.ts";
import { asDouble } from "../api/meta/go-integer.ts";
import { hostPortsOf } from "../api/meta/host-ports.ts";
import { type AffinityTerms, affinityTerms } from "./affinity-terms.ts";
import type { Kind, Saying } from "./kinds.ts";
import { amounts, assumedRequests, podRequests, type Requests } from "./pod-requests.ts";

export interface PlacedPod {
  readonly pod: Readonly<Pod>;
  readonly requests: Requests;
  readonly terms: AffinityTerms;
}

export function placedPod(pod: Readonly<Pod>): PlacedPod {
  return { pod, requests: podRequests(pod), terms: affinityTerms(pod) };
}

export const NO_IMAGES: ReadonlyMap<string, number> = new Map();
/** A node that many kinds of pods were tried on, and that has not changed meanwhile, forgets what it said. */
const SAYINGS_MAX = 16;

export class NodeInfo {
  readonly name: string;
  node: Readonly<Node> | undefined;
  readonly pods = new Map<string, PlacedPod>(); // by uid
  readonly requested: Record<string, number> = {};
  /** As `requested`, but a container that asks for nothing counts as one that asks for a little: for scores. */
  readonly assumed = { cpu: 0, memory: 0 };
  allocatable: Requests = {};
  /** "ip/protocol/port" → how many pods use it. */
  readonly hostPorts = new Map<string, number>();
  /** Whether pods had better not go there: a taint of effect PreferNoSchedule. */
  hasSoftTaints = false;
  /** Images it has: name → bytes. */
  images: ReadonlyMap<string, number> = NO_IMAGES;
  /** What it was found to say of pods, as it is now. */
  readonly #sayings = new Map<Kind, Saying>();

  constructor(name: string) {
    this.name = name;
  }

  set(node: Readonly<Node>): void {
    const old = this.node;
    this.node = node;
    this.#sayings.clear();
    this.hasSoftTaints = node.spec.taints?.some(({ effect }) => effect === "PreferNoSchedule") ?? false;
    if (!old || !Bun.deepEquals(old.status?.allocatable, node.status?.allocatable)) this.allocatable = amounts(node.status?.allocatable);
    if (!old || !Bun.deepEquals(old.status?.images, node.status?.images))
      this.images = new Map((node.status?.images ?? []).flatMap(({ names, sizeBytes }) => (names ?? []).map((name) => [name, asDouble(sizeBytes ?? 0)] as const)));
  }

  /** There is no such node any more; pods may be on it still. */
  unset(): void {
    this.node = undefined;
    this.images = NO_IMAGES;
    this.#sayings.clear();
  }

  /** To think about what would be if pods came or went. */
  copy(): NodeInfo {
    const copy = new NodeInfo(this.name);
    copy.node = this.node;
    copy.allocatable = this.allocatable;
    copy.images = this.images;
    copy.hasSoftTaints = this.hasSoftTaints;
    for (const [uid, placed] of this.pods) copy.pods.set(uid, placed);
    Object.assign(copy.requested, this.requested);
    Object.assign(copy.assumed, this.assumed);
    for (const [port, count] of this.hostPorts) copy.hostPorts.set(port, count);
    return copy;
  }

  /** To be filled in by who asks. */
  saying(kind: Kind): Saying {
    const known = this.#sayings.get(kind);
    if (known) return known;
    if (this.#sayings.size >= SAYINGS_MAX) this.#sayings.clear();
    const saying: Saying = { rejection: undefined, worth: undefined };
    this.#sayings.set(kind, saying);
    return saying;
  }

  add(placed: PlacedPod): void {
    this.pods.set(placed.pod.metadata.uid, placed);
    this.#count(placed, 1);
  }

  remove(uid: string): PlacedPod | undefined {
    const placed = this.pods.get(uid);
    if (!placed) return undefined;
    this.pods.delete(uid);
    this.#count(placed, -1);
    return placed;
  }

  #count({ pod, requests }: PlacedPod, sign: 1 | -1): void {
    this.#sayings.clear();
    for (const name in requests) this.requested[name] = (this.requested[name] ?? 0) + sign * requests[name]!;
    const { cpu, memory } = assumedRequests(pod, requests);
    this.assumed.cpu += sign * cpu;
    this.assumed.memory += sign * memory;
    for (const port of hostPortsOf(pod.spec)) {
      const count = (this.hostPorts.get(port) ?? 0) + sign;
      if (count > 0) this.hostPorts.set(port, count);
      else this.hostPorts.delete(port);
    }
  }
}

/** A node that exists. */
export type LiveNode = NodeInfo & { readonly node: Readonly<Node> };
