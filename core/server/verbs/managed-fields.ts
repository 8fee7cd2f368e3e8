/** metadata.managedFields: which manager a request writes for, and what it can come to own. */
import { type GroupVersionKind, parseApiVersion } from "../../api/meta/gvk.ts";
import type { ApiObject, ManagedFieldsEntry } from "../../api/meta/object-meta.ts";
import { excludeFields, type FieldFilter, includeFields } from "../../api/patch/apply/field-filter.ts";
import { managerName, managersSent } from "../../api/patch/apply/managers.ts";
import { ConversionError, type Versions } from "../../api/patch/apply/ownership.ts";
import { parentManagedFields, type ReplicasPaths, scaleManagedFields } from "../../api/patch/apply/scale.ts";
import { updateManagedFields } from "../../api/patch/apply/update.ts";
import { builtInSchemas } from "../../api/patch/facts-schema.ts";
import type { JsonMap } from "../../api/patch/json-value.ts";
import type { ObjectSchema } from "../../api/patch/schema.ts";
import { headerText } from "../../api/request/header-text.ts";
import { convert } from "../../registry/conversions.ts";
import type { ServedResource } from "../../registry/registry.ts";
import type { Scope } from "../scope.ts";

const NOT_STATUS = excludeFields("status");
const ONLY_STATUS = includeFields("status", "metadata");
const STATUS_ALONE = includeFields("status");
const NOT_SPEC = excludeFields("metadata", "spec");

/** Those of which more, or other things, are reset. Source: GetResetFields of the strategies in kubernetes v1.36 pkg/registry */
const RESETS: ReadonlyMap<string, FieldFilter | undefined> = new Map([
  ["certificates.k8s.io/certificatesigningrequests", excludeFields("spec", "status")],
  ["certificates.k8s.io/certificatesigningrequests/status", excludeFields("spec", "status.conditions")],
  ["certificates.k8s.io/certificatesigningrequests/approval", excludeFields("spec", "status.certificate")],
  ["apps/deployments/status", excludeFields("spec", "metadata.labels")],
  ["/pods/status", excludeFields("spec", "metadata.deletionTimestamp", "metadata.ownerReferences")],
  ["/pods/ephemeralcontainers", undefined],
  ["/pods/resize", undefined],
  ["scheduling.k8s.io/podgroups", undefined],
  ...[
    "admissionregistration.k8s.io/validatingadmissionpolicies", "apiregistration.k8s.io/apiservices", "flowcontrol.apiserver.k8s.io/flowschemas", "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations",
    "internal.apiserver.k8s.io/storageversions", "networking.k8s.io/servicecidrs", "resource.k8s.io/devicetaintrules", "resource.k8s.io/resourceclaims", "resource.k8s.io/resourcepoolstatusrequests", "scheduling.k8s.io/podgroups", "storage.k8s.io/volumeattachments",
  ].map((resource): [string, FieldFilter] => [`${resource}/status`, STATUS_ALONE]),
]);

/** What the registry resets whatever the client sends is nobody's. */
export function ownableFields({ row, custom }: ServedResource, subresource: string): FieldFilter | undefined {
  const key = `${row.group}/${row.plural}${subresource && `/${subresource}`}`;
  if (RESETS.has(key)) return RESETS.get(key);
  if (subresource === "status") return custom ? NOT_SPEC : ONLY_STATUS;
  return row.subresources.some(({ name }) => name === "status") ? NOT_STATUS : undefined;
}

/** The manager of this request: the fieldManager it names, or its program. */
function managerOf({ request }: Scope): string {
  return managerName(request.query.get("fieldManager") ?? undefined, headerText(request.header("user-agent") ?? ""));
}

/** Records who owns what `next` changes of `live`, in the version of the request. Both are of the storage version. Mutates `next`. */
export async function recordOwner(scope: Scope, next: ApiObject, live: Readonly<ApiObject> | undefined, nowMs: number): Promise<void> {
  const { served, info } = scope;
  const written = shownIn(served, next);
  const schema = schemaOf(scope, { ...parseApiVersion(written.apiVersion), kind: written.kind });
  if (!schema) return;
  const { metadata: { managedFields } } = await withVersions(scope, (versions) => updateManagedFields<ApiObject>({
    live: live && shownIn(served, live), updated: live ? written : outlineOf(scope, written), manager: managerOf(scope), apiVersion: written.apiVersion, subresource: info.subresource, schema, nowMs, filter: ownableFields(served, info.subresource),
    respelled: scope.respelled,
    versions,
  }));
  next.metadata = { ...next.metadata }; // of which a version has annotations of its own
  if (managedFields === undefined) delete next.metadata.managedFields;
  else next.metadata.managedFields = managedFields;
}

