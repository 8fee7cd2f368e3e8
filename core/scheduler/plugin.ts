/**
 * What a filter and a score are. Each stands in filters/ or scores/, and as a row in plugins.ts.
 *
 * Both are prepared once for a pod, with the whole cluster in view, and then asked about one node after the other:
 *
 *   filter.prepare(candidate, cluster) ──▶ undefined        it has nothing to say about this pod
 *                                      ──▶ { refused }      no node will do, whichever
 *                                      ──▶ Check            .reject(node)
 *
 * A Check may be told that a pod has moved (`podMoved`): that is how preemption and nominated pods are thought through without changing the snapshot.
 */
import type { Pod } from "../api/gen/core.v1.ts";
import type { Candidate } from "./candidate.ts";
import type { ClusterChange } from "./changes.ts";
import type { Cluster } from "./cluster.ts";
import type { LiveNode, PlacedPod } from "./node-info.ts";
import type { Rejection } from "./rejection.ts";

export interface Check {
  /** undefined: the pod can run there. */
  reject(node: LiveNode): Rejection | undefined;
  /** The only nodes worth a look; absent: all. */
  readonly onlyNodes?: ReadonlySet<string> | undefined;
  /** From now on think of `placed` as being on `node` (1), or as gone from it (-1). `node` has changed accordingly already. */
  podMoved?(placed: PlacedPod, node: LiveNode, by: 1 | -1): void;
}

/** No node can take the pod, and no preemption would help. */
export interface Refusal { readonly refused: string }

export interface Filter {
  readonly name: string;
  /** What its Check says comes from the node alone, and from what makes a pod of a kind (kinds.ts). */
  readonly ofNode?: true;
  prepare(candidate: Candidate, cluster: Cluster): Check | Refusal | undefined;
  /** `mayHelp` knows what other taints of a node help, or that none do. What others rejected is tried again whenever a node's taints change. Source: scheduler.go buildQueueingHintMap */
  readonly judgesTaints?: true;
  /** Whether `change` may let `pod`, which this filter rejected, pass. Wrongly yes costs a try; wrongly no costs minutes. */
  mayHelp(pod: Readonly<Pod>, change: ClusterChange, cluster: Cluster): boolean;
}

export interface NodeScore {
  score(node: LiveNode): number;
  /** Brings all scores to 0…100; absent: they are already. */
  normalize?(scores: readonly number[], nodes: readonly LiveNode[]): number[];
}

export interface Score {
  readonly name: string;
  readonly weight: number;
  /** As a filter's; what it gives is 0…100 already. */
  readonly ofNode?: true;
  /** undefined: all nodes are equal to it. `feasible`: the nodes that passed all filters. */
  prepare(candidate: Candidate, cluster: Cluster, feasible: readonly LiveNode[]): NodeScore | undefined;
}

export const SCORE_MAX = 100;

/** The highest becomes 100, the others in proportion. Source: plugins/helper/normalize_score.go */
export function toHighest(scores: readonly number[]): number[] {
  const highest = Math.max(0, ...scores);
  return highest === 0 ? scores.map(() => 0) : scores.map((score) => Math.trunc((score * SCORE_MAX) / highest));
}

/** The highest becomes 0, none becomes 100. */
export function fromHighest(scores: readonly number[]): number[] {
  return toHighest(scores).map((score) => SCORE_MAX - score);
}
