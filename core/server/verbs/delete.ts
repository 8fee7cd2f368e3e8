/**
 * delete and deletecollection of stored resources.
 *
 * What nobody can read goes at once, and no plug-in is asked, for who may do that and says so (ignoreStoreReadErrorWithClusterBreakingPotential). Upstream has etcdctl for that, and takes the
 * option behind a gate that is off by default; with the gate on it is as strict here as there, and refuses what can be read.
 *
 * Plug-ins are asked of each step a deletion takes (deletion.ts): of a pod that goes at once when it is marked, and again when it goes.
 *
 * Source: kubernetes v1.36 apiserver/pkg/endpoints/handlers/delete.go, apiserver/pkg/registry/rest/delete.go
 */
import { invalid as invalidField } from "../../api/meta/field-error.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { forbidden, invalid, isNotFound, success } from "../../api/meta/status-error.ts";
import { breather } from "../../lifecycle/breather.ts";
import { settleEach } from "../../lifecycle/settle-all.ts";
import type { Resource } from "../../registry/generic/resource.ts";
import type { DeletingOptions } from "../../registry/generic/stored-resource.ts";
import { keepsFieldsOf } from "../../registry/generic/switched-on.ts";
import { UNSAFE_DELETION } from "../../registry/generic/unreadable.ts";
import { type Answer, stored } from "../answer.ts";
import type { Scope } from "../scope.ts";
import { listingOf } from "./options.ts";
import { listObjects } from "./list.ts";
import { writeOptions } from "./write.ts";
import { type DeleteQuery, deleteQueryOf, deleteRequestOf, IGNORE } from "./write-options.ts";

export async function deleteObject(scope: Scope): Promise<Answer> {
  const { served, info, span } = scope;
  const { query, ignoresReadErrors } = await deleteRequestOf(scope);
  warnOfDependents(scope, query);
  if (ignoresReadErrors && (await deletedUnread(scope, query))) return gone(scope, 200, {});
  const kept = served.definition.undeletable?.(info.name);
  if (kept !== undefined) throw forbidden({ group: served.row.group, resource: served.row.plural }, info.name, kept);
  span?.event("About to delete object from database");
  const { entry, done } = await served.store!.delete(info.namespace, info.name, query, deletingOptions(scope, query, (found) => withUid(served.definition, found, withGrace(served.definition, found, query))));
  span?.event("Object deleted from database");
  const status = !done && query.orphanDependents === false ? 202 : 200;
  if (!done || served.row.returnsDeleted) await served.ready([entry.object], scope.signal);
  if (!done || served.row.returnsDeleted) return stored(status, served, entry);
  return gone(scope, status, { uid: entry.object.metadata.uid });
}

function gone({ served: { row: { group, plural } }, info: { name } }: Scope, status: 200 | 202, known: { readonly uid?: string }): Answer {
  return { type: "object", status, object: success({ name, ...(group ? { group } : {}), kind: plural, ...known }) as unknown as ApiObject };
}

const UNSAFE_VERB = "unsafe-delete-ignore-read-errors";

/** False: it can be read, or is not there. Throws 403, and with the gate 422 instead. */
async function deletedUnread(scope: Scope, query: DeleteQuery): Promise<boolean> {
  const { server, served: { store, row: { group, plural } }, info, user, audit } = scope;
  const strict = keepsFieldsOf(UNSAFE_DELETION);
  if (!strict && !store!.isUnreadable(info.namespace, info.name)) return false;
  audit?.annotate("apiserver.k8s.io/unsafe-delete-ignore-read-error", "");
  const { decision, reason } = await server.authorizer.authorize({ ...info, verb: UNSAFE_VERB, user });
  if (decision !== "allow") throw forbidden({ group, resource: plural }, info.name, `not permitted to do "${UNSAFE_VERB}", reason: ${reason}`);
  if (await store!.deleteUnreadable(info.namespace, info.name, deletingOptions(scope, query, () => query))) return true;
  if (strict) throw invalid({ group, kind: plural }, info.name, [invalidField(IGNORE, true, "is exclusively used to delete corrupt object(s), try again by removing this option")]);
  return false;
}

function warnOfDependents({ served: { definition }, warnings }: Scope, { propagationPolicy, orphanDependents }: DeleteQuery): void {
  if (definition.deletionWarning !== undefined && propagationPolicy === undefined && orphanDependents === undefined) warnings.push(definition.deletionWarning);
}

/** One after the other each would wait for the disk; together they share what it takes. Upstream's default is 1 (--delete-collection-workers), and etcd's wait for each. */
const DELETED_AT_ONCE = 16;

/** Deletes what a list with the same query would show, and answers with that list. */
export async function deleteCollection(scope: Scope): Promise<Answer> {
  const { served } = scope;
  listingOf(scope); // what is wrong with it is told first, and of what is not there once the options are known
  const query = await deleteQueryOf(scope);
  const list = await listObjects(scope, { forDeletion: true });
  warnOfDependents(scope, query);
  const options = deletingOptions(scope, query, () => query);
  const breathe = breather(scope.server.clock); // not all that is deleted waits for the disk: events do not, nor what is only tried
  let refused: { readonly error: unknown } | undefined; // the first that is ends it
  await settleEach(list.entries, DELETED_AT_ONCE, async ({ object: { metadata: { namespace = "", name } } }) => {
    await breathe();
    if (refused) return;
    await served.store!.delete(namespace, name, query, options).catch((error: unknown) => {
      if (!isNotFound(error)) refused ??= { error }; // else somebody else deleted it: what we wanted
    });
  });
  if (refused) throw refused.error;
  return list;
}

/** `shown`: what plug-ins are told was asked for, of an object as it was found. */
function deletingOptions(scope: Scope, query: DeleteQuery, shown: (found: Readonly<ApiObject>) => DeleteQuery): DeletingOptions {
  const plain = writeOptions(scope, "DELETE", query);
  return {
    context: plain.context, signal: plain.signal,
    async ask(object, found) {
      const asked = shown(found);
      const { admit, validate } = asked === query ? plain : writeOptions(scope, "DELETE", asked);
      await admit(undefined, object);
      await validate!(object, object);
    },
  };
}

/** With the grace the object will have, where it has any; less than none is a second. Source: kubernetes v1.36 apiserver/pkg/registry/rest/delete.go BeforeDelete */
function withGrace({ gracePeriodSeconds }: Resource, found: Readonly<ApiObject>, query: DeleteQuery): DeleteQuery {
  const asked = query.gracePeriodSeconds === undefined || query.gracePeriodSeconds >= 0 ? query : { ...query, gracePeriodSeconds: 1 };
  return gracePeriodSeconds && !found.metadata.deletionTimestamp ? { ...asked, gracePeriodSeconds: gracePeriodSeconds(found, asked.gracePeriodSeconds) } : asked;
}

/** What is marked as deleted long before it goes is deleted as the very one it was found as. Source: kubernetes v1.36 pkg/registry/core/namespace/storage/storage.go, apiextensions-apiserver/pkg/registry/customresourcedefinition/etcd.go Delete */
function withUid({ markDeleting }: Resource, { metadata: { uid } }: Readonly<ApiObject>, query: DeleteQuery): DeleteQuery {
  return markDeleting ? { ...query, preconditions: { uid, ...query.preconditions } } : query;
}
