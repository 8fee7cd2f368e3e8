/**
 * All extenders of a scheduler, asked one after the other about one pod: each sees what those before it left.
 *
 * Source: kubernetes v1.36 pkg/scheduler/schedule_one.go findNodesThatPassExtenders, prioritizeNodes; framework/preemption/preemption.go callExtenders
 */
import type { Pod } from "../api/gen/core.v1.ts";
import type { Log } from "../observe/log.ts";
import type { Extender, Victims } from "./extender.ts";
import type { LiveNode } from "./node-info.ts";
import { SCORE_MAX } from "./plugin.ts";
import type { NodeRejection } from "./rejection.ts";

/** The name under which extenders reject nodes. Source: framework.ExtenderName */
export const EXTENDER = "Extender";
/** Theirs are 0…10. */
const PRIORITY_MAX = 10;

interface Asked { readonly extenders: readonly Extender[]; readonly log: Log; readonly signal: AbortSignal }

/** The nodes that all of them keep. Adds why the others were turned down to `rejections`. Throws if one that is not ignorable cannot be asked. */
export async function filterByExtenders(pod: Readonly<Pod>, feasible: readonly LiveNode[], rejections: Map<string, NodeRejection>, { extenders, log, signal }: Asked): Promise<readonly LiveNode[]> {
  let left = feasible;
  for (const extender of extenders) {
    if (left.length === 0) break;
    if (!extender.filters || !extender.isInterestedIn(pod)) continue;
    try {
      const { nodes, failed, unresolvable } = await extender.filter(pod, left, signal);
      for (const [name, reason] of Object.entries(unresolvable)) rejections.set(name, { filter: EXTENDER, reasons: [reason], resolvable: false });
      for (const [name, reason] of Object.entries(failed)) if (!(name in unresolvable)) rejections.set(name, { filter: EXTENDER, reasons: [reason], resolvable: true });
      left = nodes;
    } catch (error) {
      if (!extender.ignorable || signal.aborted) throw error;
      log.info("an extender could not be asked, the pod is placed without it", { extender: extender.name, error });
    }
  }
  return left;
}

/** What they add to the scores, by name of node. One that fails adds nothing. */
export async function scoresOfExtenders(pod: Readonly<Pod>, feasible: readonly LiveNode[], { extenders, log, signal }: Asked): Promise<Map<string, number>> {
  const sum = new Map<string, number>();
  await Promise.all(extenders.map(async (extender) => {
    if (!extender.prioritizes || !extender.isInterestedIn(pod)) return;
    try {
      for (const [name, score] of await extender.prioritize(pod, feasible, signal)) sum.set(name, (sum.get(name) ?? 0) + (score * extender.weight * SCORE_MAX) / PRIORITY_MAX);
    } catch (error) {
      if (signal.aborted) throw error;
      log.info("an extender gave no scores", { extender: extender.name, error });
    }
  }));
  return sum;
}

/** The nodes and victims that all of them agree to. */
export async function victimsByExtenders(pod: Readonly<Pod>, candidates: ReadonlyMap<string, Victims>, nodeOf: (name: string) => LiveNode | undefined, { extenders, log, signal }: Asked): Promise<ReadonlyMap<string, Victims>> {
  let left = candidates;
  for (const extender of extenders) {
    if (left.size === 0) break;
    if (!extender.preempts || !extender.isInterestedIn(pod)) continue;
    try {
      left = await extender.preempt(pod, left, nodeOf, signal);
    } catch (error) {
      if (!extender.ignorable || signal.aborted) throw error;
      log.info("an extender could not be asked about victims, it is passed over", { extender: extender.name, error });
      continue;
    }
    const empty = [...left].find(([, { pods }]) => pods.length === 0);
    if (empty && !extender.ignorable) throw new Error(`expected at least one victim pod on node "${empty[0]}"`);
    if (empty) left = new Map([...left].filter(([, { pods }]) => pods.length > 0));
  }
  return left;
}
