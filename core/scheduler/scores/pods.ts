/** Scores on which pods are where: spread over domains, and preferred affinity. */
import { labelAt, labelsOf, namespaceOf } from "../../api/meta/object-meta.ts";
import { termMatches } from "../affinity-terms.ts";
import { queryOf } from "../filters/inter-pod-affinity.ts";
import { constraintsOf, hasAll, keysOf, matchingPods, matchingPodsByDomain, type SpreadDefaults, SYSTEM_DEFAULTS } from "../filters/pod-topology-spread.ts";
import type { LiveNode } from "../node-info.ts";
import { type Score, SCORE_MAX } from "../plugin.ts";
import type { Counts } from "../whereabouts.ts";

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
      const required = needsAll ? keysOf(constraints) : [];
      const ignored = new Set(needsAll ? feasible.filter(({ node }) => !hasAll(node, required)) : []);
      const parts = constraints.map((constraint) => {
        const { topologyKey, maxSkew } = constraint;
        if (topologyKey === HOSTNAME) return { topologyKey, maxSkew, perNode: matchingPods(constraint, pod, cluster)?.perNode, weight: Math.log(feasible.length - ignored.size + 2) };
        const domains = new Set<string>();
        for (const node of feasible) if (!ignored.has(node)) domains.add(labelAt(labelsOf(node.node), topologyKey) ?? "");
        return { topologyKey, maxSkew, byDomain: matchingPodsByDomain(constraint, required, { pod, cluster }), weight: Math.log(domains.size + 2) };
      });
      return {
        score(node) {
          if (ignored.has(node)) return 0;
          const labels = labelsOf(node.node);
          let score = 0;
          for (const { topologyKey, maxSkew, perNode, byDomain, weight } of parts) {
            const value = labelAt(labels, topologyKey);
            if (value !== undefined) score += ((byDomain ? byDomain.get(value) : perNode?.get(node.name)) ?? 0) * weight + (maxSkew - 1);
          }
          return Math.round(score);
        },
        normalize(scores, nodes) {
          let lowest = Number.POSITIVE_INFINITY, highest = 0;
          for (let i = 0; i < scores.length; i++) {
            if (ignored.has(nodes[i]!)) continue;
            lowest = Math.min(lowest, scores[i]!);
            highest = Math.max(highest, scores[i]!);
          }
          return scores.map((score, i) => (ignored.has(nodes[i]!) ? 0 : highest === 0 ? SCORE_MAX : Math.trunc((SCORE_MAX * (highest + lowest - score)) / highest)));
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
      const parts: { readonly topologyKey: string; readonly counts: Counts; readonly weight: number }[] = [];
      const add = (topologyKey: string, counts: Counts, weight: number): void => { if (counts.size > 0) parts.push({ topologyKey, counts, weight }); };
      for (const term of terms.preferred) add(term.topologyKey, cluster.pods.where(queryOf([term], cluster)).by(term.topologyKey), term.weight);
      for (const term of terms.preferredAnti) add(term.topologyKey, cluster.pods.where(queryOf([term], cluster)).by(term.topologyKey), -term.weight);
      const namespace = cluster.owners.namespaceLabels(namespaceOf(pod));
      for (const [kind, weightOf] of [["preferred", (weight: number) => weight], ["preferredAnti", (weight: number) => -weight], ["affinity", () => hardPodAffinityWeight]] as const)
        for (const { term, where } of cluster.pods.holders(kind)) if (weightOf(term.weight) !== 0 && termMatches(term, pod, namespace)) add(term.topologyKey, where.by(term.topologyKey), weightOf(term.weight));
      if (parts.length === 0) return undefined;
      return {
        score({ node }: LiveNode) {
          const labels = labelsOf(node);
          let score = 0;
          for (const { topologyKey, counts, weight } of parts) {
            const value = labelAt(labels, topologyKey);
            if (value !== undefined) score += (counts.get(value) ?? 0) * weight;
          }
          return score;
        },
        normalize(scores) {
          let lowest = Number.POSITIVE_INFINITY, highest = Number.NEGATIVE_INFINITY;
          for (const score of scores) {
            lowest = Math.min(lowest, score);
            highest = Math.max(highest, score);
          }
          const range = highest - lowest;
          return scores.map((score) => (range > 0 ? Math.trunc(SCORE_MAX * ((score - lowest) / range)) : 0)); // divided first, as upstream does: 29 of 100 are worth 28
        },
      };
    },
  };
}
