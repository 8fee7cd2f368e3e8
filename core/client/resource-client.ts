/**
 * Client over any Transport: builds paths and queries, nothing else.
 *
 *   /api/v1/namespaces/default/pods/web-1/status          core group
 *   /apis/apps/v1/namespaces/default/deployments/web      all others
 */
import { formatApiVersion } from "../api/meta/gvk.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import type { Client, DeleteQuery, ListQuery, ObjectName, ResourceClient, ResourceRef } from "./client.ts";
import { pathPart } from "./path-part.ts";
import type { ApiRequest, Transport } from "./transport.ts";

export function clientOver(transport: Transport): Client {
  return {
    resource: (ref) => resourceClient(transport, ref),
    request: (request) => transport.call(request),
  };
}

/** "/apis/apps/v1", "/api/v1". */
function groupVersionPath({ group, version }: Pick<ResourceRef, "group" | "version">): string {
  return group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
}

function managedBy(fieldManager: string | undefined): { readonly query?: { readonly fieldManager: string } } { return fieldManager === undefined ? {} : { query: { fieldManager } }; }

/** The collection's path; without a namespace, the collection over all namespaces. Throws an Error. */
function collectionPath(ref: ResourceRef, namespace: string | undefined): string {
  const scope = ref.namespaced && namespace !== undefined && namespace !== "" ? `/namespaces/${pathPart(namespace, "namespace")}` : "";
  return `${groupVersionPath(ref)}${scope}/${ref.plural}`;
}

function resourceClient<T extends ApiObject>(transport: Transport, ref: ResourceRef<T>): ResourceClient<T> {
  const pathOf = ({ metadata }: ObjectName, subresource?: string): string => {
    const path = `${collectionPath(ref, metadata.namespace)}/${pathPart(metadata.name)}`;
    return subresource === undefined ? path : `${path}/${subresource}`;
  };
  const send = (request: ApiRequest): Promise<Readonly<T>> => transport.call(request) as Promise<Readonly<T>>;

  return {
    ref,
    get: async (name, { signal }) => await send({ method: "GET", path: pathOf(name), signal }),

    async list(query, { signal }) {
      const answer = (await transport.call({ method: "GET", path: collectionPath(ref, query.namespace), query: listQuery(query), signal })) as RawList<T>;
      return { items: (answer.items ?? []).map((item) => withType(item, ref)), metadata: { ...answer.metadata, resourceVersion: answer.metadata.resourceVersion ?? "" } };
    },

    watch(query, { signal }) {
      const { allowWatchBookmarks, timeoutSeconds, ...rest } = query;
      return transport.watch({
        method: "GET",
        path: collectionPath(ref, query.namespace),
        query: {
          ...listQuery(rest), watch: "true", ...(allowWatchBookmarks ? { allowWatchBookmarks: "true" } : {}),
          ...(timeoutSeconds === undefined ? {} : { timeoutSeconds: String(timeoutSeconds) }),
        },
        signal,
      }) as ReturnType<ResourceClient<T>["watch"]>;
    },

    create: async (object, { signal, fieldManager }) => await send({ method: "POST", path: collectionPath(ref, object.metadata.namespace), ...managedBy(fieldManager), body: object, signal }),
    update: async (object, { signal, fieldManager }) => await send({ method: "PUT", path: pathOf(object), ...managedBy(fieldManager), body: object, signal }),
    updateStatus: async (object, { signal }) => await send({ method: "PUT", path: pathOf(object, "status"), body: object, signal }),

    patch: async (name, type, patch, { signal, subresource }) => await send({ method: "PATCH", path: pathOf(name, subresource), body: patch, contentType: type, signal }),

    async apply(object, { signal, fieldManager, force, subresource }) {
      const name = { metadata: { name: object.metadata.name ?? "", namespace: object.metadata.namespace } };
      const query = { fieldManager, ...(force ? { force: "true" } : {}) };
      return await send({ method: "PATCH", path: pathOf(name, subresource), query, body: object, contentType: "application/apply-patch+yaml", signal });
    },

    async delete(name, query, { signal }) {
      const answer = (await transport.call({ method: "DELETE", path: pathOf(name), body: deleteOptions(query), signal })) as Readonly<T> | undefined;
      return answer === undefined || answer.kind === "Status" ? undefined : withType(answer, ref);
    },

    async deleteCollection(query, options, { signal }) {
      await transport.call({ method: "DELETE", path: collectionPath(ref, query.namespace), query: listQuery(query), body: deleteOptions(options), signal });
    },

    createSubresource: async <R>(name: ObjectName, subresource: string, body: unknown, { signal }: { readonly signal: AbortSignal }) =>
      await transport.call({ method: "POST", path: pathOf(name, subresource), body, signal }) as Promise<R>,
    updateSubresource: async <R>(name: ObjectName, subresource: string, body: unknown, { signal }: { readonly signal: AbortSignal }) =>
      await transport.call({ method: "PUT", path: pathOf(name, subresource), body, signal }) as Promise<R>,
  };
}

interface RawList<T> { readonly items?: readonly Readonly<T>[] | null; readonly metadata: { readonly resourceVersion?: string; readonly continue?: string } }

function listQuery({ labelSelector, fieldSelector, limit, continue: token, resourceVersion }: ListQuery): Record<string, string> {
  return {
    ...(labelSelector ? { labelSelector } : {}), ...(fieldSelector ? { fieldSelector } : {}), ...(limit ? { limit: String(limit) } : {}),
    ...(token ? { continue: token } : {}), ...(resourceVersion ? { resourceVersion } : {}),
  };
}

function deleteOptions({ gracePeriodSeconds, propagationPolicy, preconditions }: DeleteQuery): Record<string, unknown> {
  return {
    apiVersion: "v1", kind: "DeleteOptions",
    ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }), ...(propagationPolicy === undefined ? {} : { propagationPolicy }),
    ...(preconditions === undefined ? {} : { preconditions }),
  };
}

/** Items of a list carry no apiVersion and kind on the wire. */
function withType<T extends ApiObject>(object: Readonly<T>, ref: ResourceRef<T>): Readonly<T> {
  if (object.kind !== undefined && object.apiVersion !== undefined) return object;
  return Object.freeze({ ...object, apiVersion: formatApiVersion(ref), kind: ref.kind });
}
