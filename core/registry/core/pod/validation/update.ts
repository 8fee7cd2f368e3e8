/**
 * What of a pod may change once it is there: images, deadlines, more tolerations, fewer scheduling gates — and, while it is gated, where it may go.
 *
 * Source: kubernetes v1.36 pkg/apis/core/validation/validation.go ValidatePodUpdate
 */
import { child, type FieldError, forbidden, index, invalid, key, required } from "../../../../api/meta/field-error.ts";
import type { Container, NodeAffinity, NodeSelectorTerm, Pod, PodSpec, Toleration } from "../../../../api/gen/core.v1.ts";
import { rangeMessage } from "../../../../api/meta/names.ts";
import { internalForm } from "../../../../api/schema/internal-form.ts";
import { jsonDiff } from "../../checks/diff.ts";
import { semanticEqual } from "../../checks/equal.ts";
import { podRules } from "../rules.ts";
import { validateTolerations } from "./affinity.ts";
import { APPARMOR_ANNOTATION_PREFIX } from "./security.ts";
import { INT32_MAX, MIRROR_ANNOTATION, validatePodAnnotations } from "./spec.ts";

const UPDATABLE = [
  "`spec.containers[*].image`", "`spec.initContainers[*].image`", "`spec.activeDeadlineSeconds`", "`spec.tolerations` (only additions to existing tolerations)",
  "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
].join(",");
const SPEC = "io.k8s.api.core.v1.PodSpec";
const TERM = "io.k8s.api.core.v1.NodeSelectorTerm";
const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";

/** Annotations and tolerations are looked at once more, as upstream does: the message has each error once, the causes twice. */
export function* validatePodUpdate(next: Readonly<Pod>, old: Readonly<Pod>): Iterable<FieldError> {
  const rules = podRules(true, old);
  yield* validateAnnotationUpdates(next.metadata.annotations ?? {}, old.metadata.annotations ?? {});
  yield* validatePodAnnotations("metadata.annotations", next.metadata.annotations ?? {}, next.spec, rules);
  for (const field of ["containers", "initContainers"] as const) {
    const errors = [...validateSameContainers(child("spec", field), next.spec[field] ?? [], old.spec[field] ?? [])];
    yield* errors;
    if ((next.spec[field]?.length ?? 0) !== (old.spec[field]?.length ?? 0)) return;
  }
  const deadlineErrors = [...validateDeadline(next.spec.activeDeadlineSeconds, old.spec.activeDeadlineSeconds)];
  yield* deadlineErrors;
  if (next.spec.activeDeadlineSeconds !== undefined && deadlineErrors.length > 0) return;
  const tolerationErrors = [...validateTolerationsKept(next.spec.tolerations ?? [], old.spec.tolerations ?? [])];
  yield* tolerationErrors.length > 0 ? tolerationErrors : validateTolerations("spec.tolerations", next.spec.tolerations ?? [], rules.allowComparisonTolerations);
  const gates = new Set((old.spec.schedulingGates ?? []).map(({ name }) => name));
  const places = new Map((next.spec.schedulingGates ?? []).map(({ name }, i) => [name, i])); // of one that is there twice, the later
  for (const [name, i] of places) if (!gates.has(name)) yield forbidden(child(index("spec.schedulingGates", i), "name"), `only deletion is allowed, but found new scheduling gate '${name}'`);
  if (!semanticEqual(next.spec, old.spec)) yield* validateRest(next.spec, old.spec);
}

/** Of what is not spec: also for status and ephemeral containers. */
export function* validateAnnotationUpdates(next: Readonly<Record<string, string>>, old: Readonly<Record<string, string>>): Iterable<FieldError> {
  const path = "metadata.annotations";
  for (const [name, value] of Object.entries(old)) {
    if (next[name] === value) continue;
    if (name.startsWith(APPARMOR_ANNOTATION_PREFIX)) yield forbidden(key(path, name), "may not remove or update AppArmor annotations");
    if (name === MIRROR_ANNOTATION) yield forbidden(key(path, name), "may not remove or update mirror pod annotation");
  }
  for (const name of Object.keys(next)) {
    if (old[name] !== undefined) continue;
    if (name.startsWith(APPARMOR_ANNOTATION_PREFIX)) yield forbidden(key(path, name), "may not add AppArmor annotations");
    if (name === MIRROR_ANNOTATION) yield forbidden(key(path, name), "may not add mirror pod annotation");
  }
}

function* validateSameContainers(path: string, next: readonly Container[], old: readonly Container[]): Iterable<FieldError> {
  if (next.length !== old.length) { yield forbidden(path, "pod updates may not add or remove containers"); return; }
  for (const [i, { image = "" }] of next.entries()) {
    if (image === "") yield required(child(index(path, i), "image"));
    if (image.trim() !== image) yield invalid(child(index(path, i), "image"), image, "must not have leading or trailing whitespace");
  }
}

