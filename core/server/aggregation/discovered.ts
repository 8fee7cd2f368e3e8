/**
 * What an extension server says it serves, in the form of aggregated discovery: asked for in that form, or made from the older one.
 *
 * Source: kubernetes v1.36 kube-aggregator/pkg/apiserver/handler_discovery.go, apiserver/pkg/endpoints/installer.go ConvertGroupVersionIntoToDiscovery
 */
import { jsonNodeOf } from "../../api/codec/json-document.ts";
import type { APIResource, APIResourceList } from "../../api/gen/meta.v1.ts";
import { canonical } from "../../api/schema/canonical.ts";
import { diagnose } from "../../api/schema/diagnose.ts";
import { builtInFacts } from "../../api/schema/facts.ts";

export interface ResponseKind { readonly group: string; readonly version: string; readonly kind: string }
export interface ResourceDiscovery {
  readonly resource: string; readonly responseKind: ResponseKind; readonly scope: "Namespaced" | "Cluster"; readonly singularResource: string;
  readonly verbs: readonly string[]; readonly shortNames?: readonly string[]; readonly categories?: readonly string[]; readonly subresources?: readonly { readonly responseKind?: ResponseKind }[];
}

interface VersionDiscovery { readonly version: string; readonly resources?: readonly ResourceDiscovery[] }
interface GroupDiscovery { readonly metadata?: { readonly name?: string }; readonly versions?: readonly VersionDiscovery[] }

/** v2beta1 is no different. */
export function readAggregated(value: unknown): Parameters<typeof resourcesIn>[0] { return read("io.k8s.api.apidiscovery.v2.APIGroupDiscoveryList", value); }
export function readList(value: unknown): APIResourceList { return read("io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList", value); }

/** As Go reads it. What one server says goes to every client within what all say: a number where clients want a text, and they understand none of it. Throws. */
function read<T>(name: string, value: unknown): T {
  const type = builtInFacts.structNamed(name)!;
  const { object, clean } = canonical(type, value);
  const wrong = clean ? undefined : diagnose(type, jsonNodeOf(value)).error;
  if (wrong !== undefined) throw new Error(wrong);
  return object as T;
}

export const ACCEPT_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

export function isAggregated(contentType = ""): boolean { return /;\s*as=APIGroupDiscoveryList/.test(contentType) && contentType.includes("g=apidiscovery.k8s.io"); }

const NO_KIND: ResponseKind = { group: "", version: "", kind: "" };

/** The resources of one group version; undefined: the server does not say that it has it. */
export function resourcesIn(document: { readonly items?: readonly GroupDiscovery[] }, group: string, version: string): readonly ResourceDiscovery[] | undefined {
  const found = document.items?.find(({ metadata }) => (metadata?.name ?? "") === group)?.versions?.find((one) => one.version === version);
  return found && (found.resources ?? []).map((one) => ({ ...kinded(one), ...(one.subresources ? { subresources: one.subresources.map(kinded) } : {}) }));
}

/** Some clients cannot do without. */
function kinded<T extends { readonly responseKind?: ResponseKind; readonly verbs?: readonly string[] | null }>(one: T): T & { readonly responseKind: ResponseKind; readonly verbs: readonly string[] } { return { ...one, responseKind: one.responseKind ?? NO_KIND, verbs: one.verbs ?? [] }; }

/** Throws when a subresource contradicts its resource. */
export function resourcesOfList({ resources }: Partial<APIResourceList>): ResourceDiscovery[] {
  const parents = new Map<string, ResourceDiscovery & { subresources?: object[] }>();
  for (const one of resources ?? []) {
    if (one.name.includes("/")) continue;
    parents.set(one.name, {
      resource: one.name, responseKind: kindOf(one), scope: scopeOf(one), singularResource: one.singularName, verbs: one.verbs ?? [],
      ...(one.shortNames?.length ? { shortNames: one.shortNames } : {}), ...(one.categories?.length ? { categories: one.categories } : {}),
    });
  }
  for (const one of resources ?? []) {
    const slash = one.name.indexOf("/");
    if (slash < 0) continue;
    const name = one.name.slice(0, slash);
    const parent = parents.get(name) ?? { resource: name, responseKind: NO_KIND, scope: scopeOf(one), singularResource: "", verbs: [] };
    parents.set(name, parent);
    if (parent.scope !== scopeOf(one)) throw new Error(`Error: Parent ${name} (scope: ${parent.scope}) and subresource ${one.name.slice(slash + 1)} (scope: ${scopeOf(one)}) scope do not match`);
    (parent.subresources ??= []).push({ subresource: one.name.slice(slash + 1), responseKind: one.kind ? kindOf(one) : NO_KIND, verbs: one.verbs ?? [] });
  }
  return [...parents.values()];
}

function scopeOf({ namespaced }: APIResource): "Namespaced" | "Cluster" { return namespaced ? "Namespaced" : "Cluster"; }
function kindOf({ group = "", version = "", kind }: APIResource): ResponseKind { return { group, version, kind }; }
