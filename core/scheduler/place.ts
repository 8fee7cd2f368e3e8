/** Where a pod goes. No I/O: the snapshot, the profile and a source of randomness decide. */
import type { Random } from "../lifecycle/random.ts";
import type { Candidate, Filter, LiveNode, Score } from "./plugin.ts";
import { SCORE_MAX } from "./plugin.ts";
import type { Profile } from "./plugins.ts";
import type { NodeInfo } from "./snapshot.ts";

export type Placement =
  | { readonly type: "node"; readonly node: string; readonly feasible: number; readonly evaluated: number }
  | { readonly type: "none"; readonly message: string; readonly plugins: ReadonlySet<string> };

export function place(candidate: Candidate, nodes: readonly NodeInfo[], { filters, scores }: Profile, random: Random): Placement {
  const live = nodes.filter((info): info is LiveNode => info.node !== undefined);
  if (live.length === 0) return { type: "none", message: "no nodes available to schedule pods", plugins: new Set() };
  const feasible: LiveNode[] = [];
  const reasons = new Map<string, number>();
  const plugins = new Set<string>();
  let helped = 0; // nodes that could take the pod if others left
  for (const node of live) {
    const rejected = firstRejection(candidate, node, filters);
    if (!rejected) feasible.push(node);
    else {
      plugins.add(rejected.filter.name);
      if (rejected.filter.preemptable) helped++;
      for (const reason of rejected.reasons) reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
    }
  }
  if (feasible.length === 0) return { type: "none", message: `${explain(live.length, reasons)} preemption: ${noVictims(live.length, helped)}`, plugins };
  return { type: "node", node: best(candidate, feasible, scores, random).name, feasible: feasible.length, evaluated: live.length };
}

function firstRejection(candidate: Candidate, node: LiveNode, filters: readonly Filter[]): { filter: Filter; reasons: readonly string[] } | undefined {
  for (const filter of filters) {
    const reasons = filter.reject(candidate, node);
    if (reasons.length > 0) return { filter, reasons };
  }
  return undefined;
}

/** "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable." Source: pkg/scheduler/framework/types.go FitError */
function explain(nodes: number, reasons: ReadonlyMap<string, number>): string {
  const counted = [...reasons].map(([reason, count]) => `${count} ${reason}`).sort();
  return `0/${nodes} nodes are available: ${counted.join(", ")}.`;
}

/** Nobody is evicted to make room: what upstream says when it finds no victims. */
function noVictims(nodes: number, helped: number): string {
  const reasons = new Map<string, number>();
  if (helped > 0) reasons.set("No preemption victims found for incoming pod.", helped);
  if (nodes > helped) reasons.set("Preemption is not helpful for scheduling.", nodes - helped);
  return explain(nodes, reasons).slice(0, -1);
}

function best(candidate: Candidate, feasible: readonly LiveNode[], scores: readonly Score[], random: Random): LiveNode {
  if (feasible.length === 1) return feasible[0]!;
  const totals = feasible.map(() => 0);
  for (const plugin of scores) {
    const raw = feasible.map((node) => plugin.score(candidate, node));
    for (const [i, value] of normalize(raw, plugin.normalize).entries()) totals[i]! += value * plugin.weight;
  }
  const highest = Math.max(...totals);
  const equals = feasible.filter((_, i) => totals[i]! >= highest - 1e-9);
  return equals[Math.floor(random.next() * equals.length)]!;
}

function normalize(values: readonly number[], how: Score["normalize"]): number[] {
  if (how === "none") return values.map(Math.trunc);
  const highest = Math.max(0, ...values);
  if (highest === 0) return values.map(() => (how === "reverse" ? SCORE_MAX : 0));
  const scaled = values.map((value) => Math.trunc((value * SCORE_MAX) / highest));
  return how === "reverse" ? scaled.map((value) => SCORE_MAX - value) : scaled;
}
