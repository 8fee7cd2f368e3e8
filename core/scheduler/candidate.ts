import type { Pod } from "../api/gen/core.v1.ts";
import type { AffinityTerms } from "./affinity-terms.ts";
import type { Requests } from "./pod-requests.ts";

/** What is known of the pod to be placed, computed once for all nodes. */
export interface Candidate {
  readonly pod: Readonly<Pod>;
  readonly requests: Requests;
  readonly terms: AffinityTerms;
}
