/** What every object of the API has in common. */

/** Metadata of an object as the API returns it. */
export interface ObjectMeta {
  name: string;
  generateName?: string | undefined;
  /** Absent on cluster-scoped objects. */
  namespace?: string | undefined;
  selfLink?: string | undefined;
  uid: string;
  resourceVersion: string;
  generation?: number | undefined;
  creationTimestamp: string;
  deletionTimestamp?: string | undefined;
  deletionGracePeriodSeconds?: number | undefined;
  labels?: Record<string, string> | undefined;
  annotations?: Record<string, string> | undefined;
  ownerReferences?: OwnerReference[] | undefined;
  finalizers?: string[] | undefined;
  managedFields?: ManagedFieldsEntry[] | undefined;
}

export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean | undefined;
  blockOwnerDeletion?: boolean | undefined;
}

export interface ManagedFieldsEntry {
  manager?: string | undefined;
  operation?: "Apply" | "Update" | undefined;
  apiVersion?: string | undefined;
  time?: string | undefined;
  fieldsType?: string | undefined;
  fieldsV1?: Record<string, unknown> | undefined;
  subresource?: string | undefined;
}

export interface TypeMeta {
  apiVersion: string;
  kind: string;
}

export interface ListMeta {
  resourceVersion?: string | undefined;
  continue?: string | undefined;
  remainingItemCount?: number | undefined;
  selfLink?: string | undefined;
}

export interface ApiObject extends TypeMeta {
  metadata: ObjectMeta;
}

/** An object as a client hands it in: the server fills in the rest of the metadata. */
export type Draft<T extends ApiObject> = Omit<T, "metadata" | "status"> & { metadata: Partial<ObjectMeta>; status?: unknown };

/** `namespace/name`, or `name` alone for a cluster-scoped object. */
export type ObjectKey = string & { readonly __brand: "ObjectKey" };

export function objectKey(namespace: string | undefined, name: string): ObjectKey {
  return (namespace ? `${namespace}/${name}` : name) as ObjectKey;
}

export function keyOf({ metadata }: { readonly metadata: Pick<ObjectMeta, "name" | "namespace"> }): ObjectKey {
  return objectKey(metadata.namespace, metadata.name);
}

export function splitKey(key: ObjectKey): { namespace: string | undefined; name: string } {
  const slash = key.indexOf("/");
  return slash < 0 ? { namespace: undefined, name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** The one owner that manages this object, if any. */
export function controllerOf({ metadata }: Readonly<ApiObject>): OwnerReference | undefined {
  return metadata.ownerReferences?.find((owner) => owner.controller);
}
