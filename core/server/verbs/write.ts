/**
 * create, update, patch (server-side apply too), delete and deletecollection of stored resources and of their "part" and "view" subresources.
 *
 *   body → decode, default → mutating admission → registry: prepare, own fields, validate → validating admission → store
 *
 * Update and patch prepare the object anew from the newest state when they lose a race, unless the client named the version it replaces.
 */
import type { AdmissionRequest, Operation } from "../../admission/plugin.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { badRequest, invalid, success } from "../../api/meta/status-error.ts";
import { checkDeleteOptions, type DeleteOptions } from "../../registry/generic/deletion.ts";
import type { WriteContext } from "../../registry/generic/resource.ts";
import type { UpdateOptions, WriteOptions } from "../../registry/generic/store.ts";
import { type Answer, stored } from "../answer.ts";
import { authorize, type Scope } from "../handler.ts";
import { decodeDeleteOptions, decodeObject } from "./body.ts";
import { managedFieldsWithView, recordOwner, viewManagedFields } from "./managed-fields.ts";
import { isDryRun, selectionOf } from "./options.ts";
import { patcherOf } from "./patch.ts";
import { subresourceOf, viewAnswer } from "./read.ts";

export async function createObject(scope: Scope): Promise<Answer> {
  const { served, info } = scope;
  const object = await decodeObject(scope);
  checkNamespace(scope, object);
  const { admit, ...options } = writeOptions(scope, "CREATE");
  await admit(object, undefined);
  served.applyDefaults(object); // of what admission has added
  if (info.name && !object.metadata.name) object.metadata.name = info.name;
  const entry = await served.store!.create(object, options);
  return stored(201, served, entry);
}

export async function updateObject(scope: Scope): Promise<Answer> {
  const { served, info } = scope;
  const subresource = subresourceOf(scope);
  if (subresource?.type === "view") return updateView(scope);
  const object = await decodeObject(scope);
  checkNamespace(scope, object);
  if (object.metadata.name !== info.name)
    throw badRequest(`the name of the object (${object.metadata.name ?? ""}) does not match the name on the URL (${info.name})`);
  const { admit, ...options } = writeOptions(scope, "UPDATE");
  const { entry, created } = await served.store!.update(info.namespace, info.name, async (old) => {
    const next = structuredClone(object);
    await admit(next, old);
    served.applyDefaults(next);
    return next;
  }, { ...options, isReplacement: true, createMissing: served.definition.createOnUpdate === true && info.subresource === "" });
  return stored(created ? 201 : 200, served, entry);
}

export async function patchObject(scope: Scope): Promise<Answer> {
  const { served, info, user, server } = scope;
  const subresource = subresourceOf(scope);
  const patcher = await patcherOf(scope);
  if (subresource?.type === "view") return writeView(scope, patcher.patch, patcher.ownsFields);
  const { admit, manage, ...options } = writeOptions(scope, "UPDATE");
  const { entry, created } = await served.store!.update(info.namespace, info.name, async (old) => {
    if (!old) await authorize(server.authorizer, { ...info, verb: "create", user });
    const next = patcher.patch(old && served.fromStorage(old));
    if (next.metadata.name === undefined || next.metadata.name === "") next.metadata.name = info.name;
    if (served.row.namespaced && !next.metadata.namespace) next.metadata.namespace = info.namespace;
    checkNamespace(scope, next);
    await admit(next, old);
    served.applyDefaults(next);
    return next;
  }, { ...options, ...(patcher.ownsFields || !manage ? {} : { manage }), createMissing: patcher.creates && info.subresource === "" });
  return stored(created ? 201 : 200, served, entry);
}

/** PUT of a view (scale): its object is changed through it. */
async function updateView(scope: Scope): Promise<Answer> {
  const view = await decodeObject(scope);
  if (view.metadata.name !== scope.info.name)
    throw badRequest(`the name of the object (${view.metadata.name ?? ""}) does not match the name on the URL (${scope.info.name})`);
  return writeView(scope, () => view, false);
}

/** `ownsFields`: whether the change has worked out whose fields are whose. */
async function writeView(scope: Scope, change: (old: Readonly<ApiObject>) => ApiObject, ownsFields: boolean): Promise<Answer> {
  const { served, info } = scope;
  const subresource = subresourceOf(scope);
  if (subresource?.type !== "view") throw new Error("not a view");
  const { admit, manage: _, ...options } = writeOptions(scope, "UPDATE");
  const { entry } = await served.store!.update(info.namespace, info.name, async (old) => {
    const before = subresource.read(old!);
    before.metadata.managedFields = viewManagedFields(served, old!);
    const view = structuredClone(change(before)) as ApiObject;
    await admit(view, before);
    if (!ownsFields) recordOwner(scope, view, before, options.context.nowMs);
    const errors = [...(subresource.validate?.(view) ?? [])];
    if (errors.length > 0) throw invalid({ group: "autoscaling", kind: view.kind }, info.name, errors);
    const next = structuredClone(old!) as ApiObject;
    if (view.metadata.resourceVersion) next.metadata.resourceVersion = view.metadata.resourceVersion;
    else next.metadata.resourceVersion = "";
    if (view.metadata.uid) next.metadata.uid = view.metadata.uid;
    subresource.write(next, view);
    next.metadata.managedFields = managedFieldsWithView(served, next, view);
    return next;
  }, { ...options, validate: (next, old) => options.validate!(subresource.read(next), old && subresource.read(old)) });
  return viewAnswer(subresource.read(entry.object));
}

