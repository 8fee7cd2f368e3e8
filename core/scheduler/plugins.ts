/** The default profile: which filters and scores there are, in upstream's order. */
import { nodeAffinity, nodeName, nodeUnschedulable, taintToleration } from "./filters/node.ts";
import { nodePorts, nodeResourcesFit } from "./filters/resources.ts";
import type { Filter, Score } from "./plugin.ts";
import { imageLocality, nodeAffinityScore, taintTolerationScore } from "./scores/node.ts";
import { balancedAllocation, leastAllocated } from "./scores/resources.ts";

export interface Profile {
  readonly filters: readonly Filter[];
  readonly scores: readonly Score[];
}

export const DEFAULT_PROFILE: Profile = {
  filters: [nodeUnschedulable, nodeName, taintToleration, nodeAffinity, nodePorts, nodeResourcesFit],
  scores: [taintTolerationScore, nodeAffinityScore, leastAllocated, balancedAllocation, imageLocality],
};
