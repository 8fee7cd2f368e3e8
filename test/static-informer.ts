/** An informer over objects a test puts into it, and a lookup over the same, without an API server. */
import { type ApiObject, objectKey } from "../core/api/meta/object-meta.ts";
import type { Informer } from "../core/client/informer.ts";
import type { Lookup } from "../core/client/lookup.ts";
import { BY_NAMESPACE, BY_OWNER, ObjectCache } from "../core/client/object-cache.ts";
import { silentLog } from "../core/observe/log.ts";

export interface StaticInformer<T extends ApiObject> extends Informer<T>, Lookup<T> {
  put(...objects: T[]): void;
  remove(object: T): void;
}

export function staticInformer<T extends ApiObject>(...objects: T[]): StaticInformer<T> {
  const cache = new ObjectCache<T>(silentLog);
  let revision = 0;
  const put = (...items: T[]): void => { for (const item of items) cache.put({ ...item, metadata: { ...item.metadata, resourceVersion: String(++revision) } }); };
  put(...objects);
  return {
    ref: undefined as never, synced: true, whenSynced: async () => {}, caughtUp: async () => {}, sawDeleted: async () => {}, put, remove: (object) => cache.remove(object),
    get: (key) => cache.get(key), list: () => cache.list(), by: (index, value) => cache.by(index, value), onChange: (handler) => cache.onChange(handler),
    inNamespace: (namespace) => cache.each(BY_NAMESPACE, namespace), ownedBy: (uid) => cache.by(BY_OWNER, uid),
    find: async (namespace, name) => cache.get(objectKey(namespace, name)),
  };
}

/** An object with the metadata every stored object has. */
export function stored<T extends ApiObject>(apiVersion: string, kind: string, name: string, rest: object = {}): T {
  const { metadata, ...others } = rest as { metadata?: object };
  const slash = name.indexOf("/");
  const where = slash < 0 ? { name } : { namespace: name.slice(0, slash), name: name.slice(slash + 1) };
  return { apiVersion, kind, metadata: { uid: `uid-${name}`, resourceVersion: "1", creationTimestamp: "2026-07-01T00:00:00Z", ...where, ...metadata }, ...others } as unknown as T;
}

