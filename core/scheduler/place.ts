/**
 * Where a pod goes. No I/O: the cluster as it is, the profile and a source of randomness decide.
 *
 * In large clusters the search stops at the first node that will do and is not needed any more, and the next one begins there.
 *
 * Source: kubernetes v1.36 pkg/scheduler/schedule_one.go
 */
import type { Random } from "../lifecycle/random.ts";
import type { Candidate } from "./candidate.ts";
import type { Cluster } from "./cluster.ts";
import { Evaluation } from "./evaluation.ts";
import type { Kind } from "./kinds.ts";
import type { LiveNode } from "./node-info.ts";
import type { NodeScore } from "./plugin.ts";
import { type PluginPoint, type PluginStatus, type PluginTimes, type StepTimes, timed, UNPREPARED } from "./plugin-times.ts";
import type { Profile } from "./plugins.ts";
import type { NodeRejection } from "./rejection.ts";

export type Placement =
  | { readonly type: "node"; readonly node: string; readonly feasible: number; readonly evaluated: number; readonly evaluation: Evaluation; readonly others?: readonly string[] }
  | NoPlacement;

export interface NoPlacement {
  readonly type: "none";
  /** "0/3 nodes are available: …", without what preemption has to say. */
  readonly message: string;
  /** Filters that rejected nodes. */
  readonly filters: ReadonlySet<string>;
  /** By name of node. Nodes that were not looked at are missing, and nothing helps them. */
  readonly rejections: ReadonlyMap<string, NodeRejection>;
  readonly evaluation: Evaluation | undefined;
}

/** Fewer nodes than this are never skipped. Source: schedule_one.go minFeasibleNodesToFind, minFeasibleNodesPercentageToFind */
const FEASIBLE_MIN = 100;
const PERCENTAGE_MIN = 5;

/** Where the last search stopped. */
export interface SearchStart { next: number }

interface Options {
  readonly random: Random;
  readonly start: SearchStart;
  /** The only nodes there are to it; absent: all. */
  readonly within?: readonly LiveNode[] | undefined;
  /** Whether to tell the other nodes that would do, best first. */
  readonly ranks?: boolean;
  /** The candidate's, so that nodes need not be asked again what they have said of such pods. */
  readonly kind?: Kind | undefined;
  /** Is told how long each plugin took. */
  readonly times?: PluginTimes | undefined;
  readonly steps?: StepTimes | undefined;
}

export function place(candidate: Candidate, cluster: Cluster, profile: Profile, { random, start, ranks = false, within, kind, times, steps }: Options): Placement {
  const found = search(candidate, cluster, profile, { start, within, kind, times, steps });
  if (found.type === "none") return found;
  const { feasible, evaluated } = found;
  const totals = totalsOf(candidate, cluster, { feasible, scores: profile.scores, kind, times, steps });
  const node = highest(feasible, totals, random);
  return {
    type: "node", node: node.name, feasible: feasible.length, evaluated, evaluation: found.evaluation,
    ...(ranks && { others: feasible.map((one, i) => ({ one, total: totals[i]! })).filter(({ one }) => one !== node).sort((a, b) => b.total - a.total).map(({ one }) => one.name) }),
  };
}

/** Nodes that passed all filters, and why others did not. */
export interface Found {
  readonly type: "found";
  readonly feasible: readonly LiveNode[];
  readonly evaluated: number;
  readonly rejections: Map<string, NodeRejection>;
  readonly evaluation: Evaluation;
  /** It is the node the pod was nominated to; others were not looked at. */
  readonly isNominee?: true;
}

/** `compares`: somebody tells the nodes that will do apart, by scores or as an extender. Else the first is enough. `nominee` false: the node the pod was nominated to is one among others. */
export function search(candidate: Candidate, cluster: Cluster, { filters, scores, percentageOfNodesToScore }: Profile, { start, within, kind, times, steps, compares = scores.length > 0, nominee = true }: Pick<Options, "start" | "within" | "kind" | "times" | "steps"> & { readonly compares?: boolean; readonly nominee?: boolean }): Found | NoPlacement {
  const all = within ?? cluster.nodes();
  if (all.length === 0) return { type: "none", message: "no nodes available to schedule pods", filters: new Set(), rejections: new Map(), evaluation: undefined };
  const evaluation = stepped(steps, "PreFilter", () => new Evaluation(candidate, cluster, filters, { kind, times }), ({ refusal }) => (refusal ? "UnschedulableAndUnresolvable" : "Success"));
  steps?.asked("PreFilter", evaluation.prepared());
  const { refusal } = evaluation;
  if (refusal) return { type: "none", message: `0/${all.length} nodes are available: ${refusal.reason}.`, filters: new Set([refusal.filter]), rejections: new Map(), evaluation };

  return stepped(steps, "Filter", () => searchNodes(candidate, cluster, evaluation, { start, within, nominee, wantedOf: (nodes) => (compares ? feasibleWanted(nodes, percentageOfNodesToScore) : 1) }), () => "Success"); // whatever was found
}

