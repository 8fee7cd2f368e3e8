/**
 * What the garbage collector does to one object: checks its owners at the source, then deletes it, frees it from owners that are gone, or lets it be.
 *
 * Source: kubernetes v1.36 pkg/controller/garbagecollector/{garbagecollector,operations,patch}.go
 */
import { type ApiObject, hasFinalizer, isDeleting, type OwnerReference } from "../../api/meta/object-meta.ts";
import { isConflict, isNotFoundOfNobody, isObjectNotFound, reasonOf } from "../../api/meta/status-error.ts";
import type { Client, ResourceClient } from "../../client/client.ts";
import { isServed, type ServedResource } from "../../client/discovery.ts";
import { settleEach } from "../../lifecycle/settle-all.ts";
import { canonical } from "../template-hash.ts";
import { blockingDependents, FOREGROUND, type GraphNode, type Identity, ORPHAN, ownerIdentity } from "./graph.ts";
import type { ResourceMap } from "./resource-map.ts";

/** The server serves no such kind, for now: try again later. */
export class UnknownKindError extends Error {
  override readonly name = "UnknownKindError";
  constructor({ apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }) { super(`unable to get REST mapping for ${apiVersion}/${kind}.`); }
}

/** A cluster-scoped object names a namespaced owner: it cannot be found, so it cannot be said to be gone. Nothing is ever done. */
export class ScopeError extends Error {
  override readonly name = "ScopeError";
  constructor() { super("cluster-scoped objects cannot refer to namespaced owners"); }
}

export interface CollectDeps {
  readonly client: Client;
  readonly resources: ResourceMap;
  /** Owners known to be gone, so that a thousand dependents cost one request. */
  readonly gone: { has(identity: Identity): boolean; add(identity: Identity): void };
  /** Looks at these nodes as well. */
  readonly look: (nodes: readonly GraphNode[]) => void;
}

type Reference = Readonly<OwnerReference>;
const STRATEGIC = "application/strategic-merge-patch+json";
const MERGE = "application/merge-patch+json";
const CONFLICTS_MAX = 5;

/** "absent": the object itself does not exist. "later": it is still known by hearsay only. */
export type Outcome = "done" | "absent" | "later";

export async function collect(node: GraphNode, { client, resources, gone, look }: CollectDeps, signal: AbortSignal): Promise<Outcome> {
  const { identity } = node;
  if (node.beingDeleted && !node.deletingDependents) return "done"; // on its way: its finalizers are others' work
  const latest = await live(identity);
  if (latest === undefined || latest.metadata.uid !== identity.uid) return "absent";
  if (node.deletingDependents) {
    await waitForDependents();
    return "done";
  }
  const references = latest.metadata.ownerReferences ?? [];
  if (references.length === 0) return node.virtual ? "later" : "done";
  const { solid, dangling, waiting } = await classify(references);
  if (solid.length > 0) {
    const useless = [...dangling, ...waiting].map(({ uid }) => uid);
    if (useless.length > 0) await disown(clientOf(identity), identity, useless, signal);
    return node.virtual ? "later" : "done";
  }
  if (waiting.length > 0 && node.dependents.size > 0) {
    // A cycle of objects that all wait for one another must not stand for ever: this one stops blocking its owners.
    if ([...node.dependents].some(({ deletingDependents }) => deletingDependents)) await unblock(latest);
    return await remove(latest, "Foreground");
  }
  return await remove(latest, hasFinalizer(latest, ORPHAN) ? "Orphan" : hasFinalizer(latest, FOREGROUND) ? "Foreground" : "Background");

  function resourceFor(of: { readonly apiVersion: string; readonly kind: string }): ServedResource {
    const resource = resources.resourceOf(of);
    if (resource === undefined) throw new UnknownKindError(of);
    return resource;
  }

  function clientOf(of: Identity): ResourceClient<ApiObject> { return client.resource<ApiObject>(resourceFor(of)); }

  async function live(of: Identity): Promise<Readonly<ApiObject> | undefined> {
    const { namespaced } = resourceFor(of);
    if (namespaced && of.namespace === "") throw new ScopeError();
    const identity = { ...of, namespace: namespaced ? of.namespace : "" };
    try {
      return await read(clientOf(of), identity, signal);
    } catch (error) {
      if (!isNotFoundOfNobody(error)) throw error;
    }
    return await ofSilentServer(identity);
  }

  /** Its server does not say that it is the object that is not found: so it is if, and only if, the resource is served. */
  async function ofSilentServer(of: Identity): Promise<Readonly<ApiObject> | undefined> {
    if (!(await isServed(client, resourceFor(of), signal))) throw new UnknownKindError(of);
    try {
      return await read(clientOf(of), of, signal);
    } catch (error) {
      if (!isNotFoundOfNobody(error)) throw error;
      return undefined;
    }
  }

  async function classify(all: readonly Reference[]): Promise<{ readonly solid: Reference[]; readonly dangling: Reference[]; readonly waiting: Reference[] }> {
    const found: { solid: Reference[]; dangling: Reference[]; waiting: Reference[] } = { solid: [], dangling: [], waiting: [] };
    for (const reference of all) {
      const owner = await liveOwner(reference);
      if (owner === undefined) found.dangling.push(reference);
      else if (isDeleting(owner) && hasFinalizer(owner, FOREGROUND)) found.waiting.push(reference);
      else found.solid.push(reference);
    }
    return found;
  }

  /** Undefined: there is no such owner. */
  async function liveOwner(reference: Reference): Promise<Readonly<ApiObject> | undefined> {
    if (gone.has(ownerIdentity(reference, "")) || gone.has(ownerIdentity(reference, identity.namespace))) return undefined;
    const { namespaced } = resourceFor(reference);
    const owner = ownerIdentity(reference, namespaced ? identity.namespace : "");
    const held = await live(owner);
    if (held !== undefined && held.metadata.uid === reference.uid) return held;
    gone.add(owner);
    return undefined;
  }

  /** A foreground deletion ends when nothing blocks it any more. */
  async function waitForDependents(): Promise<void> {
    const blocking = blockingDependents(node);
    if (blocking.length === 0) await removeFinalizer(clientOf(identity), identity, FOREGROUND, signal);
    else look(blocking.filter(({ deletingDependents }) => !deletingDependents));
  }

  async function remove(object: Readonly<ApiObject>, propagationPolicy: "Orphan" | "Foreground" | "Background"): Promise<Outcome> {
    const objects = clientOf(identity);
    const { uid, resourceVersion } = object.metadata;
    try {
      await objects.delete(object, { propagationPolicy, preconditions: { uid, resourceVersion } }, { signal });
    } catch (error) {
      if (isObjectNotFound(error, identity.name)) return "absent";
      if (!isConflict(error)) throw error;
      // Something about it has changed. If its owners have not, it still has to go.
      const again = await read(objects, identity, signal);
      if (again === undefined) return "absent";
      if (again.metadata.uid !== uid || canonical(again.metadata.ownerReferences ?? []) !== canonical(references)) throw error;
      await objects.delete(object, { propagationPolicy, preconditions: { uid } }, { signal });
    }
    return node.virtual ? "later" : "done";
  }

  async function unblock(object: Readonly<ApiObject>): Promise<void> {
    const blocking = (object.metadata.ownerReferences ?? []).filter(({ blockOwnerDeletion }) => blockOwnerDeletion).map((reference) => ({ ...reference, blockOwnerDeletion: false }));
    const all = (object.metadata.ownerReferences ?? []).map((reference) => ({ ...reference, blockOwnerDeletion: false }));
    await patchEither(clientOf(identity), identity, { uid: identity.uid, ownerReferences: blocking }, () => ({ resourceVersion: object.metadata.resourceVersion, ownerReferences: all }), signal);
  }
}

