/**
 * What the server decides about metadata, and what it accepts of a client's.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/api/validation/objectmeta.go, apiserver/pkg/registry/rest/{create,update,meta}.go
 */
import { FIELD_IMMUTABLE, type FieldError, child, forbidden, index, invalid, required, tooLong } from "../../api/meta/field-error.ts";
import { fieldManagerErrors } from "../../api/meta/field-manager.ts";
import { validateLabels } from "../../api/meta/label-selector.ts";
import { dns1123Label, qualifiedName } from "../../api/meta/names.ts";
import type { ApiObject, ObjectMeta } from "../../api/meta/object-meta.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import type { WriteContext } from "./resource.ts";

/** The two that the garbage collector looks after. */
export const FINALIZER_ORPHAN = "orphan";
export const FINALIZER_FOREGROUND = "foregroundDeletion";

/** All annotations of an object together, keys and values. */
const ANNOTATIONS_BYTES_MAX = 256 * 1024;
/** Of a managedFields entry. kubernetes v1.36 apimachinery/pkg/apis/meta/v1/validation MaxSubresourceNameLength */
const SUBRESOURCE_BYTES_MAX = 256;

/** Drops what a client may not set at a create. Who creates by replacing or applying may say that it is being deleted. Mutates. */
export function wipeSystemFields(metadata: ObjectMeta): void {
  const meta = metadata as Partial<ObjectMeta>;
  delete meta.uid;
  delete meta.creationTimestamp;
  delete meta.selfLink;
  delete meta.deletionTimestamp;
  delete meta.deletionGracePeriodSeconds;
}

/** Sets what the server decides at a create. Mutates. */
export function fillForCreate(object: ApiObject, context: WriteContext, hasGeneration: boolean): void {
  const meta = object.metadata as Partial<ObjectMeta> & { name: string };
  delete meta.selfLink;
  if (!context.dryRun) delete meta.resourceVersion; // that it is new is for the storage to find out, which a dry run does not come to
  meta.uid = context.uuid();
  meta.creationTimestamp = timestamp(context.nowMs);
  if (hasGeneration) meta.generation = 1; // others keep what the client says
}

/** Keeps what only the server changes. Mutates `next`. */
export function keepForUpdate(next: ApiObject, old: Readonly<ApiObject>): void {
  const { uid, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds, generation } = old.metadata;
  const meta = next.metadata as ObjectMeta;
  meta.uid ||= uid;
  meta.creationTimestamp = creationTimestamp;
  if (deletionTimestamp !== undefined) meta.deletionTimestamp = deletionTimestamp;
  meta.deletionGracePeriodSeconds ??= deletionGracePeriodSeconds; // who says another is refused: validateMetaUpdate
  if (meta.deletionTimestamp === undefined) delete meta.deletionTimestamp;
  if (meta.deletionGracePeriodSeconds === undefined) delete meta.deletionGracePeriodSeconds;
  setOrDelete(meta, "generation", generation);
}

function setOrDelete<K extends "deletionTimestamp" | "deletionGracePeriodSeconds" | "generation">(meta: ObjectMeta, name: K, value: ObjectMeta[K]): void {
  if (value === undefined) delete meta[name];
  else meta[name] = value;
}

/** Fields of metadata in the order the API writes them in, where some were set after others. The object's other fields are shared. */
export function inOrder(object: Readonly<ApiObject>): ApiObject {
  const { metadata: { name, generateName, namespace, uid, resourceVersion, generation, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds, labels, annotations, ownerReferences, finalizers, managedFields, ...rest } } = object;
  const metadata: ObjectMeta = { name, generateName, namespace, uid, resourceVersion, generation, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds, labels, annotations, ownerReferences, finalizers, managedFields, ...rest };
  for (const key of Object.keys(metadata) as (keyof ObjectMeta)[]) if (metadata[key] === undefined) delete metadata[key];
  return { ...object, metadata };
}

export interface MetaRules {
  readonly anyFinalizer?: boolean | undefined;
  /** What is wrong with a generateName; default: as of a name. */
  readonly validateBase?: ((base: string) => Iterable<string>) | undefined;
}

export function* validateMeta(
  object: Readonly<ApiObject>, namespaced: boolean, validateName: (name: string) => Iterable<string>, { anyFinalizer = false, validateBase = validateName }: MetaRules = {},
): Iterable<FieldError> {
  const { name, generateName, generation = 0, namespace, labels, annotations, ownerReferences, finalizers, managedFields } = object.metadata;
  const path = "metadata";
  if (generateName) for (const text of validateBase(generateName.replace(/.-$/su, "a"))) yield invalid(child(path, "generateName"), generateName, text);
  if (!name) yield required(child(path, "name"), "name or generateName is required");
  else for (const text of validateName(name)) yield invalid(child(path, "name"), name, text);
  if (namespaced) {
    if (!namespace) yield required(child(path, "namespace"), "");
    else for (const text of dns1123Label(namespace)) yield invalid(child(path, "namespace"), namespace, text);
  } else if (namespace) yield forbidden(child(path, "namespace"), "not allowed on this type");
  if (generation < 0) yield invalid(child(path, "generation"), generation, "must be greater than or equal to 0");
  yield* describedErrors({ labels, annotations, ownerReferences }, path);
  yield* validateFinalizers(finalizers ?? [], child(path, "finalizers"), anyFinalizer);
  yield* managerErrors(managedFields ?? [], path);
}

