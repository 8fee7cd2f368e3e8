/**
 * Claims of volumes: what is asked for, and what of it may still change.
 *
 * Source: kubernetes v1.36 pkg/apis/core/validation/validation.go ValidatePersistentVolumeClaim…
 */
import { child, type FieldError, FIELD_IMMUTABLE, forbidden, invalid, key, notSupported, required } from "../../../api/meta/field-error.ts";
import type {
  PersistentVolumeClaim, PersistentVolumeClaimSpec, PersistentVolumeClaimTemplate, TypedLocalObjectReference, TypedObjectReference,
} from "../../../api/gen/core.v1.ts";
import { isNativeResource } from "../../../api/meta/resource-names.ts";
import { internalForm } from "../../../api/schema/internal-form.ts";
import { validateLabels, validateLabelSelector } from "../../../api/meta/label-selector.ts";
import { qualifiedName } from "../../../api/meta/names.ts";
import { annotationsOf, type TemplateMeta } from "../../../api/meta/object-meta.ts";
import { compareQuantities } from "../../../api/meta/quantity.ts";
import { validateAnnotations } from "../checks/annotations.ts";
import { jsonDiff } from "../checks/diff.ts";
import { semanticEqual } from "../checks/equal.ts";
import { positiveQuantity, resourceQuantity, volumeQuantity } from "../checks/resources.ts";
import { immutable, isDns1123Label, isDns1123Subdomain, oneOfOptional, problems } from "../checks/values.ts";

const SPEC = "io.k8s.api.core.v1.PersistentVolumeClaimSpec";
const ACCESS_MODES = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
export const VOLUME_MODES = ["Block", "Filesystem"];
/** Where a claim named its class before there was a field for it. */
const CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class";
const RESIZE_STATUSES = ["ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible", "NodeResizePending"].sort();

export function* validateAccessModes(path: string, modes: readonly string[]): Iterable<FieldError> {
  for (const mode of modes) if (!ACCESS_MODES.includes(mode)) yield notSupported(path, mode, ACCESS_MODES);
  if (modes.includes("ReadWriteOncePod") && modes.some((mode) => mode !== "ReadWriteOncePod" && ACCESS_MODES.includes(mode)))
    yield forbidden(path, "may not use ReadWriteOncePod with other access modes");
}

/** `old`: what is replaced; what it holds already is let pass. */
export function* validateClaimSpec(path: string, spec: Readonly<PersistentVolumeClaimSpec>, old?: Readonly<PersistentVolumeClaimSpec>): Iterable<FieldError> {
  const modes = spec.accessModes ?? [];
  if (modes.length === 0) yield required(child(path, "accessModes"), "at least 1 access mode is required");
  const allowInvalidValues = old !== undefined && validateLabelSelector(old.selector, "").length > 0;
  yield* validateLabelSelector(spec.selector, child(path, "selector"), { allowInvalidValues });
  yield* validateAccessModes(child(path, "accessModes"), modes);

  const storage = spec.resources?.requests?.["storage"];
  const storagePath = key(child(path, "resources"), "storage");
  if (storage === undefined) yield required(storagePath);
  else {
    const errors = [...positiveQuantity(storagePath, storage)];
    yield* errors.length > 0 ? errors : resourceQuantity(storagePath, "storage", storage);
  }
  if (spec.storageClassName) yield* isDns1123Subdomain(child(path, "storageClassName"), spec.storageClassName);
  yield* oneOfOptional(child(path, "volumeMode"), spec.volumeMode, VOLUME_MODES);
  const anyGroup = old?.dataSource?.apiGroup != null || old?.dataSourceRef?.apiGroup != null;
  if (spec.dataSource) yield* validateDataSource(child(path, "dataSource"), spec.dataSource, anyGroup);
  if (spec.dataSourceRef) {
    yield* validateDataSource(child(path, "dataSourceRef"), spec.dataSourceRef, anyGroup);
    if (spec.dataSourceRef.namespace) yield* isDns1123Label(child(path, "dataSourceRef", "namespace"), spec.dataSourceRef.namespace);
  }
  yield* validateSourcesAgree(path, spec);
  if (spec.volumeAttributesClassName) yield* isDns1123Subdomain(child(path, "volumeAttributesClassName"), spec.volumeAttributesClassName);
}

