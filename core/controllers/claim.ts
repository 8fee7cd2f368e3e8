/**
 * Which objects belong to a controller: those it controls and selects. Orphans that it selects are adopted, what it no longer selects is released.
 * Objects of other controllers are left alone.
 *
 * Source: kubernetes v1.36 pkg/controller/controller_ref_manager.go
 */
import { ifFound } from "../api/meta/if-found.ts";
import { type ApiObject, controllerOf, controllerRef, isDeleting, namespaceOf } from "../api/meta/object-meta.ts";
import { isInvalid, isNotFound } from "../api/meta/status-error.ts";
import type { Index } from "../client/informer.ts";
import type { ResourceClient } from "../client/client.ts";
import { settleAll } from "../lifecycle/settle-all.ts";

/** By the controller's uid; objects without a controller under their namespace. */
export const BY_CONTROLLER: Index<ApiObject> = {
  name: "controller",
  valuesOf: (object) => [controllerOf(object)?.uid ?? orphansOf(namespaceOf(object))],
};

function orphansOf(namespace: string): string { return `orphans of ${namespace}`; }

/** What a controller owns or may adopt. */
export function candidatesFor<T extends ApiObject>(informer: { by(index: Index<T>, value: string): readonly Readonly<T>[] }, owner: Readonly<ApiObject>): readonly Readonly<T>[] {
  const index = BY_CONTROLLER as Index<T>;
  return [...informer.by(index, owner.metadata.uid), ...informer.by(index, orphansOf(namespaceOf(owner)))];
}

interface Claim<T extends ApiObject, O extends ApiObject> {
  readonly owner: Readonly<O>;
  readonly owners: Pick<ResourceClient<O>, "get">;
  readonly objects: Iterable<Readonly<T>>;
  readonly client: Pick<ResourceClient<T>, "patch">;
  readonly matches: (object: Readonly<T>) => boolean;
  /** Added to what is adopted, taken from what is released. */
  readonly finalizers?: readonly string[] | undefined;
  readonly signal: AbortSignal;
}

export async function claim<T extends ApiObject, O extends ApiObject>({ owner, owners, objects, client, matches, finalizers = [], signal }: Claim<T, O>): Promise<Readonly<T>[]> {
  const claimed: Readonly<T>[] = [];
  const writes: Promise<void>[] = [];
  let checked: Promise<void> | undefined;
  for (const object of objects) {
    const controller = controllerOf(object);
    if (controller !== undefined) {
      if (controller.uid !== owner.metadata.uid) continue;
      if (matches(object)) claimed.push(object);
      else if (!isDeleting(owner)) writes.push(release(object));
    } else if (!isDeleting(owner) && matches(object) && !isDeleting(object) && (namespaceOf(owner) === "" || namespaceOf(owner) === namespaceOf(object))) {
      writes.push(adopt(object));
    }
  }
  await settleAll(writes);
  return claimed;

  /** Before the first adoption: our copy of the owner may be old, so ask. */
  async function checkOwner(): Promise<void> {
    const fresh = await owners.get(owner, { signal });
    if (fresh.metadata.uid !== owner.metadata.uid) {
      throw new Error(`original ${owner.kind} ${namespaceOf(owner)}/${owner.metadata.name} is gone: got uid ${fresh.metadata.uid}, wanted ${owner.metadata.uid}`);
    }
    if (isDeleting(fresh)) throw new Error(`${namespaceOf(owner)}/${owner.metadata.name} has just been deleted at ${fresh.metadata.deletionTimestamp}`);
  }

  async function adopt(object: Readonly<T>): Promise<void> {
    await (checked ??= checkOwner());
    const metadata = { uid: object.metadata.uid, ownerReferences: [controllerRef(owner)], ...(finalizers.length > 0 ? { finalizers } : {}) };
    const adopted = await ifFound(client.patch(object, "application/strategic-merge-patch+json", { metadata }, { signal }));
    if (adopted) claimed.push(adopted); // else it is gone since
  }

  async function release(object: Readonly<T>): Promise<void> {
    const metadata = {
      uid: object.metadata.uid, ownerReferences: [{ $patch: "delete", uid: owner.metadata.uid }],
      ...(finalizers.length > 0 ? { "$deleteFromPrimitiveList/finalizers": finalizers } : {}),
    };
    try {
      await client.patch(object, "application/strategic-merge-patch+json", { metadata }, { signal });
    } catch (error) {
      // Gone since, or another object of the same name, or released already.
      if (!isNotFound(error) && !isInvalid(error)) throw error;
    }
  }
}
