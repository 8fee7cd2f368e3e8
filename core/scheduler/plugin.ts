/** What a filter and a score are. Each is one file in filters/ or scores/, and a row in plugins.ts. */
import type { Node, Pod } from "../api/gen/core.v1.ts";
import type { Requests } from "./pod-requests.ts";
import type { NodeInfo } from "./snapshot.ts";

/** What is known of the pod to be placed, computed once for all nodes. */
export interface Candidate {
  readonly pod: Readonly<Pod>;
  readonly requests: Requests;
}

/** A node that exists. */
export type LiveNode = NodeInfo & { readonly node: Readonly<Node> };

export interface Filter {
  readonly name: string;
  /** Why the pod cannot run there, in upstream's words; empty: it can. */
  reject(candidate: Candidate, node: LiveNode): readonly string[];
  /** Whether removing pods from the node could help. A reason that is about the node itself is unresolvable. */
  readonly preemptable: boolean;
}

export interface Score {
  readonly name: string;
  readonly weight: number;
  score(candidate: Candidate, node: LiveNode): number;
  /** Scores are brought to 0…100 over all nodes. "none": they are already. "max": the highest becomes 100. "reverse": the highest becomes 0. */
  readonly normalize: "none" | "max" | "reverse";
}

export const SCORE_MAX = 100;