function* validateDataSource(path: string, { apiGroup, kind, name }: TypedLocalObjectReference | TypedObjectReference, anyGroup: boolean): Iterable<FieldError> {
  if (!name) yield required(child(path, "name"));
  if (!kind) yield required(child(path, "kind"));
  if (!apiGroup && kind !== "PersistentVolumeClaim") yield invalid(path, kind ?? "", "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
  if (apiGroup && !anyGroup) yield* isDns1123Subdomain(child(path, "apiGroup"), apiGroup);
}

function* validateSourcesAgree(path: string, { dataSource, dataSourceRef }: Readonly<PersistentVolumeClaimSpec>): Iterable<FieldError> {
  if (!dataSource || !dataSourceRef) return;
  const shown = {}; // upstream gives the path for the value, whose fields nobody else sees
  if (dataSourceRef.namespace) yield invalid(path, shown, "may not be specified when dataSourceRef.namespace is specified");
  else if (dataSource.apiGroup !== dataSourceRef.apiGroup || dataSource.kind !== dataSourceRef.kind || dataSource.name !== dataSourceRef.name)
    yield invalid(path, shown, "must match dataSourceRef");
}

export function* validateClaimTemplate(path: string, template: Readonly<PersistentVolumeClaimTemplate>): Iterable<FieldError> {
  yield* validateTemplateMeta(child(path, "metadata"), template.metadata ?? {});
  yield* validateClaimSpec(child(path, "spec"), template.spec ?? {});
}

/** Metadata of something that will be created from a template: labels and annotations, nothing else. */
export function* validateTemplateMeta(path: string, metadata: Readonly<TemplateMeta>): Iterable<FieldError> {
  yield* validateAnnotations(child(path, "annotations"), metadata.annotations);
  yield* validateLabels(metadata.labels, child(path, "labels"));
  for (const [field, value] of Object.entries(metadata))
    if (field !== "annotations" && field !== "labels" && value !== undefined && value !== "" && value !== null) yield forbidden(child(path, field === "uid" ? "uID" : field), "cannot be set"); // upstream makes the name of Go's
}

/** dataSource and dataSourceRef say the same, where one is there that could be the other. Mutates. */
export function nameSourceTwice(spec: PersistentVolumeClaimSpec): void {
  if (spec.dataSource && !spec.dataSourceRef) spec.dataSourceRef = { ...spec.dataSource };
  else if (spec.dataSourceRef && !spec.dataSource && !spec.dataSourceRef.namespace) {
    const { namespace: _, ...source } = spec.dataSourceRef;
    spec.dataSource = source;
  }
}

export function* validateClaimUpdate(next: Readonly<PersistentVolumeClaim>, old: Readonly<PersistentVolumeClaim>): Iterable<FieldError> {
  const compared: { spec: PersistentVolumeClaimSpec } = { spec: { ...next.spec } };
  const before: PersistentVolumeClaimSpec = { ...old.spec };
  nameSourceTwice(before); // who wrote it may have known of one name alone
  if (!old.spec.volumeName) before.volumeName = next.spec.volumeName; // binding may name the volume, once

  const oldClass = annotationsOf(old)[CLASS_ANNOTATION];
  const nextClass = annotationsOf(next)[CLASS_ANNOTATION];
  const { storageClassName } = next.spec;
  const wasUnset = old.spec.storageClassName === undefined && storageClassName !== undefined;
  if (wasUnset && oldClass !== undefined && storageClassName === oldClass && (nextClass === undefined || nextClass === oldClass)) delete compared.spec.storageClassName;
  else {
    if ((oldClass ?? "") !== (nextClass ?? "")) yield invalid(child("metadata", "annotations", CLASS_ANNOTATION), nextClass ?? "", FIELD_IMMUTABLE);
    if (wasUnset && (oldClass === undefined || storageClassName === oldClass)) delete compared.spec.storageClassName;
  }
  if (next.status?.phase === "Bound") {
    const storage = old.spec.resources?.requests?.["storage"];
    if (compared.spec.resources?.requests && storage !== undefined)
      compared.spec.resources = { ...compared.spec.resources, requests: { ...compared.spec.resources.requests, storage } };
    compared.spec.volumeAttributesClassName = old.spec.volumeAttributesClassName;
  }
  if (!semanticEqual(compared.spec, before))
    yield forbidden("spec", `spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n${jsonDiff(internalForm(SPEC, before), internalForm(SPEC, compared.spec))}`);

  const oldSize = old.spec.resources?.requests?.["storage"] ?? "0";
  const newSize = next.spec.resources?.requests?.["storage"] ?? "0";
  if (compareQuantities(newSize, oldSize) < 0 && compareQuantities(newSize, old.status?.capacity?.["storage"] ?? "0") <= 0)
    yield forbidden(child("spec", "resources", "requests", "storage"), "field can not be less than status.capacity");
  yield* immutable("volumeMode", next.spec.volumeMode, old.spec.volumeMode);
  yield* validateAttributesClassChange(next, old);
}

function* validateAttributesClassChange(next: Readonly<PersistentVolumeClaim>, old: Readonly<PersistentVolumeClaim>): Iterable<FieldError> {
  const wanted = next.spec.volumeAttributesClassName;
  if (wanted === old.spec.volumeAttributesClassName || old.status?.currentVolumeAttributesClassName === undefined) return;
  const path = child("spec", "volumeAttributesClassName");
  if (wanted === undefined) yield forbidden(path, "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil");
  else if (wanted === "") yield forbidden(path, "update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil");
}

export function* validateClaimStatus({ spec, status }: Readonly<PersistentVolumeClaim>): Iterable<FieldError> {
  if ((spec.accessModes ?? []).length === 0) yield required("Spec.accessModes");
  for (const [name, value] of Object.entries(status?.capacity ?? {})) yield* volumeQuantity(key("status.capacity", name), value);
  for (const [name, value] of Object.entries(status?.allocatedResourceStatuses ?? {})) {
    const path = "status.allocatedResourceStatuses";
    yield* validateResourceKey(path, name);
    if (!RESIZE_STATUSES.includes(value)) yield notSupported(path, name, RESIZE_STATUSES);
  }
  for (const [name, value] of Object.entries(status?.allocatedResources ?? {})) {
    const path = "status.allocatedResources";
    const errors = [...validateResourceKey(path, name)];
    if (errors.length === 0) errors.push(...volumeQuantity(key(path, name), value));
    yield* errors.length > 0 ? errors : resourceQuantity(key(path, name), "storage", value);
  }
}

function* validateResourceKey(path: string, name: string): Iterable<FieldError> {
  const wrong = qualifiedName(name);
  if (wrong.length > 0) yield* problems(path, name, wrong);
  else if (isNativeResource(name) && name !== "storage") yield notSupported(path, name, ["storage"]);
}

