/**
 * A pod's inter-pod affinity, read once: which pods each term means, and the topology it speaks of.
 *
 * Source: kubernetes v1.36 pkg/scheduler/framework/types.go (AffinityTerm)
 */
import type { Pod, PodAffinityTerm } from "../api/gen/core.v1.ts";
import type { Labels } from "../api/meta/label-requirement.ts";
import { type LabelSelector, labelSelector, nothing } from "../api/meta/label-selector.ts";
import { labelsOf, namespaceOf } from "../api/meta/object-meta.ts";

export interface AffinityTerm {
  readonly topologyKey: string;
  /** Two terms with the same key mean the same pods and topology, with the same weight. */
  readonly key: string;
  readonly namespaces: readonly string[];
  readonly namespaceSelector: LabelSelector;
  readonly selector: LabelSelector;
  /** Of preferred terms: 1…100. Of required ones: 0. */
  readonly weight: number;
}

export interface AffinityTerms {
  readonly affinity: readonly AffinityTerm[];
  readonly antiAffinity: readonly AffinityTerm[];
  readonly preferred: readonly AffinityTerm[];
  readonly preferredAnti: readonly AffinityTerm[];
}

const NONE: AffinityTerms = Object.freeze({ affinity: [], antiAffinity: [], preferred: [], preferredAnti: [] });

/** Of pods that stay as they are: one that waits is held against every pod that comes or goes, and may have ten thousand terms. */
const known = new WeakMap<Readonly<Pod>, AffinityTerms>();

export function affinityTerms(pod: Readonly<Pod>): AffinityTerms {
  if (!pod.spec.affinity?.podAffinity && !pod.spec.affinity?.podAntiAffinity) return NONE;
  const before = known.get(pod);
  if (before) return before;
  const made = readTerms(pod);
  if (Object.isFrozen(pod)) known.set(pod, made);
  return made;
}

function readTerms(pod: Readonly<Pod>): AffinityTerms {
  const { podAffinity, podAntiAffinity } = pod.spec.affinity ?? {};
  const required = (terms: readonly PodAffinityTerm[] | undefined): AffinityTerm[] => (terms ?? []).map((term) => readTerm(term, pod, 0));
  const preferred = (terms: readonly { weight: number; podAffinityTerm: PodAffinityTerm }[] | undefined): AffinityTerm[] =>
    (terms ?? []).filter(({ weight }) => weight !== 0).map(({ weight, podAffinityTerm }) => readTerm(podAffinityTerm, pod, weight));
  return {
    affinity: required(podAffinity?.requiredDuringSchedulingIgnoredDuringExecution),
    antiAffinity: required(podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution),
    preferred: preferred(podAffinity?.preferredDuringSchedulingIgnoredDuringExecution),
    preferredAnti: preferred(podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution),
  };
}

/** No namespaces and no selector of namespaces: the pod's own. */
function readTerm(term: PodAffinityTerm, pod: Readonly<Pod>, weight: number): AffinityTerm {
  const listed = term.namespaces ?? [];
  const namespaces = listed.length === 0 && !term.namespaceSelector ? [namespaceOf(pod)] : [...listed].sort();
  return {
    topologyKey: term.topologyKey, namespaces, weight,
    namespaceSelector: term.namespaceSelector ? labelSelector(term.namespaceSelector) : nothing(),
    selector: labelSelector(term.labelSelector),
    key: JSON.stringify([term.topologyKey, namespaces, term.namespaceSelector ?? null, term.labelSelector ?? null, weight]),
  };
}

export function hasTerms({ affinity, antiAffinity, preferred, preferredAnti }: AffinityTerms): boolean {
  return affinity.length + antiAffinity.length + preferred.length + preferredAnti.length > 0;
}

/** `namespaceLabels`: of the namespace `pod` is in. */
export function termMatches(term: AffinityTerm, pod: Readonly<Pod>, namespaceLabels: Labels): boolean {
  const { namespaces, namespaceSelector, selector } = term;
  return (namespaces.includes(namespaceOf(pod)) || namespaceSelector.matches(namespaceLabels)) && selector.matches(labelsOf(pod));
}