function* describedErrors({ labels = {}, annotations = {}, ownerReferences = [] }: Pick<ObjectMeta, "labels" | "annotations" | "ownerReferences">, path: string): Iterable<FieldError> {
  yield* validateLabels(labels, child(path, "labels"));
  yield* validateAnnotations(annotations, child(path, "annotations"));
  yield* validateOwners(ownerReferences, child(path, "ownerReferences"));
}

function* managerErrors(managedFields: NonNullable<ObjectMeta["managedFields"]>, path: string): Iterable<FieldError> {
  for (const [i, { manager = "", subresource = "" }] of managedFields.entries()) {
    const at = index(child(path, "managedFields"), i);
    yield* fieldManagerErrors(manager, child(at, "manager"));
    if (Buffer.byteLength(subresource) > SUBRESOURCE_BYTES_MAX) yield tooLong(child(at, "subresource"), SUBRESOURCE_BYTES_MAX);
  }
}

function* validateAnnotations(annotations: Readonly<Record<string, string>>, path: string): Iterable<FieldError> {
  let bytes = 0;
  for (const [name, value] of Object.entries(annotations)) {
    for (const text of qualifiedName(name.toLowerCase())) yield invalid(path, name, text);
    bytes += Buffer.byteLength(name) + Buffer.byteLength(value);
  }
  if (bytes > ANNOTATIONS_BYTES_MAX) yield tooLong(path, ANNOTATIONS_BYTES_MAX);
}

function* validateOwners(owners: readonly NonNullable<ObjectMeta["ownerReferences"]>[number][], path: string): Iterable<FieldError> {
  let controller: string | undefined;
  for (const owner of owners) { // which of them it is, upstream does not say
    const [, version] = /^(?:[^/]*\/)?([^/]*)$/.exec(owner.apiVersion) ?? []; // of one that cannot be parsed there is none
    if (!version) yield invalid(child(path, "apiVersion"), owner.apiVersion, "version must not be empty");
    if (owner.kind === "") yield invalid(child(path, "kind"), owner.kind, "must not be empty");
    if (owner.name === "") yield invalid(child(path, "name"), owner.name, "must not be empty");
    if (owner.uid === "") yield invalid(child(path, "uid"), owner.uid, "must not be empty");
    if (owner.apiVersion === "v1" && owner.kind === "Event") yield invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner");
    if (!owner.controller) continue;
    if (controller !== undefined)
      yield invalid(path, owners, `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${owner.kind}/${owner.name}`);
    controller = `${owner.kind}/${owner.name}`;
  }
}

function* validateFinalizers(finalizers: readonly string[], path: string, anyFinalizer: boolean): Iterable<FieldError> {
  for (const finalizer of finalizers) for (const text of qualifiedName(finalizer)) yield invalid(path, finalizer, text);
  if (finalizers.includes(FINALIZER_ORPHAN) && finalizers.includes(FINALIZER_FOREGROUND)) yield invalid(path, finalizers, `finalizer ${FINALIZER_ORPHAN} and ${FINALIZER_FOREGROUND} cannot be both set`);
  if (!anyFinalizer) yield* unqualifiedFinalizers(finalizers, path);
}

/** What the kinds of Kubernetes itself ask of a finalizer, beyond its form. */
export function* unqualifiedFinalizers(finalizers: readonly string[], path = "metadata.finalizers"): Iterable<FieldError> {
  for (const [i, finalizer] of finalizers.entries())
    if (!finalizer.includes("/") && ![FINALIZER_ORPHAN, FINALIZER_FOREGROUND, "kubernetes"].includes(finalizer)) yield invalid(index(path, i), finalizer, "name is neither a standard finalizer name nor is it fully qualified");
}

/** What an update may not change. */
export function* validateMetaUpdate(next: Readonly<ApiObject>, old: Readonly<ApiObject>): Iterable<FieldError> {
  const path = "metadata";
  if (old.metadata.deletionTimestamp && next.metadata.finalizers) {
    const before = new Set(old.metadata.finalizers ?? []);
    const added = next.metadata.finalizers.filter((finalizer) => !before.has(finalizer));
    if (added.length > 0) yield forbidden(child(path, "finalizers"), `no new finalizers can be added if the object is being deleted, found new finalizers []string{${added.map((name) => JSON.stringify(name)).join(", ")}}`);
  }
  for (const name of ["name", "namespace", "uid"] as const)
    if ((next.metadata[name] ?? "") !== (old.metadata[name] ?? "")) yield invalid(child(path, name), next.metadata[name] ?? "", FIELD_IMMUTABLE);
  for (const name of ["deletionTimestamp", "deletionGracePeriodSeconds"] as const)
    if (next.metadata[name] !== old.metadata[name]) yield invalid(child(path, name), next.metadata[name] ?? null, FIELD_IMMUTABLE);
}

/** All that upstream says of a change, what may be said of any object among it. */
export function changeErrors(next: Readonly<ApiObject>, old: Readonly<ApiObject>): FieldError[] {
  return [...validateMetaUpdate(next, old), ...describedErrors(next.metadata, "metadata"), ...managerErrors(next.metadata.managedFields ?? [], "metadata")];
}
