/**
 * StorageClass and VolumeAttributesClass (storage.k8s.io/v1): how volumes are made when a claim asks for one, and what of them can change later.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/storage-class-v1/
 * Source: kubernetes v1.36 pkg/registry/storage/{storageclass,volumeattributesclass}/strategy.go, pkg/apis/storage/{v1/defaults,validation/validation}.go
 */
import type { TopologySelectorLabelRequirement, TopologySelectorTerm } from "../../api/gen/core.v1.ts";
import type { StorageClass, VolumeAttributesClass } from "../../api/gen/storage.v1.ts";
import { child, duplicate, type FieldError, forbidden, index, required } from "../../api/meta/field-error.ts";
import { validateLabelName } from "../../api/meta/label-selector.ts";
import { immutable, oneOfOptional } from "../core/checks/values.ts";
import { deprecatedNodeLabel } from "../core/pod/warnings.ts";
import { defineResource } from "../generic/resource.ts";
import { validateParameters, validateProvisioner } from "./class-fields.ts";
import { repeats } from "../../api/meta/linear.ts";

export const storageClasses = defineResource<StorageClass>({
  group: "storage.k8s.io", version: "v1", kind: "StorageClass", plural: "storageclasses", generation: false, updateOrder: "change last",
  defaults(object) {
    object.reclaimPolicy ??= "Delete";
    object.volumeBindingMode ??= "Immediate";
  },
  *validate({ provisioner, parameters, reclaimPolicy, volumeBindingMode, allowedTopologies }): Iterable<FieldError> {
    yield* validateProvisioner("provisioner", provisioner);
    yield* validateParameters("parameters", parameters, { mayBeEmpty: true });
    yield* oneOfOptional("reclaimPolicy", reclaimPolicy || undefined, ["Delete", "Retain"]);
    yield* oneOfOptional("volumeBindingMode", volumeBindingMode, ["Immediate", "WaitForFirstConsumer"]);
    yield* validateTopologies("allowedTopologies", allowedTopologies ?? []);
  },
  *validateUpdate(next, old) {
    for (const field of ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] as const) yield* immutable(field, next[field], old[field]);
  },
  *warnings({ allowedTopologies }) {
    for (const [i, { matchLabelExpressions }] of (allowedTopologies ?? []).entries())
      for (const [j, { key }] of (matchLabelExpressions ?? []).entries()) {
        const text = deprecatedNodeLabel(key);
        if (text !== undefined) yield `${child(index(child(index("allowedTopologies", i), "matchLabelExpressions"), j), "key")}: ${text}`;
      }
  },
});

export const volumeAttributesClasses = defineResource<VolumeAttributesClass>({
  group: "storage.k8s.io", version: "v1", kind: "VolumeAttributesClass", plural: "volumeattributesclasses", generation: false,
  *validate({ driverName, parameters }, old): Iterable<FieldError> {
    if (old && driverName !== old.driverName) yield forbidden("driverName", "updates to driverName are forbidden."); // the first to be told
    if (old && !Bun.deepEquals(parameters ?? {}, old.parameters ?? {})) yield forbidden("parameters", "updates to parameters are forbidden.");
    yield* validateProvisioner("driverName", driverName);
    yield* validateParameters("parameters", parameters, { mayBeEmpty: false });
  },
});

function* validateTopologies(path: string, terms: readonly TopologySelectorTerm[]): Iterable<FieldError> {
  const seen = new Map<string, number>([[JSON.stringify([]), terms.length]]); // a term that asks for nothing repeats what none would say, as often as upstream has made room for it
  for (const [i, { matchLabelExpressions = [] }] of terms.entries()) {
    const at = child(index(path, i), "matchLabelExpressions");
    const keys = new Set<string>();
    for (const [j, requirement] of matchLabelExpressions.entries()) {
      const itemPath = index(at, j);
      yield* validateRequirement(itemPath, requirement);
      if (keys.has(requirement.key)) yield duplicate(child(itemPath, "key"), requirement.key);
      keys.add(requirement.key);
    }
    const asked = new Map(matchLabelExpressions.map(({ key, values }) => [key, [...new Set(values)].toSorted()])); // of a key that is there twice, the later
    const id = JSON.stringify([...asked].toSorted(([a], [b]) => (a < b ? -1 : 1)));
    const times = seen.get(id) ?? 0;
    for (let k = 0; k < times; k++) yield duplicate(at, "");
    seen.set(id, times + 1);
  }
}

function* validateRequirement(path: string, { key, values }: TopologySelectorLabelRequirement): Iterable<FieldError> {
  const at = child(path, "values");
  if (!values?.length) yield required(at);
  const cameBefore = repeats<string>();
  for (const [i, value] of (values ?? []).entries()) if (cameBefore(value)) yield duplicate(index(at, i), value);
  yield* validateLabelName(key, child(path, "key"));
}
