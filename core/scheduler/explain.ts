/**
 * Why a pod is where it is, or where it cannot go: every filter asked about every node, every score of the nodes that would do, and whom preemption
 * would remove. A dry run over the cluster as it is now, thinking the pod away if it has a node. No I/O, nothing is changed.
 *
 * Unlike a real attempt it looks at all nodes, and asks filters that come after one that has said no. Extenders are not asked.
 */
import type { Pod } from "../api/gen/core.v1.ts";
import type { PodDisruptionBudget } from "../api/gen/policy.v1.ts";
import { errorText } from "../api/meta/error-text.ts";
import { keyOf } from "../api/meta/object-meta.ts";
import type { Candidate } from "./candidate.ts";
import type { Cluster } from "./cluster.ts";
import { Unfinished } from "./devices/plan.ts";
import { Evaluation } from "./evaluation.ts";
import { type LiveNode, placedPod } from "./node-info.ts";
import { explain, type NoPlacement, reasonsOf, scoresOf } from "./place.ts";
import type { Profile } from "./plugins.ts";
import type { GroupStanding } from "./pod-groups.ts";
import { preempt } from "./preempt.ts";
import type { Standing } from "./queue.ts";
import type { NodeRejection } from "./rejection.ts";

export interface SchedulingExplanation {
  readonly kind: "SchedulingExplanation";
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string };
  readonly schedulerName: string;
  /** Bound: it has a node. Gated: its scheduling gates are closed, or its group is not complete. */
  readonly state: "Bound" | "Gated" | "Ended" | "Terminating" | "Schedulable" | "Unschedulable" | "OtherScheduler";
  /** One sentence; for Unschedulable, upstream's. */
  readonly message: string;
  readonly nodeName?: string;
  readonly nominatedNodeName?: string;
  readonly queue?: Standing;
  /** The pods it is scheduled together with. */
  readonly group?: GroupStanding;
  /** The nodes it would go to now: several, if they are equally good. */
  readonly candidates: readonly string[];
  readonly filters: readonly FilterSummary[];
  /** The best first, then by name. */
  readonly nodes: readonly NodeExplanation[];
  readonly preemption?: { readonly message: string } | { readonly node: string; readonly victims: readonly string[] };
}

export interface FilterSummary {
  readonly name: string;
  /** idle: it has nothing to say about this pod. refused: it rules out every node at once. */
  readonly result: "idle" | "asked" | "refused";
  readonly passed: number;
  readonly rejected: number;
  /** How many nodes for each reason. */
  readonly reasons: Readonly<Record<string, number>>;
}

export interface NodeExplanation {
  readonly name: string;
  readonly fits: boolean;
  readonly rejectedBy: readonly { readonly filter: string; readonly reasons: readonly string[]; readonly preemptionMayHelp: boolean }[];
  /** Of nodes that fit: 0…100 each, and its weight. */
  readonly scores: readonly { readonly name: string; readonly score: number; readonly weight: number }[];
  readonly total: number;
}

interface World {
  /** The pod as it would be placed anew, if something has been found out about it before. */
  readonly candidate?: Candidate | undefined;
  /** In which the pod has no node. */
  readonly cluster: Cluster;
  /** undefined: the pod is somebody else's to place. */
  readonly profile: Profile | undefined;
  readonly budgets: readonly Readonly<PodDisruptionBudget>[];
  readonly standing?: Standing | undefined;
  readonly group?: GroupStanding | undefined;
}

export function placedAnew(pod: Readonly<Pod>): Candidate { return placedPod({ ...pod, spec: { ...pod.spec, nodeName: undefined } } as unknown as Pod); }

