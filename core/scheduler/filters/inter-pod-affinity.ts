/**
 * Pods that must be, or must not be, where certain other pods are.
 *
 * Three counts are kept by topology value ("zone=a"): pods that match all required affinity terms of the incoming pod; pods that match one of its
 * anti-affinity terms; and placed pods whose own anti-affinity means the incoming pod.
 *
 * Source: kubernetes v1.36 pkg/scheduler/framework/plugins/interpodaffinity/filtering.go
 */
import type { Pod } from "../../api/gen/core.v1.ts";
import { labelsOf, namespaceOf } from "../../api/meta/object-meta.ts";
import { type AffinityTerm, affinityTerms, termMatches } from "../affinity-terms.ts";
import { nodeChanged } from "../changes.ts";
import { byTopology, type Cluster } from "../cluster.ts";
import { type Filter, type LiveNode, resolvable, unresolvable } from "../plugin.ts";
import type { PodQuery } from "../pod-index.ts";

const AFFINITY = "node(s) didn't match pod affinity rules";
const ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules";
const EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules";

export const interPodAffinity: Filter = {
  name: "InterPodAffinity",
  prepare({ pod, terms }, cluster) {
    const labelsOfNamespace = (other: Readonly<Pod>) => cluster.owners.namespaceLabels(namespaceOf(other));
    const own = labelsOfNamespace(pod);
    const repelledBy = new TopologyCounts();
    for (const { term, perNode } of cluster.pods.holders("antiAffinity")) if (termMatches(term, pod, own)) repelledBy.addAll(term.topologyKey, byTopology(perNode, term.topologyKey, cluster));
    const { affinity, antiAffinity } = terms;
    if (affinity.length === 0 && antiAffinity.length === 0 && repelledBy.empty) return undefined;

    const matchesAll = (other: Readonly<Pod>): boolean => affinity.length > 0 && affinity.every((term) => termMatches(term, other, labelsOfNamespace(other)));
    const attracted = new TopologyCounts();
    if (affinity.length > 0) {
      const perNode = cluster.pods.count(queryOf(affinity, cluster));
      for (const { topologyKey } of affinity) attracted.addAll(topologyKey, byTopology(perNode, topologyKey, cluster));
    }
    const repelled = new TopologyCounts();
    for (const term of antiAffinity) repelled.addAll(term.topologyKey, byTopology(cluster.pods.count(queryOf([term], cluster)), term.topologyKey, cluster));

    return {
      reject(node) {
        if (affinity.length > 0 && !affinity.every(({ topologyKey }) => attracted.at(topologyKey, node) > 0)) {
          const first = attracted.empty && matchesAll(pod); // of a series of pods that want to be together: somebody has to begin
          if (!first || affinity.some(({ topologyKey }) => labelsOf(node.node)[topologyKey] === undefined)) return unresolvable(AFFINITY);
        }
        if (antiAffinity.some(({ topologyKey }) => repelled.at(topologyKey, node) > 0)) return resolvable(ANTI_AFFINITY);
        return repelledBy.anyAt(node) ? resolvable(EXISTING_ANTI_AFFINITY) : undefined;
      },
      podMoved(placed, node, by) {
        for (const term of placed.terms.antiAffinity) if (termMatches(term, pod, own)) repelledBy.add(term.topologyKey, node, by);
        if (matchesAll(placed.pod)) for (const { topologyKey } of affinity) attracted.add(topologyKey, node, by);
        for (const term of antiAffinity) if (termMatches(term, placed.pod, labelsOfNamespace(placed.pod))) repelled.add(term.topologyKey, node, by);
      },
    };
  },
  mayHelp(pod, change, cluster) {
    const { affinity, antiAffinity } = affinityTerms(pod);
    switch (change.of) {
      case "node": {
        const keys = [...affinity, ...antiAffinity].map(({ topologyKey }) => topologyKey);
        return nodeChanged(change, ({ metadata }) => (keys.length === 0 ? metadata.labels ?? {} : keys.map((key) => metadata.labels?.[key])));
      }
      case "pod": return change.object.metadata.uid === pod.metadata.uid;
      case "namespace": return true;
      case "placed pod": {
        const meant = (terms: readonly AffinityTerm[], other: Readonly<Pod>): boolean => terms.some((term) => termMatches(term, other, cluster.owners.namespaceLabels(namespaceOf(other))));
        const repels = (other: Readonly<Pod>): boolean => meant(antiAffinity, other) || affinityTerms(other).antiAffinity.some((term) => termMatches(term, pod, cluster.owners.namespaceLabels(namespaceOf(pod))));
        if (change.deleted) return repels(change.object);
        if (change.old && Bun.deepEquals(change.old.metadata.labels, change.object.metadata.labels)) return false;
        return meant(affinity, change.object) || (change.old !== undefined && repels(change.old));
      }
      default: return false;
    }
  },
};

/** Pods that all of `terms` mean. */
export function queryOf(terms: readonly AffinityTerm[], cluster: Cluster): PodQuery {
  const spaces = terms.map(({ namespaces, namespaceSelector }) =>
    namespaceSelector.empty ? undefined : namespaceSelector.nothing ? namespaces : [...new Set([...namespaces, ...cluster.owners.namespacesMatching(namespaceSelector)])].sort());
  return {
    key: `affinity ${JSON.stringify(terms.map(({ selector }, i) => [spaces[i] ?? null, selector.nothing ? null : selector.toString()]))}`,
    namespaces: spaces.length === 1 ? spaces[0] : undefined,
    matches: (pod) => terms.every(({ selector }, i) => (spaces[i]?.includes(namespaceOf(pod)) ?? true) && selector.matches(labelsOf(pod))),
  };
}

/** Counts of pods by topology key and value. */
class TopologyCounts {
  readonly #counts = new Map<string, Map<string, number>>();

  get empty(): boolean {
    return this.#counts.size === 0;
  }

  addAll(topologyKey: string, counts: ReadonlyMap<string, number>): void {
    for (const [value, count] of counts) this.#add(topologyKey, value, count);
  }

  add(topologyKey: string, { node }: LiveNode, by: number): void {
    const value = labelsOf(node)[topologyKey];
    if (value !== undefined) this.#add(topologyKey, value, by);
  }

  at(topologyKey: string, { node }: LiveNode): number {
    const value = labelsOf(node)[topologyKey];
    return value === undefined ? 0 : this.#counts.get(topologyKey)?.get(value) ?? 0;
  }

  anyAt(node: LiveNode): boolean {
    for (const topologyKey of this.#counts.keys()) if (this.at(topologyKey, node) > 0) return true;
    return false;
  }

  #add(topologyKey: string, value: string, by: number): void {
    let counts = this.#counts.get(topologyKey);
    if (!counts) this.#counts.set(topologyKey, (counts = new Map()));
    const count = (counts.get(value) ?? 0) + by;
    if (count !== 0) counts.set(value, count);
    else counts.delete(value);
    if (counts.size === 0) this.#counts.delete(topologyKey);
  }
}
