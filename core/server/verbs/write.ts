/**
 * create, update and patch (server-side apply too) of stored resources and of their "part" and "view" subresources; delete.ts has the rest of what changes something.
 *
 *   body → decode, default → mutating admission → registry: prepare, own fields, validate → validating admission → store
 *
 * Update and patch prepare the object anew from the newest state when they lose a race, unless the client named the version it replaces.
 */
import type { AdmissionRequest, Operation } from "../../admission/plugin.ts";
import { copyOf } from "../../api/meta/copy.ts";
import { dns1123Subdomain, qualifiedName } from "../../api/meta/names.ts";
import type { ApiObject, ObjectMeta } from "../../api/meta/object-meta.ts";
import { conflict, forbidden, invalid, notAllowed } from "../../api/meta/status-error.ts";
import { askedOf } from "../../api/request/attributes.ts";
import { isRequestTooLarge } from "../../registry/generic/commits.ts";
import { wipeSystemFields } from "../../registry/generic/object-meta.ts";
import type { Permissions, WriteContext } from "../../registry/generic/resource.ts";
import type { UpdateOptions, WriteOptions } from "../../registry/generic/stored-resource.ts";
import { type Answer, stored } from "../answer.ts";
import { encodeAhead } from "../respond.ts";
import { authorize } from "../access.ts";
import type { Scope } from "../scope.ts";
import { bodyReader, keptSpec } from "./body.ts";
import { checkName, dropRepeatedOwners, placeInNamespace, requireName } from "./incoming.ts";
import { keepManagers, managedFieldsWithView, recordOwner, viewManagedFields } from "./managed-fields.ts";
import { patcherOf } from "./patch.ts";
import { traced } from "./traced.ts";
import { subresourceOf, viewAnswer } from "./view.ts";
import { type DeleteQuery, type WriteQuery, writeQueryOf } from "./write-options.ts";

export async function createObject(scope: Scope): Promise<Answer> {
  const { served, span } = scope;
  const read = await bodyReader(scope); // in what it is written is looked at before what is asked for
  const query = writeQueryOf(scope, "CreateOptions");
  span?.event("About to convert to expected version");
  const object = read();
  span?.event("Conversion done");
  wipeSystemFields(object.metadata);
  placeInNamespace(scope, object);
  dropRepeatedOwners(scope, object, "request");
  const { admit, ...options } = answered(scope, writeOptions(scope, "CREATE", query));
  await recordOwner(scope, object, undefined, options.context.nowMs);
  span?.event("About to store object in database");
  await admit(object, undefined);
  const entry = await roomMade((owned) => {
    if (!owned) delete object.metadata.managedFields;
    return traced(scope, "Create etcd3", object.metadata.name, (part) => served.store!.create(object, part ? { ...options, span: part } : options));
  });
  span?.event("Write to database call succeeded");
  await served.ready([entry.object], scope.signal);
  return stored(201, served, entry);
}

export async function updateObject(scope: Scope): Promise<Answer> {
  const { served, info, span } = scope;
  requireName(scope);
  const subresource = subresourceOf(scope);
  const query = writeQueryOf(scope, "UpdateOptions");
  const read = await bodyReader(scope);
  const replacement = (): ApiObject => {
    const object = read();
    placeInNamespace(scope, object);
    checkName(scope, object);
    dropRepeatedOwners(scope, object, "request");
    return object;
  };
  span?.event("About to convert to expected version");
  let prepared: ApiObject | undefined = replacement(); // what is wrong with it is said before anything else is looked at
  span?.event("Conversion done");
  const preconditions = { uid: prepared.metadata.uid || undefined };
  const next = (): ApiObject => {
    const object = prepared ?? replacement();
    prepared = undefined;
    return object;
  };
  if (subresource?.type === "view") return writeView(scope, query, { change: next, ownsFields: false, preconditions });
  span?.event("About to store object in database");
  const { admit, ...options } = answered(scope, writeOptions(scope, "UPDATE", query));
  const { entry, created } = await roomMade((owned) => traced(scope, "GuaranteedUpdate etcd3", info.name, (part) => served.store!.update(info.namespace, info.name, async (old) => {
    if (!old) await authorizeCreate(scope);
    const object = next();
    await recordOwner(scope, object, old, options.context.nowMs);
    await admit(object, old);
    if (!owned) delete object.metadata.managedFields;
    return object;
  }, { ...options, span: part, preconditions, isReplacement: true, createMissing: served.definition.createOnUpdate === true && info.subresource === "" })));
  span?.event("Write to database call succeeded");
  await served.ready([entry.object], scope.signal);
  return stored(created ? 201 : 200, served, entry);
}

