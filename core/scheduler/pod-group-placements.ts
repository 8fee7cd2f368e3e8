/**
 * Where the pods of a group may go together: with a topology constraint, the nodes of one domain (a rack, a zone), else all. Each placement is tried; of those where the group gets off the
 * one is taken that more of its pods have a place in and that is filled best.
 *
 * There where the feature gate TopologyAwareWorkloadScheduling is on.
 *
 * Source: kubernetes v1.36 pkg/scheduler/framework/plugins/{topologyaware,podgrouppodscount}, noderesources/resource_allocation.go scorePlacement
 */
import type { PodGroup } from "../api/gen/scheduling.v1alpha2.ts";
import { labelsOf } from "../api/meta/object-meta.ts";
import type { Candidate } from "./candidate.ts";
import type { LiveNode } from "./node-info.ts";
import { SCORE_MAX } from "./plugin.ts";
import { scoredRequests } from "./pod-requests.ts";
import type { ResourceWeights } from "./scores/resources.ts";

/** What a profile makes of the topology a group asks for. */
export interface PlacementRules {
  /** Whether it is obeyed: TopologyPlacementGenerator. */
  readonly byTopology: boolean;
  /** What each score of a placement weighs; 0: it is not asked. */
  readonly podsWeight: number;
  readonly fitWeight: number;
  /** What counts of how full a placement is. */
  readonly resources: ResourceWeights;
}

export interface GroupPlacement { readonly name: string; readonly nodes: readonly LiveNode[] }

/** What was found for one pod of the group: a node of the placement. */
export type Proposed = Pick<Candidate, "pod" | "requests">;

interface Placed {
  /** Pods of the group that count on a node, and on which. */
  readonly placed: readonly { readonly key: string; readonly node: string }[];
  node(name: string): LiveNode | undefined;
}

/** All that are worth a try. Pods of the group that have a node already say which it is. */
export function placementsOf(podGroup: Readonly<PodGroup>, nodes: readonly LiveNode[], among: Placed): readonly GroupPlacement[] | { readonly error: string } {
  const key = podGroup.spec.schedulingConstraints?.topology?.[0]?.key;
  if (key === undefined) return [{ name: "", nodes }];
  const required = domainOf(key, among);
  if (typeof required === "object") return { error: `cannot determine domain for already scheduled pods: ${required.error}` };
  const domains = Map.groupBy(nodes.filter(({ node }) => labelsOf(node)[key] !== undefined), ({ node }) => labelsOf(node)[key]!);
  return [...domains].filter(([name]) => required === undefined || name === required).map(([name, of]) => ({ name, nodes: of }));
}

function domainOf(key: string, { placed, node }: Placed): string | undefined | { readonly error: string } {
  let domain: string | undefined;
  for (const one of placed) {
    const on = node(one.node);
    if (!on) return { error: `getting node for pod ${one.key}: nodeinfo not found for node name ${JSON.stringify(one.node)}` };
    const here = labelsOf(on.node)[key];
    if (here === undefined) return { error: `no topology domain found for pod ${one.key}` };
    if (domain !== undefined && domain !== here) return { error: `more than 1 domain found for pod group: ${domain}, ${here}` };
    domain = here;
  }
  return domain;
}

/** How good each placement is, with the pods that would go there. `placed`: pods of the group that have a node already. */
export function placementScores(tried: readonly { readonly placement: GroupPlacement; readonly proposed: readonly Proposed[] }[], { rules, placed }: { readonly rules: PlacementRules; readonly placed: number }): number[] {
  const counts = tried.map(({ proposed }) => placed + proposed.length), most = Math.max(1, ...counts);
  return tried.map(({ placement, proposed }, i) => rules.podsWeight * Math.trunc((counts[i]! * SCORE_MAX) / most) + (rules.fitWeight > 0 ? rules.fitWeight * fullness(placement, proposed, rules.resources) : 0));
}

/** The fuller the better, so that others keep room that belongs together. */
function fullness({ nodes }: GroupPlacement, proposed: readonly Proposed[], resources: ResourceWeights): number {
  const wanted = proposed.map(({ pod, requests }) => scoredRequests(pod, requests));
  let sum = 0, weights = 0;
  for (const [name, weight] of Object.entries(resources)) {
    const has = nodes.reduce((all, { allocatable }) => all + (allocatable[name] ?? 0), 0);
    if (has === 0) continue;
    const used = nodes.reduce((all, { assumed, requested }) => all + (name === "cpu" ? assumed.cpu : name === "memory" ? assumed.memory : (requested[name] ?? 0)), 0);
    const more = wanted.reduce((all, one) => all + (one[name] ?? 0), 0);
    sum += Math.trunc((Math.min(has, used + more) * SCORE_MAX) / has) * weight;
    weights += weight;
  }
  return weights === 0 ? 0 : Math.trunc(sum / weights);
}