/** An owner may have ten thousand dependents: patching all at once would fill the memory with half-done requests. */
const DISOWNED_AT_ONCE = 64;

/** Sets the dependents of an owner free, then lets it go. */
export async function orphan(node: GraphNode, { client, resources }: Pick<CollectDeps, "client" | "resources">, signal: AbortSignal): Promise<void> {
  const clientOf = (identity: Identity): ResourceClient<ApiObject> => {
    const resource = resources.resourceOf(identity);
    if (resource === undefined) throw new UnknownKindError(identity);
    return client.resource<ApiObject>(resource);
  };
  await settleEach(node.dependents, DISOWNED_AT_ONCE, async ({ identity }) => {
    try {
      await disown(clientOf(identity), identity, [node.identity.uid], signal);
    } catch (error) {
      if (!isObjectNotFound(error, identity.name)) throw error; // one that is there, and cannot be asked for just now, would go with its owner later
    }
  });
  await removeFinalizer(clientOf(node.identity), node.identity, ORPHAN, signal);
}

/** Undefined: there is no such object. Throws where its resource is not served, or not in this version any more: that is known with the next discovery, and nothing goes for it. */
async function read(objects: ResourceClient<ApiObject>, { name, namespace }: Identity, signal: AbortSignal): Promise<Readonly<ApiObject> | undefined> {
  try {
    return await objects.get({ metadata: { name, namespace } }, { signal });
  } catch (error) {
    if (!isObjectNotFound(error, name)) throw error;
    return undefined;
  }
}

/** Takes references to these owners off an object. */
async function disown(objects: ResourceClient<ApiObject>, identity: Identity, uids: readonly string[], signal: AbortSignal): Promise<void> {
  const strategic = { uid: identity.uid, ownerReferences: uids.map((uid) => ({ $patch: "delete", uid })) };
  const gone = new Set(uids);
  await patchEither(objects, identity, strategic, (object) => {
    const kept = (object.metadata.ownerReferences ?? []).filter(({ uid }) => !gone.has(uid));
    return { resourceVersion: object.metadata.resourceVersion, ownerReferences: kept.length > 0 ? kept : null };
  }, signal);
}

/** A strategic merge patch of the metadata, or, for custom resources, which have none, a merge patch of the newest state. */
async function patchEither(objects: ResourceClient<ApiObject>, identity: Identity, strategic: unknown, merge: (object: Readonly<ApiObject>) => unknown, signal: AbortSignal): Promise<void> {
  const name = { metadata: { name: identity.name, namespace: identity.namespace } };
  try {
    await objects.patch(name, STRATEGIC, { metadata: strategic }, { signal });
  } catch (error) {
    if (reasonOf(error) !== "UnsupportedMediaType") throw error;
    const object = await objects.get(name, { signal });
    if (object.metadata.uid !== identity.uid) return;
    await objects.patch(name, MERGE, { metadata: merge(object) }, { signal });
  }
}

async function removeFinalizer(objects: ResourceClient<ApiObject>, identity: Identity, finalizer: string, signal: AbortSignal): Promise<void> {
  for (let tries = 1; ; tries++) {
    const object = await read(objects, identity, signal);
    if (object === undefined || object.metadata.uid !== identity.uid || !hasFinalizer(object, finalizer)) return;
    const finalizers = (object.metadata.finalizers ?? []).filter((one) => one !== finalizer);
    try {
      await objects.patch(object, MERGE, { metadata: { resourceVersion: object.metadata.resourceVersion, finalizers } }, { signal });
      return;
    } catch (error) {
      if (isObjectNotFound(error, identity.name)) return;
      if (!isConflict(error) || tries >= CONFLICTS_MAX) throw error;
    }
  }
}
