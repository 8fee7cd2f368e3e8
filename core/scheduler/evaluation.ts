/**
 * One pod against all filters: prepared once, then asked node by node.
 *
 * Pods that are nominated to a node will be there soon: the pod must fit with them, and without them as well, as they may go elsewhere.
 *
 * Source: kubernetes v1.36 pkg/scheduler/framework/runtime/framework.go RunFilterPluginsWithNominatedPods
 */
import type { Candidate } from "./candidate.ts";
import type { Cluster } from "./cluster.ts";
import type { Kind } from "./kinds.ts";
import type { LiveNode, PlacedPod } from "./node-info.ts";
import type { Check, Filter } from "./plugin.ts";
import { type PluginTimes, timed, UNPREPARED } from "./plugin-times.ts";
import type { NodeRejection, Rejection } from "./rejection.ts";

export class Evaluation {
  /** Set: no node can take the pod. */
  readonly refusal: { readonly filter: string; readonly reason: string } | undefined;
  /** The only nodes that need a look; undefined: all. `namedBy`: the filters that say so. */
  readonly onlyNodes: ReadonlySet<string> | undefined;
  readonly namedBy: readonly string[];
  readonly #candidate: Candidate;
  readonly #cluster: Cluster;
  readonly #checks: { readonly name: string; readonly check: Check; asked: number; last?: { readonly rejection: Rejection; readonly named: NodeRejection } }[] = [];
  readonly #kind: Kind | undefined;
  /** So many of the first checks come from the node alone. */
  readonly #ofNode: number = 0;
  /** Filters that have nothing to say about this pod. */
  readonly idle: readonly string[];

  readonly #times: PluginTimes | undefined;

  /** With `kind`, nodes are not asked again what they have said of such pods. `times`: each filter is timed. */
  constructor(candidate: Candidate, cluster: Cluster, filters: readonly Filter[], { kind, times }: { readonly kind?: Kind | undefined; readonly times?: PluginTimes | undefined } = {}) {
    this.#candidate = candidate;
    this.#cluster = cluster;
    this.#kind = kind;
    this.#times = times;
    let alone = true;
    let onlyNodes: ReadonlySet<string> | undefined;
    const namedBy: string[] = [];
    const idle: string[] = [];
    for (const { name, prepare, ofNode } of filters) {
      alone &&= ofNode === true;
      const check = timed(UNPREPARED.PreFilter.has(name) ? undefined : times, { point: "PreFilter", plugin: name }, () => prepare(candidate, cluster), (found) => (!found ? "Skip" : "refused" in found ? "UnschedulableAndUnresolvable" : "Success"));
      if (!check) {
        idle.push(name);
        continue;
      }
      if ("refused" in check) {
        this.refusal = { filter: name, reason: check.refused };
        break;
      }
      this.#checks.push({ name, check, asked: 0 });
      if (alone) this.#ofNode++;
      if (!check.onlyNodes) continue;
      onlyNodes = onlyNodes ? onlyNodes.intersection(check.onlyNodes) : check.onlyNodes;
      namedBy.push(name);
    }
    this.onlyNodes = onlyNodes;
    this.namedBy = namedBy;
    this.idle = idle;
  }

  /** undefined: the pod fits. `node` may be a copy with other pods on it, if `podMoved` was told. */
  reject(node: LiveNode): NodeRejection | undefined {
    const nominated = this.#cluster.nominatedTo(node.name);
    return nominated.length === 0 ? this.#first(node) : this.#withNominated(node, nominated, (one) => this.#first(one));
  }

  /** Filters that have something to say about the pod, once each. */
  prepared(): Iterable<readonly [filter: string, times: number]> {
    return [...this.#checks.map(({ name }) => name), ...(this.refusal ? [this.refusal.filter] : [])].filter((name) => !UNPREPARED.PreFilter.has(name)).map((name) => [name, 1] as const);
  }

  /** How many nodes each filter was asked about. */
  asked(): Iterable<readonly [filter: string, nodes: number]> {
    return this.#checks.map(({ name, asked }) => [name, asked] as const);
  }

  /** What every filter has to say, not just the first that says no. */
  rejections(node: LiveNode): readonly NodeRejection[] {
    return this.#withNominated(node, this.#cluster.nominatedTo(node.name), (one) => this.#all(one)) ?? [];
  }

  /** What `ask` finds with the pods that are nominated to the node, else what it finds without. */
  #withNominated<T>(node: LiveNode, nominated: readonly PlacedPod[], ask: (node: LiveNode) => T | undefined): T | undefined {
    const { pod } = this.#candidate;
    const coming = nominated.filter((other) => other.pod.metadata.uid !== pod.metadata.uid && priorityOf(other) >= priorityOf(this.#candidate) && !node.pods.has(other.pod.metadata.uid));
    if (coming.length > 0) {
      const crowded = node.copy() as LiveNode;
      for (const other of coming) this.move(other, crowded, 1);
      const found = ask(crowded);
      for (const other of coming) this.move(other, crowded, -1);
      if (found) return found;
    }
    return ask(node);
  }

  /** Adds a pod to a copied node, or removes it, and thinks of the cluster accordingly. */
  move(placed: PlacedPod, node: LiveNode, by: 1 | -1): void {
    if (by > 0) node.add(placed);
    else node.remove(placed.pod.metadata.uid);
    for (const { check } of this.#checks) check.podMoved?.(placed, node, by);
  }

  #first(node: LiveNode): NodeRejection | undefined {
    if (!this.#kind) return this.#ask(node, 0, this.#checks.length);
    const saying = node.saying(this.#kind);
    saying.rejection ??= this.#ask(node, 0, this.#ofNode) ?? "fits";
    return saying.rejection === "fits" ? this.#ask(node, this.#ofNode, this.#checks.length) : saying.rejection;
  }

  #ask(node: LiveNode, from: number, to: number): NodeRejection | undefined {
    for (let i = from; i < to; i++) {
      const one = this.#checks[i]!;
      one.asked++;
      const rejection = this.#times ? timed(this.#times, { point: "Filter", plugin: one.name }, () => one.check.reject(node), (found) => (!found ? "Success" : found.resolvable ? "Unschedulable" : "UnschedulableAndUnresolvable")) : one.check.reject(node);
      if (!rejection) continue;
      if (one.last?.rejection !== rejection) one.last = { rejection, named: { filter: one.name, ...rejection } }; // many nodes say the same
      return one.last.named;
    }
    return undefined;
  }

  #all(node: LiveNode): NodeRejection[] | undefined {
    const found = this.#checks.flatMap(({ name, check }) => {
      const rejection = check.reject(node);
      return rejection ? [{ filter: name, ...rejection }] : [];
    });
    return found.length > 0 ? found : undefined;
  }
}

export function priorityOf({ pod }: { readonly pod: Candidate["pod"] }): number {
  return pod.spec.priority ?? 0;
}