/** Of a new object every field is its manager's, whatever it says: where others of this outline were there before, it is known which they are. */
function outlineOf({ served: { row, definition }, respelled }: Scope, object: ApiObject): ApiObject {
  const { kind, spec } = object as ApiObject & { readonly spec?: object | null };
  return spec && definition.ownTexts && kind === row.kind && !respelled ? { ...object, spec: definition.ownTexts.apart(spec).outline } as ApiObject : object;
}

/** What admission has made of who owns what is as it was `before` if it cannot be read, and the client is told. */
export function keepManagers({ warnings }: Scope, { metadata }: ApiObject, before: ManagedFieldsEntry[] | undefined): void {
  if (metadata.managedFields === before) return;
  try {
    managersSent(metadata.managedFields ?? []);
  } catch (error) {
    if (before === undefined) delete metadata.managedFields;
    else metadata.managedFields = before;
    warnings.push(`.metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: ${(error as Error).message}`);
  }
}

/** As the request has it, where that is not how it is stored. What is no object of the resource (a Scale) stays what it is. */
function shownIn<T extends Readonly<ApiObject>>(served: ServedResource, object: T): T {
  return !served.custom && object.kind === served.row.kind && object.apiVersion !== served.apiVersion ? served.fromStorage(object) as T : object;
}

/** Does what may need the object in other versions of its kind, for managers who wrote in them. A promise only where others convert it. */
export function withVersions<T>(scope: Scope, work: (versions: Versions | undefined) => T): T | Promise<T> {
  const { served, signal } = scope;
  const filtered = (versions: Versions | undefined): Versions | undefined => versions && ((apiVersion) => {
    const view = versions(apiVersion);
    return view && { ...view, filter: ownableIn(scope, apiVersion) };
  });
  return served.custom ? served.custom.withVersions((versions) => work(filtered(versions)), signal) : work(filtered(builtInVersions(scope)));
}

/** Of a custom resource what is reset in other versions is known to the status alone. Source: kubernetes v1.36 apiextensions-apiserver/pkg/apiserver/customresource_handler.go getStatusResetFields */
function ownableIn({ served, info: { subresource } }: Scope, apiVersion: string): FieldFilter | undefined {
  if (!served.custom) return ownableFields(served, subresource);
  const version = served.custom.kind.versions().find(({ name }) => name === parseApiVersion(apiVersion).version);
  return subresource === "status" && version?.subresources?.status ? NOT_SPEC : undefined;
}

/** Those that the kind is served in. What somebody owns in another one is nobody's any more. */
function builtInVersions({ served: { row, apiVersion }, server: { registry } }: Scope): Versions {
  return (other) => {
    if (other.split("/").length > 2) throw new ConversionError(`unexpected GroupVersion string: ${other}`);
    const { group, version } = parseApiVersion(other);
    const schema = group === row.group && registry.find(group, version, row.plural) ? builtInSchemas.schemaOf({ group, version, kind: row.kind }) : undefined;
    if (row.kind !== "HorizontalPodAutoscaler") return schema && { schema, to: same, from: same }; // no other kind is served in versions of different shapes that people apply
    const to = (wanted: string) => (object: JsonMap): JsonMap => convert(object as unknown as ApiObject, wanted) as unknown as JsonMap;
    return schema && { schema, to: to(other), from: to(apiVersion) };
  };
}

function same(object: JsonMap): JsonMap { return object; }

/** Of a kind that the request's resource, or a view of it, is about. */
export function schemaOf({ served }: Scope, gvk: GroupVersionKind): ObjectSchema | undefined {
  const { row, custom } = served;
  return custom && gvk.group === row.group && gvk.kind === row.kind ? custom.schema : builtInSchemas.schemaOf(gvk);
}

/** Every built-in kind keeps its replicas in the same place. */
const REPLICAS_PATH = ".spec.replicas";

/** What of an object's managedFields a view of it (Scale) shows. */
export function viewManagedFields(served: ServedResource, parent: Readonly<ApiObject>): ManagedFieldsEntry[] | undefined {
  return scaleManagedFields(parent.metadata.managedFields, replicasPaths(served, parent));
}

/** Those of an object after a write of its view. */
export function managedFieldsWithView(served: ServedResource, parent: Readonly<ApiObject>, view: Readonly<ApiObject>): ManagedFieldsEntry[] | undefined {
  return parentManagedFields({
    parent: parent.metadata.managedFields, scale: view.metadata.managedFields, apiVersion: parent.apiVersion, paths: replicasPaths(served, parent),
  });
}

function replicasPaths(served: ServedResource, { apiVersion }: Readonly<ApiObject>): ReplicasPaths {
  if (served.custom) return served.custom.replicasPaths;
  return new Map([apiVersion, served.apiVersion].map((version) => [version, REPLICAS_PATH]));
}