function searchNodes(candidate: Candidate, cluster: Cluster, evaluation: Evaluation, { start, within, nominee, wantedOf }: Pick<Options, "start" | "within"> & { readonly nominee: boolean; readonly wantedOf: (nodes: number) => number }): Found | NoPlacement {
  const all = within ?? cluster.nodes();
  const { onlyNodes } = evaluation;
  const nodeNamed = within ? (name: string) => within.find((node) => node.name === name) : (name: string) => cluster.node(name);
  const nominated = nominee ? nodeNamed(candidate.pod.status?.nominatedNodeName ?? "") : undefined;
  if (nominated && (onlyNodes?.has(nominated.name) ?? true) && !evaluation.reject(nominated)) return { type: "found", feasible: [nominated], evaluated: 1, rejections: new Map(), evaluation, isNominee: true };

  const nodes = onlyNodes ? [...onlyNodes].flatMap((name) => nodeNamed(name) ?? []) : all;
  const wanted = wantedOf(nodes.length);
  const feasible: LiveNode[] = [];
  const rejections = new Map<string, NodeRejection>();
  const offset = start.next % all.length;
  let evaluated = 0;
  for (; evaluated < nodes.length; evaluated++) { // until one too many is found: the next search begins with it
    const node = nodes[(offset + evaluated) % nodes.length]!;
    const rejection = evaluation.reject(node);
    if (rejection) rejections.set(node.name, rejection);
    else if (feasible.length < wanted) feasible.push(node);
    else break;
  }
  start.next = (offset + evaluated) % all.length;
  return feasible.length > 0 ? { type: "found", feasible, evaluated, rejections, evaluation } : nowhere(cluster, { rejections, evaluation, within });
}

/** No node is left. */
export function nowhere(cluster: Cluster, { rejections, evaluation, within }: Pick<Found, "rejections" | "evaluation"> & Pick<Options, "within">): NoPlacement {
  const all = within ?? cluster.nodes();
  const { onlyNodes, namedBy } = evaluation;
  const absent = onlyNodes && `node(s) didn't satisfy plugin(s) [${namedBy.toSorted().join(" ")}]`;
  return {
    type: "none", rejections, evaluation,
    message: explain(all.length, reasonsOf(rejections, all.length, absent)),
    filters: new Set([...rejections.values()].map(({ filter }) => filter).concat(namedBy)), // a node that they name may come
  };
}

function feasibleWanted(nodes: number, percentage: number): number {
  if (nodes < FEASIBLE_MIN || percentage >= 100) return nodes;
  const share = percentage > 0 ? percentage : Math.max(PERCENTAGE_MIN, 50 - Math.trunc(nodes / 125));
  return Math.max(FEASIBLE_MIN, Math.trunc((nodes * share) / 100));
}

/** How many nodes gave each reason; those that gave none count under `absent`, if there is such a reason: extenders need not say why. */
export function reasonsOf(rejections: ReadonlyMap<string, { readonly reasons: readonly string[] }>, nodes: number, absent: string | undefined): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { reasons } of rejections.values()) for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  if (absent !== undefined && rejections.size < nodes) counts.set(absent, (counts.get(absent) ?? 0) + nodes - rejections.size);
  return counts;
}

/** "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable." Source: pkg/scheduler/framework/types.go FitError */
export function explain(nodes: number, reasons: ReadonlyMap<string, number>): string {
  const counted = [...reasons].map(([reason, count]) => `${count} ${reason}`).sort();
  return counted.length === 0 ? `0/${nodes} nodes are available:` : `0/${nodes} nodes are available: ${counted.join(", ")}.`;
}

interface Scoring { readonly feasible: readonly LiveNode[]; readonly scores: Profile["scores"]; readonly times?: PluginTimes | undefined }

