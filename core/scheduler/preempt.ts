/**
 * Which pods would have to go so that a pod fits that fits nowhere: on one node, of lower priority, as few and as unimportant as can be, and none
 * that a disruption budget protects if there is another way. No I/O.
 *
 * Source: kubernetes v1.36 pkg/scheduler/framework/preemption/preemption.go, plugins/defaultpreemption/default_preemption.go
 */
import type { Pod } from "../api/gen/core.v1.ts";
import type { PodDisruptionBudget } from "../api/gen/policy.v1.ts";
import type { Random } from "../lifecycle/random.ts";
import { Budgets } from "./budgets.ts";
import type { Candidate } from "./candidate.ts";
import type { Cluster } from "./cluster.ts";
import { type Evaluation, priorityOf } from "./evaluation.ts";
import type { LiveNode, PlacedPod } from "./node-info.ts";
import { explain, type NoPlacement, reasonsOf } from "./place.ts";
import type { Profile } from "./plugins.ts";

export type Preemption =
  /** `victims`: the most important first. */
  | { readonly type: "node"; readonly node: string; readonly victims: readonly Readonly<Pod>[] }
  /** `keepNomination`: what it was nominated to still stands. `isError`: nobody knows why it would not help. */
  | { readonly type: "none"; readonly message: string; readonly keepNomination: boolean; readonly isError?: true };

export interface Choice { readonly node: string; readonly victims: readonly Readonly<Pod>[]; readonly violations: number }

interface Surroundings {
  readonly cluster: Cluster;
  readonly budgets: readonly Readonly<PodDisruptionBudget>[];
  readonly random: Pick<Random, "next">;
  /** How many nodes to think through: a share, and at least so many. */
  readonly enough: NonNullable<Profile["preemption"]>;
}

export function preempt(candidate: Candidate, failure: NoPlacement, surroundings: Surroundings): Preemption {
  const found = candidatesFor(candidate, failure, surroundings);
  return found.type === "none" ? found : chosen(found.choices);
}

/** Of these the one that does least harm. */
export function chosen(choices: readonly Choice[]): Preemption {
  const choice = leastHarm(choices);
  return choice ? { type: "node", node: choice.node, victims: choice.victims } : none("no candidate node for preemption");
}

/** Nodes where it would help, each with its victims. */
export function candidatesFor(candidate: Candidate, failure: NoPlacement, { cluster, budgets, random, enough: { candidatesMin, candidatesPercent } }: Surroundings): { readonly type: "candidates"; readonly choices: readonly Choice[] } | (Preemption & { readonly type: "none" }) {
  const { pod } = candidate;
  if (pod.spec.preemptionPolicy === "Never") return none("not eligible due to preemptionPolicy=Never.");
  if (isWaitingForVictims(candidate, failure, cluster)) return none("not eligible due to a terminating pod on the nominated node.");
  const total = cluster.nodes().length;
  const hopeful = [...failure.rejections].filter(([, { resolvable }]) => resolvable).flatMap(([name]) => cluster.node(name) ?? []);
  const { evaluation } = failure;
  const enough = Math.min(hopeful.length, Math.max(candidatesMin, Math.trunc((hopeful.length * candidatesPercent) / 100)));
  const harmless: Choice[] = [];
  const violating: Choice[] = [];
  const reasons = new Map<string, { readonly reasons: readonly string[] }>();
  const errors = new Set<string>();
  const offset = Math.floor(random.next() * hopeful.length);
  const known = new Budgets(budgets);
  for (let i = 0; i < hopeful.length && evaluation; i++) {
    if (harmless.length > 0 && harmless.length + violating.length >= enough) break;
    const node = hopeful[(offset + i) % hopeful.length]!;
    const found = victimsOn(node, candidate, evaluation, known);
    if ("error" in found) errors.add(found.error);
    else if ("reasons" in found) reasons.set(node.name, found);
    else (found.violations === 0 ? harmless : violating).push(found);
  }
  if (harmless.length + violating.length > 0) return { type: "candidates", choices: [...harmless, ...violating] };
  if (errors.size > 0) return { ...none(errors.size === 1 ? [...errors][0]! : `[${[...errors].join(", ")}]`), isError: true };
  return { type: "none", message: `preemption: ${explain(total, reasonsOf(reasons, total, "Preemption is not helpful for scheduling"))}`, keepNomination: false };
}

