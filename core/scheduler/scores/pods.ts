/** Scores on which pods are where: spread over domains, and preferred affinity. */
import { labelsOf, namespaceOf } from "../../api/meta/object-meta.ts";
import { termMatches } from "../affinity-terms.ts";
import { byTopology } from "../cluster.ts";
import { constraintsOf, counts, hasAllLabels, matchingPods, type SpreadDefaults, SYSTEM_DEFAULTS } from "../filters/pod-topology-spread.ts";
import { queryOf } from "../filters/inter-pod-affinity.ts";
import { type Score, SCORE_MAX } from "../plugin.ts";

const HOSTNAME = "kubernetes.io/hostname";

/** The fewer matching pods in a node's domains, the better; large topologies weigh more. Source: podtopologyspread/scoring.go */
export function podTopologySpreadScore(defaults: SpreadDefaults = SYSTEM_DEFAULTS): Score {
  return {
    name: "PodTopologySpread",
    weight: 2,
    prepare({ pod }, cluster, feasible) {
      const constraints = constraintsOf(pod, "ScheduleAnyway", defaults, cluster);
      if (constraints.length === 0) return undefined;
      const needsAll = (pod.spec.topologySpreadConstraints ?? []).length > 0 || !defaults.system;
      const ignored = new Set(needsAll ? feasible.filter(({ node }) => !hasAllLabels(node, constraints)).map(({ name }) => name) : []);
      const parts = constraints.map((constraint) => {
        const { topologyKey } = constraint;
        const perNode = matchingPods(constraint, pod, cluster);
        if (topologyKey === HOSTNAME) return { constraint, perNode, domains: undefined, weight: Math.log(feasible.length - ignored.size + 2) };
        const domains = new Map<string, number>();
        for (const { name, node } of feasible) if (!ignored.has(name)) domains.set(labelsOf(node)[topologyKey] ?? "", 0);
        for (const [name, count] of perNode) {
          const node = cluster.node(name)?.node;
          if (!node || (needsAll && !hasAllLabels(node, constraints)) || !counts(constraint, pod, node)) continue;
          const value = labelsOf(node)[topologyKey] ?? "";
          if (domains.has(value)) domains.set(value, domains.get(value)! + count);
        }
        return { constraint, perNode, domains, weight: Math.log(domains.size + 2) };
      });
      return {
        score({ name, node }) {
          if (ignored.has(name)) return 0;
          let score = 0;
          for (const { constraint: { topologyKey, maxSkew }, perNode, domains, weight } of parts) {
            const value = labelsOf(node)[topologyKey];
            if (value !== undefined) score += ((domains ? domains.get(value) : perNode.get(name)) ?? 0) * weight + (maxSkew - 1);
          }
          return Math.round(score);
        },
        normalize(scores, nodes) {
          const scored = scores.filter((_, i) => !ignored.has(nodes[i]!.name));
          const lowest = Math.min(...scored);
          const highest = Math.max(0, ...scored);
          return scores.map((score, i) => (ignored.has(nodes[i]!.name) ? 0 : highest === 0 ? SCORE_MAX : Math.trunc((SCORE_MAX * (highest + lowest - score)) / highest)));
        },
      };
    },
  };
}

export interface InterPodAffinityArgs {
  /** What a placed pod's required affinity to the incoming pod is worth. */
  readonly hardPodAffinityWeight: number;
  readonly ignorePreferredTermsOfExistingPods: boolean;
}

/** Preferred terms of the pod itself, and those of placed pods that mean it. Source: interpodaffinity/scoring.go */
export function interPodAffinityScore({ hardPodAffinityWeight, ignorePreferredTermsOfExistingPods }: InterPodAffinityArgs = { hardPodAffinityWeight: 1, ignorePreferredTermsOfExistingPods: false }): Score {
  return {
    name: "InterPodAffinity",
    weight: 2,
    prepare({ pod, terms }, cluster) {
      const own = terms.preferred.length + terms.preferredAnti.length > 0;
      if (ignorePreferredTermsOfExistingPods && !own) return undefined;
      const worth = new Map<string, Map<string, number>>();
      const add = (topologyKey: string, perNode: Iterable<readonly [string, number]>, weight: number): void => {
        let values = worth.get(topologyKey);
        if (!values) worth.set(topologyKey, (values = new Map()));
        for (const [value, count] of byTopology(perNode, topologyKey, cluster)) values.set(value, (values.get(value) ?? 0) + count * weight);
      };
      for (const term of terms.preferred) add(term.topologyKey, cluster.pods.count(queryOf([term], cluster)), term.weight);
      for (const term of terms.preferredAnti) add(term.topologyKey, cluster.pods.count(queryOf([term], cluster)), -term.weight);
      const namespace = cluster.owners.namespaceLabels(namespaceOf(pod));
      for (const [kind, weightOf] of [["preferred", (weight: number) => weight], ["preferredAnti", (weight: number) => -weight], ["affinity", () => hardPodAffinityWeight]] as const)
        for (const { term, perNode } of cluster.pods.holders(kind)) if (weightOf(term.weight) !== 0 && termMatches(term, pod, namespace)) add(term.topologyKey, perNode, weightOf(term.weight));
      if (worth.size === 0) return undefined;
      return {
        score({ node }) {
          const labels = labelsOf(node);
          let score = 0;
          for (const [topologyKey, values] of worth) score += values.get(labels[topologyKey] ?? "") ?? 0;
          return score;
        },
        normalize(scores) {
          const lowest = Math.min(...scores);
          const range = Math.max(...scores) - lowest;
          return scores.map((score) => (range > 0 ? Math.trunc((SCORE_MAX * (score - lowest)) / range) : 0));
        },
      };
    },
  };
}
