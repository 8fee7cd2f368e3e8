/**
 * Discovery: the documents in which a server says what it serves. Pure functions over resource rows.
 *
 *   GET /api                         apiVersions                     or, as APIGroupDiscoveryList, groupDiscoveryList of the core group
 *   GET /apis                        apiGroupList                    or, as APIGroupDiscoveryList, groupDiscoveryList of all others
 *   GET /apis/apps                   apiGroup
 *   GET /api/v1, /apis/apps/v1       apiResourceList
 *
 * Aggregated discovery (apidiscovery.k8s.io/v2) is what clients ask for first; it carries an ETag over its JSON.
 *
 * Source: kubernetes v1.36 apiserver/pkg/endpoints/discovery, kube-aggregator/pkg/apiserver/handler_apis.go
 */
import { createHash } from "node:crypto";
import { jsonText } from "../codec/json.ts";
import { formatApiVersion, type GroupVersion, type GroupVersionKind } from "../meta/gvk.ts";
import type { ResourceRow, ServedGroupVersion, Subresource } from "../schema/resources.ts";
import { compareVersions } from "./version-order.ts";

export interface GroupVersionForDiscovery { readonly groupVersion: string; readonly version: string }
export interface ApiGroup {
  readonly name: string; readonly versions: readonly GroupVersionForDiscovery[]; readonly preferredVersion: GroupVersionForDiscovery;
}

/** A group version in discovery: its rows, and whether they are up to date ("Stale": the server behind it does not answer). */
export interface DiscoveredVersion extends ServedGroupVersion {
  readonly rows: readonly ResourceRow[];
  /** Instead of rows: what another server has said it serves, as APIResourceDiscovery. */
  readonly foreign?: readonly object[];
  readonly freshness?: "Current" | "Stale";
}

export interface ApiResource {
  readonly name: string; readonly singularName: string; readonly namespaced: boolean; readonly group?: string; readonly version?: string;
  readonly kind: string; readonly verbs: readonly string[]; readonly shortNames?: readonly string[]; readonly categories?: readonly string[];
  readonly storageVersionHash?: string;
}

/** What a client that asks for it must accept. */
const AGGREGATED_DISCOVERY: GroupVersionKind = { group: "apidiscovery.k8s.io", version: "v2", kind: "APIGroupDiscoveryList" };
/** Of the answer's Content-Type, which says what it is, because clients tell the two forms apart by it. */
export const AGGREGATED_PARAMETERS = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

export function isAggregatedDiscovery({ group, version, kind }: GroupVersionKind): boolean {
  return group === AGGREGATED_DISCOVERY.group && version === AGGREGATED_DISCOVERY.version && kind === AGGREGATED_DISCOVERY.kind;
}

/** `serverAddress` is host:port as clients outside would dial it. */
export function apiVersions(serverAddress: string): object {
  return { kind: "APIVersions", versions: ["v1"], serverAddressByClientCIDRs: [{ clientCIDR: "0.0.0.0/0", serverAddress }] };
}

/** All groups but the core one. */
export function apiGroupList(versions: readonly ServedGroupVersion[]): object {
  return { kind: "APIGroupList", apiVersion: "v1", groups: groupsOf(versions).filter(({ name }) => name !== "") };
}

/** undefined if nothing of the group is served. */
export function apiGroup(versions: readonly ServedGroupVersion[], name: string): object | undefined {
  const [group] = groupsOf(versions.filter((version) => version.group === name));
  return group && { kind: "APIGroup", apiVersion: "v1", ...group };
}

/** The core group's list says no apiVersion: it is older than the field. */
export function apiResourceList(groupVersion: GroupVersion, rows: readonly ResourceRow[]): object {
  return {
    kind: "APIResourceList", ...(groupVersion.group === "" ? {} : { apiVersion: "v1" }), groupVersion: formatApiVersion(groupVersion),
    resources: [...rows].sort((a, b) => a.plural < b.plural ? -1 : 1).flatMap((row) => [resourceOf(row), ...partsOf(row).map((subresource) => subresourceOf(row, subresource))]),
  };
}