function none(message: string): Preemption & { readonly type: "none" } {
  return { type: "none", message: `preemption: ${message}`, keepNomination: true };
}

/** It has evicted pods before, and some are still on their way out. */
function isWaitingForVictims(candidate: Candidate, { rejections, evaluation }: NoPlacement, cluster: Cluster): boolean {
  const name = candidate.pod.status?.nominatedNodeName;
  const node = name ? cluster.node(name) : undefined;
  if (!node || !evaluation || evaluation.refusal) return false;
  if (!rejections.get(node.name)?.resolvable) return false; // it need not wait for what would not help
  return [...node.pods.values()].some((placed) => priorityOf(placed) < priorityOf(candidate) && isPreempted(placed.pod));
}

function isPreempted({ metadata, status }: Readonly<Pod>): boolean {
  if (metadata.deletionTimestamp == null) return false;
  const target = status?.conditions?.find(({ type }) => type === "DisruptionTarget");
  return target?.status === "True" && target.reason === "PreemptionByScheduler";
}

/** Without all pods of lower priority the pod must fit; then as many as possible stay, the protected and the important first. */
function victimsOn(original: LiveNode, candidate: Candidate, evaluation: Evaluation, budgets: Budgets): Choice | { readonly reasons: readonly string[] } | { readonly error: string } {
  const lower = [...original.pods.values()].filter((placed) => priorityOf(placed) < priorityOf(candidate)).sort(moreImportant);
  if (lower.length === 0) return { reasons: ["No preemption victims found for incoming pod"] };
  const node = original.copy() as LiveNode;
  for (const placed of lower) evaluation.move(placed, node, -1);
  const rejection = evaluation.reject(node);
  const victims: PlacedPod[] = [];
  let violations = 0;
  if (!rejection) {
    const [violating, harmless] = byBudget(lower, budgets);
    const fitsWith = (placed: PlacedPod): boolean => {
      evaluation.move(placed, node, 1);
      if (!evaluation.reject(node)) return true;
      evaluation.move(placed, node, -1);
      victims.push(placed);
      return false;
    };
    for (const placed of violating) if (!fitsWith(placed)) violations++;
    for (const placed of harmless) fitsWith(placed);
  }
  for (const placed of rejection ? lower : victims) evaluation.move(placed, node, 1); // think of all as they are
  if (rejection) return { reasons: rejection.reasons };
  if (victims.length === 0) return { error: `expected at least one victim pod on node "${node.name}"` }; // it is others than filters that keep the pod off
  return { node: node.name, victims: victims.sort(moreImportant).map(({ pod }) => pod), violations };
}

/** Higher priority first, then who has run longer. */
function moreImportant(a: PlacedPod, b: PlacedPod): number {
  return priorityOf(b) - priorityOf(a) || startOf(a.pod) - startOf(b.pod);
}

export function startOf({ status }: Readonly<Pod>): number {
  return status?.startTime ? Date.parse(status.startTime) : Infinity;
}

/** Pods whose eviction some budget forbids, and the others; each in the order they had. */
function byBudget(pods: readonly PlacedPod[], budgets: Budgets): readonly [PlacedPod[], PlacedPod[]] {
  const left = budgets.left();
  const { violating = [], harmless = [] } = Object.groupBy(pods, ({ pod }) => (left.forbids(pod) ? "violating" : "harmless"));
  return [violating, harmless];
}

/** Each criterion in turn: the lowest stay; the first of those that are equal in all. */
const HARM: readonly ((choice: Choice) => number)[] = [
  ({ violations }) => violations,
  ({ victims }) => victims[0]?.spec.priority ?? 0,
  ({ victims }) => victims.reduce((sum, { spec }) => sum + (spec.priority ?? 0) + 2 ** 31, 0),
  ({ victims }) => victims.length,
  ({ victims }) => -earliestStart(victims),
];

function earliestStart(victims: readonly Readonly<Pod>[]): number {
  const highest = victims[0]?.spec.priority ?? 0;
  return Math.min(...victims.filter(({ spec }) => (spec.priority ?? 0) === highest).map(startOf));
}

function leastHarm(choices: readonly Choice[]): Choice | undefined {
  let left = choices;
  for (const harm of HARM) {
    if (left.length < 2) break;
    const least = Math.min(...left.map(harm));
    left = left.filter((choice) => harm(choice) === least);
  }
  return left[0];
}
