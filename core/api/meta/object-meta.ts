/**
 * What every API object carries: type, metadata, and the small questions everyone asks of them.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/
 * Source: kubernetes v1.36 staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/{types,controller_ref}.go
 *
 * The types describe objects as the server stores and returns them: name, uid, resourceVersion and creationTimestamp are there.
 * What a client sends for a create is `NewObject<T>`; metadata inside templates is `TemplateMeta`.
 * Objects that come from the registry, an informer or a client are deeply frozen; build a new one instead of changing it.
 */

export interface TypeMeta { apiVersion: string; kind: string }

export interface ListMeta { selfLink?: string | undefined; resourceVersion?: string | undefined; continue?: string | undefined; remainingItemCount?: number | undefined }

export interface OwnerReference {
  apiVersion: string; kind: string; name: string; uid: string;
  controller?: boolean | undefined; blockOwnerDeletion?: boolean | undefined;
}

/** A set of fields in its wire form: keys `f:name`, `k:{"key":"value"}`, `v:value`, `i:0` and `.` nested as the object is. */
export interface FieldsV1 { [element: string]: FieldsV1 }

export interface ManagedFieldsEntry {
  manager?: string | undefined;
  operation?: "Apply" | "Update" | undefined;
  apiVersion?: string | undefined;
  time?: string | undefined;
  fieldsType?: string | undefined;
  fieldsV1?: FieldsV1 | undefined;
  subresource?: string | undefined;
}

export interface ObjectMeta {
  name: string;
  generateName?: string | undefined;
  /** Absent for cluster-scoped objects; `namespaceOf` reads it as "". */
  namespace?: string | undefined;
  selfLink?: string | undefined;
  uid: string;
  resourceVersion: string;
  /** Counts changes of the desired state; absent for kinds that have none. */
  generation?: number | undefined;
  /** RFC 3339, whole seconds, UTC. */
  creationTimestamp: string;
  deletionTimestamp?: string | undefined;
  deletionGracePeriodSeconds?: number | undefined;
  labels?: Record<string, string> | undefined;
  annotations?: Record<string, string> | undefined;
  ownerReferences?: OwnerReference[] | undefined;
  finalizers?: string[] | undefined;
  managedFields?: ManagedFieldsEntry[] | undefined;
}

/** Metadata of something that is not stored by itself: a pod template, a volume claim template, an object on its way to be created. */
export type TemplateMeta = Partial<ObjectMeta>;

export interface ApiObject extends TypeMeta { metadata: ObjectMeta }

/** What a client sends to create a T: the server fills in the rest. */
export type NewObject<T extends ApiObject> = Omit<T, "metadata" | "status"> & { metadata: TemplateMeta };

/** "namespace/name", or "name" for cluster-scoped objects. Unique within one resource. */
export type ObjectKey = string & { readonly __brand: "namespace/name" };

type Metadata = { readonly metadata: Readonly<TemplateMeta> };

export function keyOf(object: Metadata): ObjectKey {
  return objectKey(object.metadata.namespace ?? "", object.metadata.name ?? "");
}

export function objectKey(namespace: string, name: string): ObjectKey {
  return (namespace === "" ? name : `${namespace}/${name}`) as ObjectKey;
}

export function splitKey(key: ObjectKey): { readonly namespace: string; readonly name: string } {
  const slash = key.indexOf("/");
  return slash < 0 ? { namespace: "", name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** "" for cluster-scoped objects. */
export function namespaceOf(object: Metadata): string { return object.metadata.namespace ?? ""; }

export function labelsOf(object: Metadata): Readonly<Record<string, string>> { return object.metadata.labels ?? NONE; }

/** A label may be called what every object of the language has, as constructor. */
export function labelAt(labels: Readonly<Record<string, string>>, key: string): string | undefined { return Object.hasOwn(labels, key) ? labels[key] : undefined; }

export function annotationsOf(object: Metadata): Readonly<Record<string, string>> { return object.metadata.annotations ?? NONE; }

const NONE: Readonly<Record<string, string>> = Object.freeze({});

export function isDeleting(object: Metadata): boolean { return object.metadata.deletionTimestamp != null; }

export function hasFinalizer(object: Metadata, finalizer: string): boolean {
  return object.metadata.finalizers?.includes(finalizer) ?? false;
}

/** The one owner reference with `controller: true`. */
export function controllerOf(object: Metadata): Readonly<OwnerReference> | undefined {
  return object.metadata.ownerReferences?.find((owner) => owner.controller === true);
}

export function isControlledBy(object: Metadata, owner: { readonly metadata: { readonly uid: string } }): boolean {
  return controllerOf(object)?.uid === owner.metadata.uid;
}

/** The reference a controller puts on what it creates: the owner cannot vanish in the foreground before its dependents. */
export function controllerRef(owner: Readonly<ApiObject>): OwnerReference {
  return { ...ownerRef(owner), controller: true, blockOwnerDeletion: true };
}

function ownerRef(owner: Readonly<ApiObject>): OwnerReference {
  return { apiVersion: owner.apiVersion, kind: owner.kind, name: owner.metadata.name, uid: owner.metadata.uid };
}
