/** Scores on how full a node would be. Source: kubernetes v1.36 pkg/scheduler/framework/plugins/noderesources */
import type { Pod } from "../../api/gen/core.v1.ts";
import { DEFAULT_MEMORY_BYTES, DEFAULT_MILLI_CPU } from "../pod-requests.ts";
import { type Candidate, type LiveNode, type Score, SCORE_MAX } from "../plugin.ts";

/** The emptier, the better. */
export const leastAllocated: Score = {
  name: "NodeResourcesFit",
  weight: 1,
  normalize: "none",
  score: (candidate, node) => {
    const fractions = fractionsUsed(candidate, node);
    return fractions.length === 0 ? 0 : fractions.reduce((sum, fraction) => sum + (fraction > 1 ? 0 : (1 - fraction) * SCORE_MAX), 0) / fractions.length;
  },
};

/** CPU and memory used up in the same proportion, so that neither is left over alone. */
export const balancedAllocation: Score = {
  name: "NodeResourcesBalancedAllocation",
  weight: 1,
  normalize: "none",
  score: (candidate, node) => {
    const fractions = fractionsUsed(candidate, node).map((fraction) => Math.min(1, fraction));
    if (fractions.length < 2) return SCORE_MAX;
    const mean = fractions.reduce((sum, fraction) => sum + fraction, 0) / fractions.length;
    const deviation = Math.sqrt(fractions.reduce((sum, fraction) => sum + (fraction - mean) ** 2, 0) / fractions.length);
    return (1 - deviation) * SCORE_MAX;
  },
};

function fractionsUsed({ pod, requests }: Candidate, { allocatable, pods }: LiveNode): number[] {
  let cpu = requests["cpu"] ?? defaultFor(pod, DEFAULT_MILLI_CPU);
  let memory = requests["memory"] ?? defaultFor(pod, DEFAULT_MEMORY_BYTES);
  for (const placed of pods.values()) {
    cpu += placed.requests["cpu"] ?? defaultFor(placed.pod, DEFAULT_MILLI_CPU);
    memory += placed.requests["memory"] ?? defaultFor(placed.pod, DEFAULT_MEMORY_BYTES);
  }
  return [[cpu, allocatable["cpu"]], [memory, allocatable["memory"]]].flatMap(([used, all]) => (all ? [used! / all] : []));
}

function defaultFor({ spec }: Readonly<Pod>, each: number): number {
  return spec.containers.length * each;
}