/** Throws Unfinished where the candidate's plan of devices may pause. */
export function explainScheduling(pod: Readonly<Pod>, { candidate = placedAnew(pod), cluster, profile, budgets, standing, group }: World): SchedulingExplanation {
  const { metadata: { name, namespace = "", uid }, spec, status } = pod;
  const head = {
    kind: "SchedulingExplanation" as const, pod: { namespace, name, uid }, schedulerName: spec.schedulerName || "default-scheduler",
    ...(spec.nodeName ? { nodeName: spec.nodeName } : {}), ...(status?.nominatedNodeName ? { nominatedNodeName: status.nominatedNodeName } : {}), ...(standing ? { queue: standing } : {}), ...(group ? { group } : {}),
  };
  if (!profile) return { ...head, state: "OtherScheduler", message: `no profile has the scheduler name ${JSON.stringify(head.schedulerName)}: another scheduler places this pod`, candidates: [], filters: [], nodes: [] };
  const run = dryRun(candidate, cluster, profile);
  const preemption = run.candidates.length > 0 || !run.failure ? undefined : profile.preemptsForGroups && group ? { message: "others go for its group as a whole" }
    : wouldPreempt(candidate, run.failure, { cluster, budgets, enough: profile.preemption });
  return {
    ...head, ...judge(pod, { candidates: run.candidates, message: run.message, heldBack: profile.gangs?.awaited ? group?.heldBack : undefined }),
    candidates: run.candidates, filters: run.filters, nodes: run.nodes, ...(preemption ? { preemption } : {}),
  };
}

function judge(pod: Readonly<Pod>, { candidates, message, heldBack }: { readonly candidates: readonly string[]; readonly message: string; readonly heldBack: string | undefined }): Pick<SchedulingExplanation, "state" | "message"> {
  const { spec, status, metadata } = pod;
  const now = candidates.length === 0 ? `placed anew now, it would go nowhere: ${message}` : candidates.includes(spec.nodeName ?? "") ? "placed anew now, it could go there again" : `placed anew now, it would go to ${candidates.join(" or ")}`;
  if (status?.phase === "Succeeded" || status?.phase === "Failed") return { state: "Ended", message: `the pod has ended (${status.phase})` };
  if (spec.nodeName) return { state: "Bound", message: `the pod is on node ${spec.nodeName}; ${now}` };
  if (metadata.deletionTimestamp != null) return { state: "Terminating", message: "the pod is being deleted: it gets no node any more" };
  const gates = (spec.schedulingGates ?? []).map((gate) => gate.name);
  if (gates.length > 0) return { state: "Gated", message: `scheduling gates are closed: ${gates.join(", ")}` };
  if (heldBack !== undefined) return { state: "Gated", message: heldBack };
  return candidates.length > 0 ? { state: "Schedulable", message: `the pod would go to ${candidates.join(" or ")}` } : { state: "Unschedulable", message };
}

interface Run extends Pick<SchedulingExplanation, "candidates" | "filters" | "nodes"> { readonly message: string; readonly failure: NoPlacement | undefined }

function dryRun(candidate: Candidate, cluster: Cluster, profile: Profile): Run {
  const all = cluster.nodes();
  const evaluation = new Evaluation(candidate, cluster, profile.filters);
  const { refusal, onlyNodes, namedBy } = evaluation;
  if (all.length === 0) return { candidates: [], message: "no nodes available to schedule pods", filters: [], nodes: [], failure: undefined };
  const absent = `node(s) didn't satisfy plugin(s) [${namedBy.toSorted().join(" ")}]`;
  const rejections = new Map<string, readonly NodeRejection[]>(all.map((node) => [node.name,
    refusal ? [{ filter: refusal.filter, reasons: [refusal.reason], resolvable: false }]
      : onlyNodes && !onlyNodes.has(node.name) ? [{ filter: namedBy.join(" "), reasons: [absent], resolvable: false }]
        : rejectionsOf(evaluation, node)]));
  const feasible = all.filter(({ name }) => rejections.get(name)!.length === 0);
  const nodes = explainNodes(candidate, { cluster, profile, all, feasible, rejections });
  const filters = profile.filters.map(({ name }) => summarize(name, { evaluation, rejections }));
  const highest = Math.max(...nodes.filter(({ fits }) => fits).map(({ total }) => total));
  const candidates = nodes.filter(({ fits, total }) => fits && total === highest).map(({ name }) => name);
  if (candidates.length > 0) return { candidates, message: "", filters, nodes, failure: undefined };
  const looked = new Map([...rejections].filter(([name]) => onlyNodes?.has(name) ?? true).map(([name, [first]]) => [name, first!] as const));
  const message = refusal ? `0/${all.length} nodes are available: ${refusal.reason}.` : explain(all.length, reasonsOf(looked, all.length, absent));
  return { candidates, message, filters, nodes, failure: { type: "none", message, filters: new Set(), rejections: refusal ? new Map() : looked, evaluation } };
}

