/**
 * An API server in a map, for tests of what stands on core/client: create, read, write, delete and watch with revisions, finalizers, generations
 * and discovery. It has no defaults, no validation and no authorization; tests of those use the real chain.
 *
 *   const api = fakeApi({ clock });
 *   await api.client.resource(PODS).create(…)
 *   api.fail = (request) => request.method === "POST" ? forbidden(…) : undefined;    // refuses the next requests it returns an error for
 */
import { parseJson, stringify } from "../core/api/codec/json.ts";
import { parseFieldSelector } from "../core/api/meta/field-selector.ts";
import { parseLabelSelector } from "../core/api/meta/label-selector.ts";
import type { ApiObject } from "../core/api/meta/object-meta.ts";
import { alreadyExists, conflict, notFound } from "../core/api/meta/status-error.ts";
import type { Client, ResourceRef } from "../core/client/client.ts";
import { clientOver } from "../core/client/resource-client.ts";
import * as RESOURCES from "../core/client/resources.ts";
import type { ApiRequest, ApiWatchEvent, Transport } from "../core/client/transport.ts";
import { aborted } from "../core/lifecycle/aborted.ts";
import { type Clock, systemClock, timestamp } from "../core/lifecycle/clock.ts";

type Any = ApiObject & Record<string, any>;
/** More than any test needs. */
const WRITES_MAX = 20_000;

interface Change { readonly revision: number; readonly resource: string; readonly event: ApiWatchEvent; readonly old?: Any | undefined }

export interface FakeApi extends Transport {
  readonly client: Client;
  readonly requests: string[];
  fail: ((request: ApiRequest) => Error | undefined) | undefined;
  serve(ref: ResourceRef): void;
  all<T extends ApiObject>(ref: ResourceRef<T>): T[];
}

