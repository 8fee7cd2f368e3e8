/** Scores on what a node is: soft taints, preferred labels, images it already has. */
import { isTolerated, matchesTerm } from "../filters/node.ts";
import { type Score, SCORE_MAX } from "../plugin.ts";

export const taintTolerationScore: Score = {
  name: "TaintToleration",
  weight: 3,
  normalize: "reverse",
  score({ pod }, { node }) {
    const tolerations = (pod.spec.tolerations ?? []).filter(({ effect }) => !effect || effect === "PreferNoSchedule");
    return (node.spec.taints ?? []).filter((taint) => taint.effect === "PreferNoSchedule" && !isTolerated(taint, tolerations)).length;
  },
};

export const nodeAffinityScore: Score = {
  name: "NodeAffinity",
  weight: 2,
  normalize: "max",
  score({ pod }, { node }) {
    const preferred = pod.spec.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
    return preferred.reduce((sum, { weight, preference }) => sum + (matchesTerm(preference, node) ? weight : 0), 0);
  },
};

/** Below the one an image does not matter, above the other no more. Source: plugins/imagelocality */
const IMAGE_BYTES_MIN = 23 * 1024 * 1024;
const IMAGE_BYTES_MAX_PER_CONTAINER = 1000 * 1024 * 1024;

export const imageLocality: Score = {
  name: "ImageLocality",
  weight: 1,
  normalize: "none",
  score({ pod }, { node }) {
    const bytes = new Map((node.status?.images ?? []).flatMap(({ names, sizeBytes }) => (names ?? []).map((name) => [name, sizeBytes ?? 0] as const)));
    const containers = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])];
    const present = containers.reduce((sum, { image = "" }) => sum + (bytes.get(withTag(image)) ?? 0), 0);
    const most = IMAGE_BYTES_MAX_PER_CONTAINER * containers.length;
    return (SCORE_MAX * (Math.min(Math.max(present, IMAGE_BYTES_MIN), most) - IMAGE_BYTES_MIN)) / (most - IMAGE_BYTES_MIN);
  },
};

function withTag(image: string): string {
  return image.lastIndexOf(":") <= image.lastIndexOf("/") ? `${image}:latest` : image;
}
