/**
 * What a Namespace's status says of its deletion. No I/O.
 *
 * Source: kubernetes v1.36 pkg/controller/namespace/deletion/status_condition_utils.go (types, reasons and messages)
 */
import type { NamespaceCondition } from "../../api/gen/core.v1.ts";
import { timestamp } from "../../lifecycle/clock.ts";

export interface Progress {
  /** Group-versions whose resources are unknown, with why. */
  readonly discoveryFailed: ReadonlyMap<string, unknown>;
  readonly contentErrors: readonly string[];
  /** "pods." or "deployments.apps" → how many are left. Undefined: not known yet, as long as pods go first. */
  readonly remaining: ReadonlyMap<string, number> | undefined;
  readonly finalizers: ReadonlyMap<string, number>;
}

const FINE: readonly (readonly [type: string, reason: string, message: string])[] = [
  ["NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"],
  ["NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"],
  ["NamespaceDeletionContentFailure", "ContentDeleted", "All content successfully deleted, may be waiting on finalization"],
  ["NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"],
  ["NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"],
];

function told({ discoveryFailed, contentErrors, remaining, finalizers }: Progress): Map<string, readonly [reason: string, message: string]> {
  const found = new Map<string, readonly [string, string]>();
  if (discoveryFailed.size > 0) {
    const list = [...discoveryFailed.keys()].map((groupVersion) => `${groupVersion}: stale GroupVersion discovery: ${groupVersion}`).toSorted().join(", "); // as client-go reads the document of all groups, whatever ails one
    const message = `Discovery failed for some groups, ${discoveryFailed.size} failing: unable to retrieve the complete list of server APIs: ${list}`;
    found.set("NamespaceDeletionDiscoveryFailure", ["DiscoveryFailed", message]);
  }
  if (contentErrors.length > 0) {
    found.set("NamespaceDeletionContentFailure", ["ContentDeletionFailed", `Failed to delete all resource types, ${contentErrors.length} remaining: ${contentErrors.toSorted().join(", ")}`]);
  }
  if (remaining !== undefined && remaining.size > 0) {
    const list = [...remaining].map(([resource, count]) => `${resource} has ${count} resource instances`).toSorted().join(", ");
    found.set("NamespaceContentRemaining", ["SomeResourcesRemain", `Some resources are remaining: ${list}`]);
  }
  if (remaining !== undefined && finalizers.size > 0) {
    const list = [...finalizers].map(([finalizer, count]) => `${finalizer} in ${count} resource instances`).toSorted().join(", ");
    found.set("NamespaceFinalizersRemaining", ["SomeFinalizersRemain", `Some content in the namespace has finalizers remaining: ${list}`]);
  }
  return found;
}

/** The conditions after `progress`, each in its place, those that are new at the end; the list itself if they say nothing new. */
export function deletionConditions(before: readonly NamespaceCondition[], progress: Progress, nowMs: number): readonly NamespaceCondition[] {
  const failures = told(progress);
  const next = [...before];
  let changed = false;
  for (const [type, fineReason, fineMessage] of FINE) {
    const failure = failures.get(type);
    const [status, reason, message] = failure === undefined ? ["False", fineReason, fineMessage] : ["True", ...failure];
    const at = before.findIndex((one) => one.type === type);
    const old = before[at];
    if (old !== undefined && old.status === status && old.reason === reason && old.message === message) continue;
    changed = true;
    next[old === undefined ? next.length : at] = { type, status, reason, message, lastTransitionTime: old?.status === status ? old.lastTransitionTime : timestamp(nowMs) } as NamespaceCondition;
  }
  return changed ? next : before;
}
