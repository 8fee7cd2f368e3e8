/**
 * Group, version, kind and resource, and the strings they are written as.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/apimachinery/pkg/runtime/schema/group_version.go
 */
export interface GroupVersion { readonly group: string; readonly version: string }
export interface GroupKind { readonly group: string; readonly kind: string }
export interface GroupResource { readonly group: string; readonly resource: string }
export interface GroupVersionKind extends GroupVersion, GroupKind {}
export interface GroupVersionResource extends GroupVersion, GroupResource {}

/** "v1", "apps/v1". */
export function formatApiVersion({ group, version }: GroupVersion): string { return group === "" ? version : `${group}/${version}`; }

/** Throws `unexpected GroupVersion string: a/b/c`. An empty string and "/" are the empty group and version. */
export function parseApiVersion(apiVersion: string): GroupVersion {
  if (apiVersion === "" || apiVersion === "/") return { group: "", version: "" };
  const slash = apiVersion.indexOf("/");
  if (slash < 0) return { group: "", version: apiVersion };
  if (apiVersion.indexOf("/", slash + 1) >= 0) throw new Error(`unexpected GroupVersion string: ${apiVersion}`);
  return { group: apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) };
}

export function gvkOf({ apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): GroupVersionKind {
  return { ...parseApiVersion(apiVersion), kind };
}

/** "pods", "deployments.apps": how error messages and CRD names write a resource. */
export function formatGroupResource({ group, resource }: GroupResource): string { return group === "" ? resource : `${resource}.${group}`; }

/** "Pod", "Deployment.apps". */
export function formatGroupKind({ group, kind }: GroupKind): string { return group === "" ? kind : `${kind}.${group}`; }

/** "/v1, Kind=Pod", "apps/v1, Kind=Deployment": upstream's String(), which leaves the slash when the group is empty. */
export function formatGvk({ group, version, kind }: GroupVersionKind): string { return `${group}/${version}, Kind=${kind}`; }

/** "/v1, Resource=pods". */
export function formatGvr({ group, version, resource }: GroupVersionResource): string { return `${group}/${version}, Resource=${resource}`; }
