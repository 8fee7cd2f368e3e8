/** Scores on what a node is: soft taints, preferred labels, images it already has. */
import type { PreferredSchedulingTerm } from "../../api/gen/core.v1.ts";
import { tolerationsOf } from "../../api/meta/tolerations.ts";
import { matchesTerm } from "../node-selector.ts";
import { fromHighest, type Score, SCORE_MAX, toHighest } from "../plugin.ts";

export const taintTolerationScore: Score = {
  name: "TaintToleration",
  weight: 3,
  prepare({ pod }, _cluster, feasible) {
    if (!feasible.some(({ hasSoftTaints }) => hasSoftTaints)) return undefined;
    const tolerations = tolerationsOf(pod.spec.tolerations);
    return {
      score: ({ node }) => (node.spec.taints ?? []).filter((taint) => taint.effect === "PreferNoSchedule" && !tolerations.of(taint)).length,
      normalize: fromHighest,
    };
  },
};

/** `addedPreferences`: what the profile prefers of nodes for all its pods. */
export function nodeAffinityScore({ addedPreferences = [] }: { readonly addedPreferences?: readonly PreferredSchedulingTerm[] | undefined } = {}): Score {
  return {
    name: "NodeAffinity",
    weight: 2,
    prepare({ pod }) {
      const preferred = [...addedPreferences, ...(pod.spec.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [])];
      if (preferred.length === 0) return undefined;
      return {
        score: ({ node }) => preferred.reduce((sum, { weight, preference }) => sum + (matchesTerm(preference, node) ? weight : 0), 0),
        normalize: toHighest,
      };
    },
  };
}

/** Below the one an image does not matter, above the other no more. Source: plugins/imagelocality */
const IMAGE_BYTES_MIN = 23 * 1024 * 1024;
const IMAGE_BYTES_MAX_PER_CONTAINER = 1000 * 1024 * 1024;

/** An image that few nodes have counts for less, lest all its pods gather there. */
export const imageLocality: Score = {
  name: "ImageLocality",
  weight: 1,
  prepare({ pod: { spec } }, cluster) {
    const volumes = (spec.volumes ?? []).flatMap(({ image }) => (image?.reference ? [image.reference] : []));
    const wanted = [...spec.containers, ...(spec.initContainers ?? [])].map(({ image }) => image ?? "").concat(volumes).map(withTag);
    const all = cluster.nodes().length;
    const worth = wanted.map((name) => {
      const image = cluster.image(name);
      return image ? Math.trunc(image.bytes * (image.nodes / all)) : 0;
    });
    if (worth.every((bytes) => bytes === 0)) return undefined;
    const most = IMAGE_BYTES_MAX_PER_CONTAINER * (spec.containers.length + (spec.initContainers ?? []).length);
    return {
      score({ images }) {
        const present = wanted.reduce((sum, image, i) => sum + (images.has(image) ? worth[i]! : 0), 0);
        return Math.trunc((SCORE_MAX * (Math.min(Math.max(present, IMAGE_BYTES_MIN), most) - IMAGE_BYTES_MIN)) / (most - IMAGE_BYTES_MIN));
      },
    };
  },
};

function withTag(image: string): string {
  return image.lastIndexOf(":") <= image.lastIndexOf("/") ? `${image}:latest` : image;
}