export async function patchObject(scope: Scope): Promise<Answer> {
  const { served, info, span } = scope;
  const subresource = subresourceOf(scope);
  const patcher = await patcherOf(scope);
  span?.event("Recorded the audit event");
  if (subresource?.type === "view") return writeView(scope, patcher.query, { change: patcher.patch, ownsFields: patcher.ownsFields, isPatch: true });
  const { admit, ...options } = answered(scope, writeOptions(scope, "UPDATE", patcher.query));
  const { entry, created } = await roomMade((owned) => traced(scope, "GuaranteedUpdate etcd3", info.name, (part) => served.store!.update(info.namespace, info.name, async (old) => {
    if (!old) await authorizeCreate(scope);
    span?.event("About to apply patch");
    const next = await patcher.patch(old && (served.custom ? old : served.fromStorage(old))); // the store shows custom resources in the request's version
    if (!old && next.metadata.uid)
      throw conflict({ group: info.group, resource: info.resource }, info.name, `uid mismatch: the provided object specified uid ${next.metadata.uid}, and no existing object was found`);
    placeInNamespace(scope, next);
    checkName(scope, next);
    if (!patcher.ownsFields) await recordOwner(scope, next, old, options.context.nowMs);
    span?.event("About to check admission control");
    await withVersion(next, old, () => admit(next, old));
    if (!owned) delete next.metadata.managedFields;
    return next;
  }, { ...options, span: part, isPatch: true, createMissing: patcher.creates && info.subresource === "" })), patcher.ownsFields);
  span?.event("Object stored in database");
  await served.ready([entry.object], scope.signal);
  return stored(created ? 201 : 200, served, entry);
}

/** Of an object that is too large to be stored it is left out whose fields are whose: then it may fit. Source: kubernetes v1.36 apiserver/pkg/endpoints/handlers/{create,update,patch}.go */
async function roomMade<T>(write: (owned: boolean) => Promise<T>, isApply = false): Promise<T> {
  try {
    return await write(true);
  } catch (error) {
    if (isApply || !isRequestTooLarge(error)) throw error;
    return await write(false);
  }
}

/** Plug-ins are shown the version a patch has found, also where it is not bound to it: that it may be tried again is not their business. */
async function withVersion(object: ApiObject, old: Readonly<ApiObject> | undefined, work: () => Promise<void>): Promise<void> {
  if (object.metadata.resourceVersion) return await work();
  const version = old?.metadata.resourceVersion;
  if (version === undefined) delete (object.metadata as Partial<ObjectMeta>).resourceVersion;
  else object.metadata.resourceVersion = version;
  await work();
  const { metadata } = object; // a webhook's patch has made it anew
  if (metadata.resourceVersion === version) metadata.resourceVersion = "";
}

/** Who may change an object may not therefore make one. */
async function authorizeCreate({ server, info, user }: Scope): Promise<void> {
  await authorize(server.authorizer, { ...info, verb: "create", user });
}

interface ViewChange {
  readonly change: (old: Readonly<ApiObject>) => ApiObject | Promise<ApiObject>;
  /** Whether the change has worked out whose fields are whose. */
  readonly ownsFields: boolean;
  readonly isPatch?: boolean;
  readonly preconditions?: UpdateOptions["preconditions"];
}