/** Every group of `versions`, in discovery's order. */
export function groupDiscoveryList(versions: readonly DiscoveredVersion[]): object {
  return {
    kind: "APIGroupDiscoveryList", apiVersion: "apidiscovery.k8s.io/v2", metadata: {},
    items: orderGroups(versions).map((group) => ({
      metadata: group[0]!.group === "" ? {} : { name: group[0]!.group },
      versions: group.map(({ version, rows, foreign, freshness = "Current" }) => ({
        version, ...(foreign?.length === 0 ? {} : { resources: foreign ?? [...rows].sort((a, b) => a.plural < b.plural ? -1 : 1).map(discoveryOf) }), freshness,
      })),
    })),
  };
}

/** The value of the ETag header, quotes and all. */
export function etagOf(document: object): string { return `"${createHash("sha512").update(jsonText(document)).digest("hex").toUpperCase()}"`; }

function groupsOf(versions: readonly ServedGroupVersion[]): ApiGroup[] {
  return orderGroups(versions).map((group) => {
    const found = group.map((version) => ({ groupVersion: formatApiVersion(version), version: version.version }));
    return { name: group[0]!.group, versions: found, preferredVersion: found[0]! };
  });
}

/** Groups by the highest priority any of their versions gives them, then by name; versions by priority, then v2 before v1 before v1beta1. */
function orderGroups<V extends ServedGroupVersion>(versions: readonly V[]): V[][] {
  const priority = (group: readonly V[]): number => Math.max(...group.map(({ groupPriority }) => groupPriority));
  return [...Map.groupBy(versions, ({ group }) => group).values()]
    .map((group) => group.sort((a, b) => b.versionPriority - a.versionPriority || compareVersions(b.version, a.version)))
    .sort((a, b) => priority(b) - priority(a) || (a[0]!.group < b[0]!.group ? -1 : 1));
}

/** By name; those of custom resources as their definition has them. */
function partsOf({ subresources, custom }: ResourceRow): readonly Subresource[] {
  return custom ? subresources : [...subresources].sort((a, b) => a.name < b.name ? -1 : 1);
}

function resourceOf(row: ResourceRow): ApiResource {
  return {
    name: row.plural, singularName: row.singular, namespaced: row.namespaced, kind: row.kind, verbs: row.discoveredVerbs ?? row.verbs,
    ...(row.shortNames.length > 0 ? { shortNames: row.shortNames } : {}), ...(row.categories.length > 0 ? { categories: row.categories } : {}),
    ...(row.storageVersionHash === undefined ? {} : { storageVersionHash: row.storageVersionHash }),
  };
}

function subresourceOf(row: ResourceRow, { name, kind, verbs }: Subresource): ApiResource {
  const foreign = kind.group !== row.group || kind.version !== row.version;
  return {
    name: `${row.plural}/${name}`, singularName: "", namespaced: row.namespaced,
    ...(foreign ? { group: kind.group, version: kind.version } : {}), kind: kind.kind, verbs,
  };
}

function discoveryOf(row: ResourceRow): object {
  return {
    resource: row.plural, responseKind: responseKind(row, row), scope: row.namespaced ? "Namespaced" : "Cluster", singularResource: row.singular,
    verbs: row.discoveredVerbs ?? row.verbs, ...(row.shortNames.length > 0 ? { shortNames: row.shortNames } : {}),
    ...(row.categories.length > 0 ? { categories: row.categories } : {}),
    ...(row.subresources.length === 0 ? {} : {
      subresources: row.subresources.map(({ name, kind, verbs }) => ({ subresource: name, responseKind: responseKind(row, kind), verbs })),
    }),
  };
}

/** A built-in kind of the version's own group goes without group and version; a custom one is always spelled out. */
function responseKind(row: ResourceRow, { group, version, kind }: GroupVersionKind): GroupVersionKind {
  const own = !row.custom && group === row.group && version === row.version;
  return own ? { group: "", version: "", kind } : { group, version, kind };
}
