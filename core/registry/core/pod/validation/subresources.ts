/**
 * Changes through a pod's subresources: debugging containers are added, resources are resized.
 *
 * Source: kubernetes v1.36 pkg/apis/core/validation/validation.go ValidatePodEphemeralContainersUpdate, ValidatePodResize
 */
import { child, type FieldError, forbidden, index, invalid, NO_FIELD } from "../../../../api/meta/field-error.ts";
import type { Container, Pod, PodSpec, ResourceRequirements } from "../../../../api/gen/core.v1.ts";
import { goQuote } from "../../../../api/meta/go-quote.ts";
import { internalForm } from "../../../../api/schema/internal-form.ts";
import { jsonDiff } from "../../checks/diff.ts";
import { semanticEqual } from "../../checks/equal.ts";
import type { ResourceList } from "../../checks/resources.ts";
import { isSidecar } from "../containers.ts";
import { computeQos, qosOf } from "../qos.ts";
import type { PodRules } from "../rules.ts";
import { MIRROR_ANNOTATION, validatePod, validatePodAnnotations } from "./spec.ts";
import { validateAnnotationUpdates } from "./update.ts";

const EPHEMERAL = "io.k8s.api.core.v1.EphemeralContainer";

export function* validateEphemeralUpdate(next: Readonly<Pod>, old: Readonly<Pod>, rules: PodRules): Iterable<FieldError> {
  if (old.metadata.annotations?.[MIRROR_ANNOTATION] !== undefined) { yield forbidden(NO_FIELD, "static pods do not support ephemeral containers"); return; }
  yield* validatePod(next, rules);
  yield* validateAnnotationUpdates(next.metadata.annotations ?? {}, old.metadata.annotations ?? {});
  yield* validatePodAnnotations("metadata.annotations", next.metadata.annotations ?? {}, next.spec, rules); // once more, as upstream does
  const path = "spec.ephemeralContainers";
  const byName = new Map((next.spec.ephemeralContainers ?? []).map((container) => [container.name, container]));
  for (const container of old.spec.ephemeralContainers ?? []) {
    const same = byName.get(container.name);
    if (!same) yield forbidden(path, `existing ephemeral containers ${goQuote(container.name)} may not be removed\n`);
    else if (!semanticEqual(same, container)) yield forbidden(path, `existing ephemeral containers ${goQuote(container.name)} may not be changed\n${jsonDiff(internalForm(EPHEMERAL, container), internalForm(EPHEMERAL, same))}`);
  }
}

const ONLY_RESOURCES = "only cpu and memory resources are mutable";

export function* validateResize(next: Readonly<Pod>, old: Readonly<Pod>, rules: PodRules): Iterable<FieldError> {
  if (old.metadata.annotations?.[MIRROR_ANNOTATION] !== undefined) { yield forbidden(NO_FIELD, "static pods cannot be resized"); return; }
  if (old.spec.os?.name === "windows") { yield forbidden(NO_FIELD, "windows pods cannot be resized"); return; }
  const errors = [...validatePod(next, rules)];
  if (qosOf(old) !== computeQos(next)) errors.push(invalid("spec", next.status?.qosClass ?? "", "Pod QOS Class may not change as a result of resizing"));
  const running = (old.status?.containerStatuses ?? []).find(({ state }) => state?.running);
  if (running && !running.resources) errors.push(forbidden("spec", "Pod running on node without support for resize"));
  const munged: PodSpec = { ...next.spec };
  if (hasAmounts(old.spec.resources) || hasAmounts(next.spec.resources)) errors.push(...validatePodLevel(next, old, munged));
  if ((old.status?.nodeAllocatableResourceClaimStatuses ?? []).length > 0) errors.push(forbidden("spec", "pods with node allocatable resource claims cannot be resized"));
  const order = [...validateOrder(next.spec, old.spec)];
  yield* errors;
  yield* order;
  if (order.length > 0) return;

  const own = [...validateAmountsKept(next.spec, old.spec), ...validateContainersKept(next.spec, old.spec)];
  yield* own;
  if (errors.length + own.length > 0) return;
  munged.containers = old.spec.containers;
  munged.initContainers = old.spec.initContainers;
  if (!semanticEqual(munged, old.spec)) yield forbidden("spec", ONLY_RESOURCES);
}

function hasAmounts(resources: ResourceRequirements | undefined): boolean {
  return Object.keys(resources?.requests ?? {}).length + Object.keys(resources?.limits ?? {}).length > 0;
}

