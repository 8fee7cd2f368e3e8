/**
 * Pods that must be, or must not be, where certain other pods are.
 *
 * Three counts are kept by topology value ("zone=a"): pods that match all required affinity terms of the incoming pod; pods that match one of its
 * anti-affinity terms; and placed pods whose own anti-affinity means the incoming pod.
 *
 * Source: kubernetes v1.36 pkg/scheduler/framework/plugins/interpodaffinity/filtering.go
 */
import type { Pod } from "../../api/gen/core.v1.ts";
import { labelAt, labelsOf, namespaceOf } from "../../api/meta/object-meta.ts";
import { type AffinityTerm, type AffinityTerms, affinityTerms, termMatches } from "../affinity-terms.ts";
import type { ClusterChange } from "../changes.ts";
import type { Cluster } from "../cluster.ts";
import type { LiveNode } from "../node-info.ts";
import type { Filter } from "../plugin.ts";
import type { PodQuery } from "../pod-index.ts";
import { resolvable, unresolvable } from "../rejection.ts";
import type { Counts } from "../whereabouts.ts";

const AFFINITY = unresolvable("node(s) didn't match pod affinity rules");
const ANTI_AFFINITY = resolvable("node(s) didn't match pod anti-affinity rules");
const EXISTING_ANTI_AFFINITY = resolvable("node(s) didn't satisfy existing pods anti-affinity rules");

export const interPodAffinity: Filter = {
  name: "InterPodAffinity",
  prepare({ pod, terms }, cluster) {
    const labelsOfNamespace = (other: Readonly<Pod>) => cluster.owners.namespaceLabels(namespaceOf(other));
    const own = labelsOfNamespace(pod);
    const repelledBy = new TopologyCounts();
    for (const { term, where } of cluster.pods.holders("antiAffinity")) if (termMatches(term, pod, own)) repelledBy.addAll(term.topologyKey, where.by(term.topologyKey));
    const { affinity, antiAffinity } = terms;
    if (affinity.length === 0 && antiAffinity.length === 0 && repelledBy.empty) return undefined;

    const matchesAll = (other: Readonly<Pod>): boolean => affinity.length > 0 && affinity.every((term) => termMatches(term, other, labelsOfNamespace(other)));
    const attracted = new TopologyCounts(), near = [...new Set(affinity.map(({ topologyKey }) => topologyKey))];
    if (affinity.length > 0) {
      const where = cluster.pods.where(queryOf(affinity, cluster));
      for (const { topologyKey } of affinity) attracted.addAll(topologyKey, where.by(topologyKey));
    }
    const repelled = new TopologyCounts();
    for (const term of antiAffinity) repelled.addAll(term.topologyKey, cluster.pods.where(queryOf([term], cluster)).by(term.topologyKey));

    return {
      reject(node) {
        if (!attracted.allAt(near, node)) {
          const first = attracted.empty && matchesAll(pod); // of a series of pods that want to be together: somebody has to begin
          if (!first || near.some((topologyKey) => labelAt(labelsOf(node.node), topologyKey) === undefined)) return AFFINITY;
        }
        if (repelled.anyAt(node)) return ANTI_AFFINITY;
        return repelledBy.anyAt(node) ? EXISTING_ANTI_AFFINITY : undefined;
      },
      podMoved(placed, node, by) {
        for (const term of placed.terms.antiAffinity) if (termMatches(term, pod, own)) repelledBy.move(term.topologyKey, node, by);
        if (matchesAll(placed.pod)) for (const { topologyKey } of affinity) attracted.move(topologyKey, node, by);
        for (const term of antiAffinity) if (termMatches(term, placed.pod, labelsOfNamespace(placed.pod))) repelled.move(term.topologyKey, node, by);
      },
    };
  },
  mayHelp(pod, change, cluster) {
    const { affinity, antiAffinity } = affinityTerms(pod);
    const means = (term: AffinityTerm, other: Readonly<Pod>): boolean => termMatches(term, other, cluster.owners.namespaceLabels(namespaceOf(other)));
    switch (change.of) {
      case "node": return nodeMayHelp({ affinity, antiAffinity }, change, () => repelledIn(pod, cluster));
      case "pod": return change.object.metadata.uid === pod.metadata.uid && !Bun.deepEquals(labelsOf(change.object), labelsOf(change.old ?? change.object));
      case "namespace": return change.object.metadata.name === namespaceOf(pod) || [...affinity, ...antiAffinity].some(({ namespaceSelector }) => !namespaceSelector.nothing);
      case "placed pod": {
        const { object, old, deleted } = change;
        const attracts = (other: Readonly<Pod>): boolean => affinity.length > 0 && affinity.every((term) => means(term, other)); // one pod has to be what all terms mean
        if (deleted) return antiAffinity.some((term) => means(term, object)) || affinityTerms(object).antiAffinity.some((term) => means(term, pod)) || (attracts(object) && attracts(pod)); // it may be the first of its series now
        if (!old) return attracts(object);
        return (attracts(object) && !attracts(old)) || antiAffinity.some((term) => means(term, old) && !means(term, object));
      }
      default: return false;
    }
  },
};