/** PUT and PATCH of a view (scale): its object is changed through it. */
async function writeView(scope: Scope, query: WriteQuery, { change, ownsFields, isPatch = false, preconditions }: ViewChange): Promise<Answer> {
  const { served, info } = scope;
  const subresource = subresourceOf(scope);
  if (subresource?.type !== "view") throw new Error("not a view");
  const { admit, ...options } = writeOptions(scope, "UPDATE", query);
  const { entry } = await traced(scope, "GuaranteedUpdate etcd3", info.name, (part) => served.store!.update(info.namespace, info.name, async (old) => {
    const before = (subresource.draft ?? subresource.read)(old!);
    before.metadata.managedFields = viewManagedFields(served, old!);
    const view = copyOf(await change(before)) as ApiObject;
    checkName(scope, view);
    if (!ownsFields) await recordOwner(scope, view, before, options.context.nowMs);
    await (isPatch ? withVersion(view, before, () => admit(view, before)) : admit(view, before));
    const errors = [...(subresource.validate?.(view) ?? [])];
    if (errors.length > 0) throw invalid({ group: "autoscaling", kind: view.kind }, info.name, errors);
    const next = copyOf(old!) as ApiObject;
    if (view.metadata.resourceVersion) next.metadata.resourceVersion = view.metadata.resourceVersion;
    else next.metadata.resourceVersion = "";
    const { uid } = view.metadata;
    if (uid && !isPatch) next.metadata.uid = uid;
    else if (uid && uid !== next.metadata.uid && subresource.isOfItself)
      throw conflict({ group: info.group, resource: `${info.resource}/${info.subresource}` }, info.name, `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${next.metadata.uid}`);
    subresource.write(next, view);
    next.metadata.managedFields = managedFieldsWithView(served, next, view);
    return next;
  }, { ...options, span: part, preconditions, validate: (next, old) => options.validate!(subresource.read(next), old && subresource.read(old)) }));
  await served.ready([entry.object], scope.signal);
  return viewAnswer(scope, subresource.read(served.custom ? served.fromStorage(entry.object) : entry.object));
}

interface Admitting {
  /** Mutating admission: may change `next`, whose additions are defaulted like the rest. */
  admit(next: ApiObject | undefined, old: Readonly<ApiObject> | undefined): Promise<void>;
}

export function writeOptions(scope: Scope, operation: Operation, query: WriteQuery | DeleteQuery): WriteOptions & UpdateOptions & Admitting {
  const { server, signal, user, served } = scope;
  const { dryRun } = query, sent = optionsSent(scope, query);
  const context: WriteContext = { user, nowMs: server.clock.nowMs(), dryRun, group: scope.info.group, uuid: () => server.random.uuid(), warn: (text) => void scope.warnings.push(text) };
  const subresource = operation === "UPDATE" ? subresourceOf(scope) : undefined;
  return {
    context: subresource?.type === "part" && subresource.authorize ? { ...context, permissions: permissionsOf(scope) } : context,
    signal,
    ...(subresource?.type === "part" ? { subresource } : {}),
    async admit(next, old) {
      const actual = operation === "UPDATE" && !old ? "CREATE" : operation;
      if (actual === "CREATE" && served.custom?.terminating)
        throw forbidden({ group: served.row.group, resource: served.row.plural }, next?.metadata.name ?? "", "create not allowed while custom resource definition is terminating");
      const managers = next?.metadata.managedFields;
      await server.admission.admit(admissionRequest(scope, { operation: actual, next, old, dryRun, sent }));
      if (!next) return;
      keepManagers(scope, next, managers);
      placeInNamespace(scope, next); // a webhook may have had other ideas
      dropRepeatedOwners(scope, next, "admission");
      if (next.kind === served.row.kind) served.applyDefaults(next, keptSpec(scope, old));
    },
    async validate(next, old) {
      const actual = operation === "UPDATE" && !old ? "CREATE" : operation;
      await server.admission.validate(admissionRequest(scope, { operation: actual, next: actual === "DELETE" ? undefined : (next as ApiObject), old, dryRun, sent }));
    },
    warn: (text) => void scope.warnings.push(text),
    emptied: () => scope.sentEmpty,
    sent: () => scope.sent,
  };
}