/** Changes `munged` to what its resources would be had CPU and memory stayed. */
function* validatePodLevel(next: Readonly<Pod>, old: Readonly<Pod>, munged: PodSpec): Iterable<FieldError> {
  const path = "spec.resources";
  const before = old.spec.resources;
  if (before && !next.spec.resources) { yield forbidden(path, "pod-level resources cannot be removed"); return; }
  if (before) {
    if (removed(next.spec.resources?.requests, before.requests)) yield forbidden(child(path, "requests"), "pod-level resource requests cannot be removed");
    if (removed(next.spec.resources?.limits, before.limits)) yield forbidden(child(path, "limits"), "pod-level resource limits cannot be removed");
  }
  const kept = withOldCompute(next.spec.resources ?? {}, before);
  munged.resources = before || hasAmounts(kept) || kept.claims?.length ? kept : undefined;
  if (!semanticEqual(munged.resources, before)) yield forbidden("spec", `${ONLY_RESOURCES} at pod-level`);
}

function* validateOrder(next: Readonly<PodSpec>, old: Readonly<PodSpec>): Iterable<FieldError> {
  for (const field of ["containers", "initContainers"] as const) {
    const path = child("spec", field);
    const [before, after] = [old[field] ?? [], next[field] ?? []];
    if (before.length !== after.length) yield forbidden(path, `${field} may not be added or removed on resize`);
    else for (const [i, { name }] of before.entries()) if (after[i]!.name !== name) yield forbidden(child(index(path, i), "name"), `${field} may not be renamed or reordered on resize`);
  }
}

function* validateAmountsKept(next: Readonly<PodSpec>, old: Readonly<PodSpec>): Iterable<FieldError> {
  for (const field of ["initContainers", "containers"] as const) {
    for (const [i, { resources }] of (old[field] ?? []).entries()) {
      const path = child(index(child("spec", field), i), "resources");
      const after = next[field]![i]!.resources;
      if (removed(after?.requests, resources?.requests)) yield forbidden(child(path, "requests"), "resource requests cannot be removed");
      if (removed(after?.limits, resources?.limits)) yield forbidden(child(path, "limits"), "resource limits cannot be removed");
    }
  }
}

function* validateContainersKept(next: Readonly<PodSpec>, old: Readonly<PodSpec>): Iterable<FieldError> {
  for (const [i, container] of (next.containers ?? []).entries()) if (!semanticEqual(withOldComputeOf(container, old.containers[i]!), old.containers[i])) yield forbidden("spec", ONLY_RESOURCES);
  for (const [i, container] of (next.initContainers ?? []).entries()) {
    const before = old.initContainers![i]!;
    const path = index("spec.initContainers", i);
    if (semanticEqual(container, before)) continue;
    if (!semanticEqual(withOldComputeOf(container, before), before)) yield forbidden(path, "only cpu and memory resources for init or sidecar containers are mutable");
    if (!isSidecar(container))
      for (const { restartPolicy } of container.resizePolicy ?? [])
        if (restartPolicy === "RestartContainer") yield forbidden(path, "non-sidecar init containers with a resize policy of RestartContainer cannot be resized");
  }
}

function removed(next: ResourceList | undefined, old: ResourceList | undefined): boolean { return Object.keys(old ?? {}).some((name) => next?.[name] === undefined); }

function withOldComputeOf(container: Readonly<Container>, old: Readonly<Container>): Container {
  const { claims: _, ...resources } = withOldCompute(container.resources ?? {}, old.resources); // upstream leaves them out, so that one that is added is no change
  return { ...container, resources };
}

function withOldCompute(resources: ResourceRequirements, old: ResourceRequirements | undefined): ResourceRequirements {
  const limits = oldCompute(resources.limits, old?.limits);
  const requests = oldCompute(resources.requests, old?.requests);
  return { ...(limits ? { limits } : {}), ...(requests ? { requests } : {}), ...(resources.claims ? { claims: resources.claims } : {}) };
}

function oldCompute(next: ResourceList | undefined, old: ResourceList | undefined): Record<string, string> | undefined {
  const kept = Object.fromEntries([
    ...Object.entries(next ?? {}).filter(([name]) => name !== "cpu" && name !== "memory"),
    ...Object.entries(old ?? {}).filter(([name]) => name === "cpu" || name === "memory"),
  ]);
  return Object.keys(kept).length > 0 ? kept : undefined;
}