/** The topologies in which placed pods do not want it near them. */
function repelledIn(pod: Readonly<Pod>, cluster: Cluster): string[] {
  const own = cluster.owners.namespaceLabels(namespaceOf(pod));
  return [...cluster.pods.holders("antiAffinity")].flatMap(({ term }) => (termMatches(term, pod, own) ? [term.topologyKey] : []));
}

/** A node that is where the pod wants to be near others, or no longer where others keep it off. One that is repelled by others without terms of its own may be on any. */
function nodeMayHelp({ affinity, antiAffinity }: Pick<AffinityTerms, "affinity" | "antiAffinity">, change: ClusterChange & { readonly of: "node" }, repelled: () => readonly string[]): boolean {
  const { object, old, deleted } = change;
  if (deleted) return true; // who was on it is nowhere
  const [now, before] = [labelsOf(object), old && labelsOf(old)];
  if (before && Bun.deepEquals(now, before)) return false;
  if (affinity.length + antiAffinity.length === 0) return true;
  if (!before) return antiAffinity.length > 0 || affinity.some(({ topologyKey }) => labelAt(now, topologyKey) !== undefined);
  return affinity.some(({ topologyKey }) => labelAt(now, topologyKey) !== undefined && labelAt(now, topologyKey) !== labelAt(before, topologyKey))
    || [...antiAffinity.map(({ topologyKey }) => topologyKey), ...repelled()].some((topologyKey) => labelAt(before, topologyKey) !== undefined && labelAt(now, topologyKey) !== labelAt(before, topologyKey));
}

/** Pods that all of `terms` mean. */
export function queryOf(terms: readonly AffinityTerm[], cluster: Cluster): PodQuery {
  const spaces = terms.map(({ namespaces, namespaceSelector }) =>
    namespaceSelector.empty ? undefined : namespaceSelector.nothing ? namespaces : [...new Set([...namespaces, ...cluster.owners.namespacesMatching(namespaceSelector)])].sort());
  return {
    key: `affinity ${JSON.stringify(terms.map(({ selector }, i) => [spaces[i] ?? null, selector.nothing ? null : selector.toString()]))}`,
    namespaces: spaces.length === 1 ? spaces[0] : undefined,
    selectors: terms.map(({ selector }) => selector),
    matches: (pod) => terms.every(({ selector }, i) => (spaces[i]?.includes(namespaceOf(pod)) ?? true) && selector.matches(labelsOf(pod))),
  };
}

/** Counts of pods by topology key and value: what is known of the cluster, and what has moved since. */
class TopologyCounts {
  readonly #known = new Map<string, Map<Counts, number>>(); // how often each was added: ten thousand terms may mean the same
  readonly #moved = new Map<string, Map<string, number>>();
  #empty = true;

  /** No pod anywhere. */
  get empty(): boolean { return this.#empty; }

  addAll(topologyKey: string, counts: Counts): void {
    if (counts.size === 0) return;
    let known = this.#known.get(topologyKey);
    if (!known) this.#known.set(topologyKey, (known = new Map()));
    known.set(counts, (known.get(counts) ?? 0) + 1);
    this.#empty = false;
  }

  move(topologyKey: string, { node }: LiveNode, by: 1 | -1): void {
    const value = labelAt(labelsOf(node), topologyKey);
    if (value === undefined) return;
    let moved = this.#moved.get(topologyKey);
    if (!moved) this.#moved.set(topologyKey, (moved = new Map()));
    moved.set(value, (moved.get(value) ?? 0) + by);
    this.#empty = this.#sum() === 0;
  }

  at(topologyKey: string, { node }: LiveNode): number {
    const value = labelAt(labelsOf(node), topologyKey);
    if (value === undefined) return 0;
    let sum = this.#moved.size === 0 ? 0 : this.#moved.get(topologyKey)?.get(value) ?? 0;
    for (const [counts, times] of this.#known.get(topologyKey) ?? []) sum += (counts.get(value) ?? 0) * times;
    return sum;
  }

  allAt(topologyKeys: readonly string[], node: LiveNode): boolean {
    for (const topologyKey of topologyKeys) if (this.at(topologyKey, node) <= 0) return false;
    return true;
  }

  anyAt(node: LiveNode): boolean {
    const labels = labelsOf(node.node);
    for (const [topologyKey, known] of this.#known) {
      const value = labelAt(labels, topologyKey);
      if (value === undefined) continue;
      if (this.#moved.size > 0 ? this.at(topologyKey, node) > 0 : [...known.keys()].some((counts) => counts.has(value))) return true;
    }
    for (const topologyKey of this.#moved.keys()) if (this.at(topologyKey, node) > 0) return true;
    return false;
  }

  #sum(): number {
    let sum = 0;
    for (const known of this.#known.values()) for (const [counts, times] of known) for (const count of counts.values()) sum += count * times;
    for (const moved of this.#moved.values()) for (const count of moved.values()) sum += count;
    return sum;
  }
}