function permissionsOf({ info, user, server }: Scope): Permissions {
  const { verb, group, version, resource } = info;
  return {
    verb,
    async refusal(asked) {
      const { decision, reason } = await server.authorizer.authorize(askedOf(user, { group, version, resource, ...asked }));
      return decision === "allow" ? undefined : notAllowed({ user: user.name, group, resource, ...asked }, reason).message;
    },
  };
}

/** Of a write that is answered with the object as it is stored. */
function answered<T extends WriteOptions>({ request, served }: Scope, options: T): T { return { ...options, ahead: (entry) => encodeAhead(request, served, entry) }; }

/** What plug-ins have to say for the audit log, and how long webhooks took, for the metrics as well. */
export function annotations({ audit, metered }: Pick<Scope, "audit" | "metered">): Required<Pick<AdmissionRequest, "annotate" | "annotateInFull" | "took">> {
  return {
    annotate: (key, value) => void (isAnnotationKey(key) && audit?.annotate(key, value)),
    annotateInFull: (key, value) => void (audit?.wantsRequest && audit.annotate(key, value())),
    took(layer, ms) {
      audit?.took(layer, ms);
      metered?.took(layer, ms);
    },
  };
}

/** What plug-ins and webhooks say under another key is left out. Source: kubernetes v1.36 apiserver/pkg/admission/attributes.go checkKeyFormat */
function isAnnotationKey(key: string): boolean {
  const [domain = "", name = "", ...more] = key.split("/");
  return more.length === 0 && dns1123Subdomain(domain).length === 0 && qualifiedName(name).length === 0;
}

const OPTIONS_KINDS: Readonly<Record<Operation, string>> = { CREATE: "CreateOptions", UPDATE: "UpdateOptions", DELETE: "DeleteOptions", CONNECT: "" };

/** As plug-ins are shown them. */
function optionsSent({ request }: Scope, query: WriteQuery | DeleteQuery): object {
  const { dryRun, ...given } = query;
  const all = dryRun && { dryRun: ["All"] };
  if (!("fieldManager" in given)) return { ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)), ...all };
  const { fieldManager, fieldValidation } = given; // in the order Go has the fields in
  return { ...all, ...(fieldManager && { fieldManager }), ...(request.query.get("fieldValidation") && { fieldValidation }) };
}

function admissionRequest(
  { served: { row }, info, user, signal, warnings, request, audit, metered, span }: Scope,
  { operation, next, old, dryRun, sent }: { operation: Operation; next: ApiObject | undefined; old: Readonly<ApiObject> | undefined; dryRun: boolean; sent: object },
): AdmissionRequest {
  const pathName = info.verb === "create" && info.subresource === "" ? "" : info.name;
  return {
    operation, dryRun, user, signal, deadlineMs: request.deadlineMs,
    options: { kind: OPTIONS_KINDS[operation], apiVersion: "meta.k8s.io/v1", ...sent },
    group: row.group, version: row.version, resource: row.plural, subresource: info.subresource, namespace: info.namespace || (operation === "CREATE" && row.group === "" && row.plural === "namespaces" ? next?.metadata.name ?? "" : ""),
    kind: next?.kind ?? row.kind,
    name: pathName || (next?.metadata?.name ?? ""),
    pathName,
    object: next,
    oldObject: old,
    warn: (text) => void warnings.push(text),
    ...annotations({ audit, metered }),
    span,
  };
}