interface Prepared { readonly name: string; readonly weight: number; readonly scored: NodeScore }

/** What each score gives each node, and its weight. Scores to which all nodes are equal are left out. */
export function scoresOf(candidate: Candidate, cluster: Cluster, scoring: Scoring): { readonly name: string; readonly weight: number; readonly values: readonly number[] }[] {
  return valuesOf(prepared(candidate, cluster, scoring), scoring);
}

function prepared(candidate: Candidate, cluster: Cluster, { feasible, scores, times }: Scoring): Prepared[] {
  return scores.flatMap(({ name, prepare, weight }) => {
    const scored = timed(UNPREPARED.PreScore.has(name) ? undefined : times, { point: "PreScore", plugin: name }, () => prepare(candidate, cluster, feasible), (found) => (found ? "Success" : "Skip"));
    return scored ? [{ name, weight, scored }] : [];
  });
}

function valuesOf(scores: readonly Prepared[], { feasible, times }: Scoring): { readonly name: string; readonly weight: number; readonly values: readonly number[] }[] {
  return scores.map(({ name, weight, scored }) => {
    const raw = feasible.map((node) => (times ? timed(times, { point: "Score", plugin: name }, () => scored.score(node), () => "Success") : scored.score(node)));
    return { name, weight, values: scored.normalize?.(raw, feasible) ?? raw };
  });
}

/** `more`: what others add to the sums, by name of node. */
export function best(candidate: Candidate, cluster: Cluster, { feasible, scores, random, steps, more }: Pick<Options, "random" | "steps"> & Scoring & { readonly more?: ReadonlyMap<string, number> }): LiveNode {
  return highest(feasible, totalsOf(candidate, cluster, { feasible, scores, steps, ...(more && { more }) }), random);
}

/** The sum of scores of each. One alone needs none. */
function totalsOf(candidate: Candidate, cluster: Cluster, { kind, steps, more, ...scoring }: Scoring & Pick<Options, "kind" | "steps"> & { readonly more?: ReadonlyMap<string, number> }): Float64Array {
  const { feasible, scores } = scoring;
  const totals = new Float64Array(feasible.length);
  if (feasible.length === 1) return totals;
  const [ofNode, others] = stepped(steps, "PreScore", () => [
    kind ? prepared(candidate, cluster, { ...scoring, times: undefined, scores: scores.filter((one) => one.ofNode) }) : [],
    prepared(candidate, cluster, kind ? { ...scoring, scores: scores.filter((one) => !one.ofNode) } : scoring),
  ] as const, () => "Success");
  stepped(steps, "Score", () => {
    if (kind) for (let i = 0; i < feasible.length; i++) totals[i] = feasible[i]!.saying(kind).worth ??= worthOf(feasible[i]!, ofNode); // what each alone is worth to pods of the kind: what it has said before, or what is found now
    for (const { values, weight } of valuesOf(others, scoring)) for (let i = 0; i < values.length; i++) totals[i]! += values[i]! * weight;
  }, () => "Success");
  if (steps) {
    const asked = [...ofNode, ...others].map(({ name }) => name);
    steps.asked("PreScore", asked.filter((name) => !UNPREPARED.PreScore.has(name)).map((name) => [name, 1] as const));
    steps.asked("Score", asked.map((name) => [name, feasible.length] as const));
  }
  if (more) for (const [i, { name }] of feasible.entries()) totals[i]! += more.get(name) ?? 0;
  return totals;
}

function worthOf(node: LiveNode, scores: readonly Prepared[]): number {
  return scores.reduce((sum, { scored, weight }) => sum + scored.score(node) * weight, 0);
}

function stepped<T>(steps: StepTimes | undefined, point: PluginPoint, does: () => T, statusOf: (result: T) => PluginStatus): T {
  if (!steps) return does();
  const startMs = steps.nowMs();
  const result = does();
  steps.step(point, statusOf(result), steps.nowMs() - startMs);
  return result;
}

function highest(feasible: readonly LiveNode[], totals: Float64Array, random: Random): LiveNode {
  if (feasible.length === 1) return feasible[0]!;
  const most = totals.reduce((max, total) => Math.max(max, total), -Infinity);
  const equals = feasible.filter((_, i) => totals[i] === most);
  return equals[Math.floor(random.next() * equals.length)]!;
}