export function fakeApi({ clock = systemClock }: { readonly clock?: Clock } = {}): FakeApi {
  const served = new Map<string, ResourceRef>();
  for (const ref of Object.values(RESOURCES) as ResourceRef[]) serve(ref);
  const stores = new Map<string, Map<string, Any>>();
  const changes: Change[] = [];
  let wakers: (() => void)[] = [];
  let revision = 100;
  let uids = 0;

  function serve(ref: ResourceRef): void { served.set(`${ref.group}/${ref.version}/${ref.plural}`, ref); }

  function storeOf(resource: string): Map<string, Any> {
    let store = stores.get(resource);
    if (!store) stores.set(resource, (store = new Map()));
    return store;
  }

  function commit(resource: string, type: ApiWatchEvent["type"], key: string, object: Any, old?: Any): Any {
    object.metadata.resourceVersion = String(++revision);
    const frozen = deepFreeze(object);
    if (type === "DELETED") storeOf(resource).delete(key);
    else storeOf(resource).set(key, frozen);
    changes.push({ revision, resource, event: { type, object: frozen }, old });
    const waking = wakers;
    wakers = [];
    for (const wake of waking) wake();
    return frozen;
  }

  function write(resource: string, key: string, next: Any, old: Any, subresource: string): Any {
    const at = target(resource);
    if (next.metadata.resourceVersion && next.metadata.resourceVersion !== old.metadata.resourceVersion) throw conflict(at, old.metadata.name);
    if (next.metadata.uid && next.metadata.uid !== old.metadata.uid) throw conflict(at, old.metadata.name, `Precondition failed: UID in precondition: ${next.metadata.uid}, UID in object meta: ${old.metadata.uid}`);
    let object = structuredClone(next);
    if (subresource === "status") object = { ...structuredClone(old), status: object["status"], metadata: { ...structuredClone(old.metadata), labels: object.metadata.labels, annotations: object.metadata.annotations, finalizers: object.metadata.finalizers } as never };
    else if (subresource === "finalize") object = { ...structuredClone(old), spec: object["spec"] };
    else if (old["status"] !== undefined && subresource === "") object["status"] = structuredClone(old["status"]);
    object.metadata = { ...object.metadata, uid: old.metadata.uid, creationTimestamp: old.metadata.creationTimestamp, deletionTimestamp: old.metadata.deletionTimestamp, deletionGracePeriodSeconds: old.metadata.deletionGracePeriodSeconds, resourceVersion: old.metadata.resourceVersion };
    const { metadata: _m, status: _s, ...rest } = object;
    const { metadata: _om, status: _os, ...oldRest } = old;
    object.metadata.generation = (old.metadata.generation ?? 1) + (Bun.deepEquals(rest, oldRest) ? 0 : 1);
    if (Bun.deepEquals(clean(object), clean(old))) return old;
    const ended = old.metadata.deletionTimestamp && !object.metadata.finalizers?.length && !(object["spec"]?.finalizers?.length) && !old.metadata.deletionGracePeriodSeconds;
    return commit(resource, ended ? "DELETED" : "MODIFIED", key, object, old);
  }

  function remove(resource: string, key: string, old: Any, options: Record<string, any>): Any {
    const { uid, resourceVersion } = options["preconditions"] ?? {};
    if ((uid && uid !== old.metadata.uid) || (resourceVersion && resourceVersion !== old.metadata.resourceVersion)) throw conflict(target(resource), old.metadata.name, "Precondition failed");
    const finalizers = new Set(old.metadata.finalizers ?? []);
    if (options["propagationPolicy"] === "Orphan") finalizers.add("orphan");
    if (options["propagationPolicy"] === "Foreground") finalizers.add("foregroundDeletion");
    const graceful = old.kind === "Pod" && old["spec"]?.nodeName && old["status"]?.phase !== "Succeeded" && old["status"]?.phase !== "Failed";
    const grace = options["gracePeriodSeconds"] ?? (graceful ? old["spec"]?.terminationGracePeriodSeconds ?? 30 : 0);
    if (finalizers.size > 0 || grace > 0 || old["spec"]?.finalizers?.length) {
      if (old.metadata.deletionTimestamp && grace >= (old.metadata.deletionGracePeriodSeconds ?? 0)) return old;
      const object = structuredClone(old);
      object.metadata.finalizers = [...finalizers];
      object.metadata.deletionTimestamp ??= timestamp(clock.nowMs() + Math.min(Number(grace), 2 ** 31) * 1000); // dates end
      object.metadata.deletionGracePeriodSeconds = grace;
      object.metadata.generation = (old.metadata.generation ?? 1) + 1;
      if (old.kind === "Namespace") object["status"] = { ...object["status"], phase: "Terminating" };
      return commit(resource, "MODIFIED", key, object, old);
    }
    return commit(resource, "DELETED", key, structuredClone(old), old);
  }

  function call(request: ApiRequest): unknown {
    const { method, path, query = {} } = request;
    const error = api.fail?.(request);
    if (error) throw error;
    const found = discovery(path);
    if (found) return found;
    const { resource, namespace, name, subresource } = parse(path);
    if (method !== "GET" && api.requests.push(`${method} ${path}`) > WRITES_MAX) throw new Error(`more than ${WRITES_MAX} writes: somebody goes round in circles, at last with ${method} ${path}`);
    const ref = served.get(resource);
    if (!ref) throw notFound({ group: "", resource: path }, "");
    const store = storeOf(resource);
    const key = `${namespace}/${name}`;
    const old = store.get(key);
    if (name === "") {
      const selected = [...store.values()].filter((object) => selects(object, namespace, query));
      if (method === "GET") return deepFreeze({ apiVersion: "v1", kind: `${ref.kind}List`, metadata: { resourceVersion: String(revision) }, items: selected });
      if (method === "DELETE") return void selected.map((object) => remove(resource, `${object.metadata.namespace ?? ""}/${object.metadata.name}`, object, (request.body ?? {}) as Record<string, any>));
      const draft = structuredClone(request.body) as Any;
      draft.metadata.name ||= `${draft.metadata.generateName ?? ""}${(++uids).toString(36).padStart(5, "0")}`;
      const at = `${namespace}/${draft.metadata.name}`;
      if (store.has(at)) throw alreadyExists(target(resource), draft.metadata.name);
      draft.metadata = { ...draft.metadata, ...(ref.namespaced ? { namespace } : {}), uid: `uid-${++uids}`, generation: 1, creationTimestamp: timestamp(clock.nowMs()) };
      if (ref.kind === "Namespace") draft["spec"] = { finalizers: ["kubernetes"] };
      return commit(resource, "ADDED", at, draft);
    }
    if (!old) throw notFound(target(resource), name);
    if (method === "GET") return old;
    if (method === "DELETE") return remove(resource, key, old, (request.body ?? {}) as Record<string, any>);
    if (method === "PUT") return write(resource, key, request.body as Any, old, subresource);
    if (method === "PATCH") return write(resource, key, mergePatch(structuredClone(old), request.body, request.contentType?.includes("strategic") ?? false) as Any, old, subresource === "status" ? "status" : "patch");
    throw notFound(target(resource), `${name}/${subresource}`);
  }

  function discovery(path: string): unknown {
    const list = (groupVersion: string) => [...served].filter(([id]) => id.startsWith(`${groupVersion}/`))
      .map(([, { plural, kind, namespaced }]) => ({ name: plural, singularName: "", kind, namespaced, verbs: ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"] }));
    const groups = [...new Map([...served.values()].filter(({ group }) => group !== "").map(({ group, version }) => [group, version]))]
      .map(([name, version]) => ({ name, versions: [{ groupVersion: `${name}/${version}`, version }], preferredVersion: { groupVersion: `${name}/${version}`, version } }));
    if (path === "/apis") return { kind: "APIGroupList", groups };
    const group = groups.find(({ name }) => path === `/apis/${name}`);
    if (group) return { kind: "APIGroup", ...group };
    if (/^\/apis\/[^/]+$/.test(path)) throw notFound({ group: "", resource: "" }, path);
    if (path === "/api/v1") return { kind: "APIResourceList", groupVersion: "v1", resources: list("/v1") };
    const match = /^\/apis\/([^/]+\/[^/]+)$/.exec(path);
    return match ? { kind: "APIResourceList", groupVersion: match[1], resources: list(match[1]!) } : undefined;
  }

  const api: FakeApi = {
    requests: [],
    fail: undefined,
    serve,
    all: (ref) => [...storeOf(`${ref.group}/${ref.version}/${ref.plural}`).values()] as never,
    client: clientOver({ call: async (request) => { request.signal.throwIfAborted(); return call(request); }, watch: (request) => api.watch(request) }),
    call: async (request) => call(request),
    async *watch({ path, query = {}, signal }) {
      const { resource, namespace } = parse(path);
      let at = Number(query["resourceVersion"] ?? revision);
      let next = changes.findIndex((change) => change.revision > at);
      if (next < 0) next = changes.length;
      while (!signal.aborted) {
        for (; next < changes.length; next++) {
          const { resource: of, event, old, revision: reached } = changes[next]!;
          at = reached;
          if (of !== resource) continue;
          const is = selects(event.object as Any, namespace, query);
          const was = old !== undefined && selects(old, namespace, query);
          if (is || was) yield !is ? { type: "DELETED", object: event.object } : event.type === "MODIFIED" && !was ? { type: "ADDED", object: event.object } : event;
        }
        await Promise.race([new Promise<void>((resolve) => wakers.push(resolve)), aborted(signal)]);
      }
    },
  };
  return api;
}

function target(resource: string): { group: string; resource: string } {
  const [group = "", , plural = ""] = resource.split("/");
  return { group, resource: plural };
}

function parse(path: string): { resource: string; namespace: string; name: string; subresource: string } {
  const parts = path.split("/").slice(1).map(decodeURIComponent);
  const [group, version] = parts[0] === "api" ? ["", parts[1]] : [parts[1], parts[2]];
  let rest = parts.slice(parts[0] === "api" ? 2 : 3);
  let namespace = "";
  if (rest[0] === "namespaces" && rest.length > 2 && rest[2] !== "status" && rest[2] !== "finalize") [namespace, rest] = [rest[1]!, rest.slice(2)];
  return { resource: `${group}/${version}/${rest[0]}`, namespace, name: rest[1] ?? "", subresource: rest[2] ?? "" };
}

function selects(object: Any, namespace: string, query: NonNullable<ApiRequest["query"]>): boolean {
  if (namespace !== "" && object.metadata.namespace !== namespace) return false;
  if (query["labelSelector"] && !parseLabelSelector(query["labelSelector"]).matches(object.metadata.labels)) return false;
  if (!query["fieldSelector"]) return true;
  return parseFieldSelector(query["fieldSelector"]).requirements.every(({ field, operator, value }) => {
    const held = String(field.split(".").reduce<any>((at, key) => at?.[key], object) ?? "");
    return (operator === "!=") !== (held === value);
  });
}

/** A merge patch; in a strategic one, lists of owner references and conditions are merged by key, finalizers as a set. */
function mergePatch(target: any, patch: any, strategic: boolean): any {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  const out = typeof target === "object" && target !== null && !Array.isArray(target) ? target : {};
  for (const [key, value] of Object.entries<any>(patch)) {
    const keyed = !strategic ? undefined : key === "ownerReferences" ? "uid" : key === "conditions" ? "type" : undefined;
    if (key.startsWith("$deleteFromPrimitiveList/")) {
      const list = key.slice("$deleteFromPrimitiveList/".length);
      if (out[list]) out[list] = out[list].filter((item: unknown) => !value.includes(item));
      continue;
    }
    if (key.startsWith("$")) continue;
    if (strategic && key === "finalizers" && Array.isArray(value)) { out[key] = [...new Set([...(out[key] ?? []), ...value])]; continue; }
    if (value === null) delete out[key];
    else if (keyed && Array.isArray(value) && Array.isArray(out[key])) {
      for (const item of value) {
        const at = out[key].findIndex((other: any) => other[keyed] === item[keyed]);
        if (item.$patch === "delete") { if (at >= 0) out[key].splice(at, 1); }
        else if (at >= 0) out[key][at] = mergePatch(out[key][at], item, strategic);
        else out[key].push(item);
      }
    } else out[key] = mergePatch(out[key], value, strategic);
  }
  return out;
}

function clean({ metadata: { resourceVersion: _r, ...metadata }, ...rest }: Any): unknown { return parseJson(stringify({ ...rest, metadata })).value; }

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    for (const member of Object.values(value)) deepFreeze(member);
    Object.freeze(value);
  }
  return value;
}

/** Waits until `holds` does, looking again every few milliseconds; fails with what it last saw. */
export async function eventually<T>(look: () => T, holds: (seen: T) => boolean, withinMs = 60_000): Promise<T> {
  const endMs = performance.now() + withinMs;
  for (;;) {
    const seen = look();
    if (holds(seen)) return seen;
    if (performance.now() > endMs) throw new Error(`not within ${withinMs} ms; last seen: ${stringify(seen, 1)}`);
    await Bun.sleep(3);
  }
}