export async function deleteObject(scope: Scope): Promise<Answer> {
  const { served, info } = scope;
  const deleteOptions = await decodeDeleteOptions(scope);
  checkDeleteOptions(deleteOptions);
  const { admit, ...options } = writeOptions(scope, "DELETE", deleteOptions);
  const current = await served.store!.get(info.namespace, info.name, scope.signal);
  await admit(undefined, current.object);
  const { entry, done } = await served.store!.delete(info.namespace, info.name, deleteOptions, options);
  if (!done || served.row.returnsDeleted)
    return stored(200, served, entry);
  const { group, plural } = served.row;
  return { type: "object", status: 200, object: success({ name: info.name, ...(group ? { group } : {}), kind: plural, uid: entry.object.metadata.uid }) as unknown as ApiObject };
}

/** Objects deleted at once. Source: --delete-collection-workers */
const DELETE_WORKERS = 1;

export async function deleteCollection(scope: Scope): Promise<Answer> {
  const { served, signal } = scope;
  const deleteOptions = await decodeDeleteOptions(scope);
  checkDeleteOptions(deleteOptions);
  await scope.server.cache.fresh(signal);
  const entries = [...served.store!.select(selectionOf(scope))];
  const { admit, ...options } = writeOptions(scope, "DELETE", deleteOptions);
  for (let i = 0; i < entries.length; i += DELETE_WORKERS) {
    for (const entry of entries.slice(i, i + DELETE_WORKERS)) {
      const { namespace = "", name } = entry.object.metadata;
      await admit(undefined, entry.object);
      await served.store!.delete(namespace, name, deleteOptions, options).catch((error: unknown) => {
        if (!isGone(error)) throw error; // somebody else deleted it: what we wanted
      });
    }
  }
  return { type: "list", served, entries, metadata: { resourceVersion: String(scope.server.cache.revision) } };
}

function isGone(error: unknown): boolean {
  return (error as { code?: unknown }).code === 404;
}

function checkNamespace({ info, served }: Scope, object: ApiObject): void {
  if (!served.row.namespaced) return;
  object.metadata.namespace ??= info.namespace;
  if (object.metadata.namespace === "") object.metadata.namespace = info.namespace;
  if (object.metadata.namespace !== info.namespace)
    throw badRequest(`the namespace of the provided object does not match the namespace sent on the request`);
}

interface Admitting {
  /** Mutating admission: may change `next`. */
  admit(next: ApiObject | undefined, old: Readonly<ApiObject> | undefined): Promise<void>;
}

export function writeContext({ server, user, request }: Scope): WriteContext {
  return { user, nowMs: server.clock.nowMs(), dryRun: isDryRun(request.query), uuid: () => server.random.uuid() };
}

export function writeOptions(scope: Scope, operation: Operation, admissionOptions: DeleteOptions | Record<string, unknown> = {}): WriteOptions & UpdateOptions & Admitting {
  const { server, signal } = scope;
  const context = writeContext(scope);
  const subresource = operation === "UPDATE" ? subresourceOf(scope) : undefined;
  return {
    context,
    signal,
    ...(subresource?.type === "part" ? { subresource } : {}),
    admit: (next, old) => server.admission.admit(admissionRequest(scope, { operation, next, old, options: admissionOptions as Record<string, unknown>, dryRun: context.dryRun })),
    validate: (next, old) =>
      server.admission.validate(admissionRequest(scope, {
        operation: operation === "UPDATE" && !old ? "CREATE" : operation,
        next: operation === "DELETE" ? undefined : (next as ApiObject), old, options: admissionOptions as Record<string, unknown>, dryRun: context.dryRun,
      })),
    manage: (next, live) => recordOwner(scope, next, live, context.nowMs),
    warn: (text) => void scope.warnings.push(text),
  };
}

export function admissionRequest(
  { served: { row }, info, user, signal, warnings }: Scope,
  { operation, next, old, options, dryRun }: {
    operation: Operation; next: ApiObject | undefined; old: Readonly<ApiObject> | undefined; options: Record<string, unknown>; dryRun: boolean;
  },
): AdmissionRequest {
  return {
    operation, options, dryRun, user, signal,
    group: row.group, version: row.version, resource: row.plural, subresource: info.subresource, namespace: info.namespace,
    kind: next?.kind ?? row.kind,
    name: info.name || (next?.metadata?.name ?? ""),
    object: next,
    oldObject: old,
    warn: (text) => void warnings.push(text),
    annotate: () => undefined, // audit is not recorded yet: nobody would read it
  };
}