/** What cannot be thought through on a node is told as why the pod cannot go there. */
function rejectionsOf(evaluation: Evaluation, node: LiveNode): readonly NodeRejection[] {
  try {
    return evaluation.rejections(node);
  } catch (error) {
    if (error instanceof Unfinished) throw error;
    return [{ filter: "error", reasons: [errorText(error)], resolvable: false }];
  }
}

interface Searched { readonly cluster: Cluster; readonly profile: Profile; readonly all: readonly LiveNode[]; readonly feasible: readonly LiveNode[]; readonly rejections: ReadonlyMap<string, readonly NodeRejection[]> }

function explainNodes(candidate: Candidate, { cluster, profile, all, feasible, rejections }: Searched): NodeExplanation[] {
  const scored = feasible.length > 0 ? scoresOf(candidate, cluster, { feasible, scores: profile.scores }) : [];
  const places = new Map(feasible.map(({ name }, i) => [name, i]));
  const nodes = all.map(({ name }): NodeExplanation => {
    const at = places.get(name);
    const scores = at === undefined ? [] : scored.map(({ name, weight, values }) => ({ name, score: values[at]!, weight }));
    const rejectedBy = rejections.get(name)!.map(({ filter, reasons, resolvable }) => ({ filter, reasons, preemptionMayHelp: resolvable }));
    return { name, fits: at !== undefined, rejectedBy, scores, total: scores.reduce((sum, { score, weight }) => sum + score * weight, 0) };
  });
  return nodes.sort((a, b) => Number(b.fits) - Number(a.fits) || b.total - a.total || (a.name < b.name ? -1 : 1));
}

function summarize(name: string, { evaluation, rejections }: { readonly evaluation: Evaluation; readonly rejections: ReadonlyMap<string, readonly NodeRejection[]> }): FilterSummary {
  if (evaluation.idle.includes(name)) return { name, result: "idle", passed: rejections.size, rejected: 0, reasons: {} };
  const reasons: Record<string, number> = {};
  let rejected = 0;
  for (const list of rejections.values()) {
    const own = list.filter(({ filter }) => filter === name || filter.split(" ").includes(name));
    if (own.length > 0) rejected++;
    for (const reason of own.flatMap((one) => one.reasons)) reasons[reason] = (reasons[reason] ?? 0) + 1;
  }
  const refused = evaluation.refusal?.filter === name;
  const unasked = evaluation.refusal !== undefined && !refused && rejected === 0;
  return { name, result: refused ? "refused" : unasked ? "idle" : "asked", passed: rejections.size - rejected, rejected, reasons };
}

function wouldPreempt(candidate: Candidate, failure: NoPlacement, { cluster, budgets, enough }: Pick<World, "cluster" | "budgets"> & { readonly enough: Profile["preemption"] }): SchedulingExplanation["preemption"] {
  if (!enough) return { message: "the profile has no preemption" };
  const found = preempt(candidate, failure, { cluster, budgets, enough, random: { next: () => 0 } });
  return found.type === "node" ? { node: found.node, victims: found.victims.map(keyOf) } : { message: found.message };
}