/** Set, or made shorter; never unset, never made longer. */
function* validateDeadline(next: number | undefined, old: number | undefined): Iterable<FieldError> {
  const path = "spec.activeDeadlineSeconds";
  if (next === undefined) {
    if (old !== undefined) yield invalid(path, next, "must not update from a positive integer to nil value");
  } else if (next < 0 || next > INT32_MAX) yield invalid(path, next, rangeMessage(0, INT32_MAX));
  else if (old !== undefined && old < next) yield invalid(path, next, "must be less than or equal to previous value");
}

function* validateTolerationsKept(next: readonly Toleration[], old: readonly Toleration[]): Iterable<FieldError> {
  const kept = new Set(next.map(butItsSeconds));
  if (old.some((toleration) => !kept.has(butItsSeconds(toleration)))) yield forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds");
}

function butItsSeconds({ key, operator, value, effect }: Toleration): string { return JSON.stringify([key ?? "", operator ?? "", value ?? "", effect ?? ""]); }

/** What is different although it may be is made the same; if anything else still differs, that is the error. */
function* validateRest(next: Readonly<PodSpec>, old: Readonly<PodSpec>): Iterable<FieldError> {
  const munged: PodSpec = { ...next };
  munged.containers = withOldImages(next.containers ?? [], old.containers ?? []);
  if (next.initContainers) munged.initContainers = withOldImages(next.initContainers, old.initContainers ?? []);
  munged.activeDeadlineSeconds = old.activeDeadlineSeconds;
  munged.schedulingGates = old.schedulingGates;
  munged.tolerations = old.tolerations;
  if ((old.terminationGracePeriodSeconds ?? 0) < 0 && next.terminationGracePeriodSeconds === 1) munged.terminationGracePeriodSeconds = old.terminationGracePeriodSeconds;
  if ((old.schedulingGates ?? []).length > 0) {
    yield* validateSelectorWhileGated(next, old);
    munged.nodeSelector = old.nodeSelector;
    yield* validateAffinityWhileGated(next, old);
    munged.affinity = withOldNodeAffinity(next, old);
  }
  if (!semanticEqual(munged, old)) yield forbidden("spec", `pod updates may not change fields other than ${UPDATABLE}\n${jsonDiff(internalForm(SPEC, old), internalForm(SPEC, munged))}`);
}

function withOldImages(next: readonly Container[], old: readonly Container[]): Container[] { return next.map((container, i) => ({ ...container, image: old[i]?.image })); }

function* validateSelectorWhileGated(next: Readonly<PodSpec>, old: Readonly<PodSpec>): Iterable<FieldError> {
  const kept = Object.entries(old.nodeSelector ?? {}).every(([name, value]) => next.nodeSelector?.[name] === value);
  if (!kept) yield invalid("spec.nodeSelector", next.nodeSelector, "only additions to spec.nodeSelector are allowed (no mutations or deletions)");
}

function* validateAffinityWhileGated(next: Readonly<PodSpec>, old: Readonly<PodSpec>): Iterable<FieldError> {
  const [nextAffinity, oldAffinity] = [next.affinity?.nodeAffinity, old.affinity?.nodeAffinity];
  if (semanticEqual(nextAffinity, oldAffinity)) return;
  const oldTerms = termsOf(oldAffinity);
  const nextTerms = termsOf(nextAffinity) ?? [];
  if (!oldTerms) return;
  const path = child("spec.affinity.nodeAffinity", REQUIRED, "nodeSelectorTerms");
  if (oldTerms.length > 0 && oldTerms.length !== nextTerms.length) {
    yield invalid(path, termsOf(nextAffinity)?.map((term) => internalForm(TERM, term)), "no additions/deletions to non-empty NodeSelectorTerms list are allowed");
    return;
  }
  for (const [i, term] of oldTerms.entries())
    if (!onlyAdds(nextTerms[i]!, term)) yield invalid(index(path, i), internalForm(TERM, nextTerms[i]!), "only additions are allowed (no mutations or deletions)");
}

function termsOf(affinity: NodeAffinity | undefined): readonly NodeSelectorTerm[] | undefined { return affinity?.[REQUIRED]?.nodeSelectorTerms; }

function onlyAdds(next: NodeSelectorTerm, old: NodeSelectorTerm): boolean {
  const parts = ["matchExpressions", "matchFields"] as const;
  if (parts.every((part) => !old[part]?.length)) return parts.every((part) => !next[part]?.length);
  return parts.every((part) => semanticEqual(next[part]?.slice(0, old[part]?.length ?? 0), old[part]));
}

function withOldNodeAffinity(next: Readonly<PodSpec>, old: Readonly<PodSpec>): PodSpec["affinity"] {
  const nodeAffinity = old.affinity?.nodeAffinity;
  if (semanticEqual(next.affinity?.nodeAffinity, nodeAffinity)) return next.affinity;
  if (!next.affinity) return nodeAffinity ? { nodeAffinity } : undefined;
  if (!old.affinity && !next.affinity.podAffinity && !next.affinity.podAntiAffinity) return undefined;
  return { ...next.affinity, nodeAffinity };
}
