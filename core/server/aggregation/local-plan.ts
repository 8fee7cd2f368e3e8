/**
 * Which APIServices say that this server serves something itself: one for each group version it serves.
 *
 * Those of the built-in API are made when they are missing at the start, so that who deletes one can give its group to another server, and go at the start when it is served
 * no more; those of custom resources follow their definitions. What somebody else has made is his.
 *
 * Source: kubernetes v1.36 kube-aggregator/pkg/controllers/autoregister/autoregister_controller.go, pkg/controlplane/apiserver/aggregator.go
 */
import type { ServedGroupVersion } from "../../api/schema/resources.ts";
import type { APIService } from "../../registry/apiregistration/api-service.ts";

export const MANAGED_LABEL = "kube-aggregator.kubernetes.io/automanaged";
/** Made and put right at the start; kept as they should be. */
export type Managed = "onstart" | "true";

export interface Wanted extends ServedGroupVersion { readonly managed: Managed }

export type LocalAction =
  | { readonly type: "create" | "update"; readonly apiService: APIService }
  | { readonly type: "delete"; readonly name: string };

export function apiServiceName({ group, version }: { readonly group: string; readonly version: string }): string { return `${version}.${group}`; }

/** `seen`: names of those that have been there since the start; none: this is the start. */
export function planLocal(wanted: readonly Wanted[], existing: ReadonlyMap<string, Readonly<APIService>>, seen: ReadonlySet<string>): LocalAction[] {
  const actions: LocalAction[] = [];
  const names = new Set<string>();
  const isStart = seen.size === 0;
  for (const one of wanted) {
    if (one.group === "apiregistration.k8s.io") continue; // what serves APIServices needs none to be found
    const name = apiServiceName(one);
    names.add(name);
    const spec = { ...(one.group === "" ? {} : { group: one.group }), version: one.version, groupPriorityMinimum: one.groupPriority, versionPriority: one.versionPriority };
    const found = existing.get(name);
    if (!found && one.managed === "onstart" && seen.has(name)) continue;
    if (!found) actions.push({ type: "create", apiService: { apiVersion: "apiregistration.k8s.io/v1", kind: "APIService", metadata: { name, labels: { [MANAGED_LABEL]: one.managed } }, spec } as unknown as APIService });
    else if (isKept(found, one, isStart) && !isSame(found, spec))
      actions.push({ type: "update", apiService: { ...(found as APIService), spec } });
  }
  for (const [name, { metadata, spec }] of existing) {
    const managed = metadata.labels?.[MANAGED_LABEL];
    if (!names.has(name) && (managed === "true" || (managed === "onstart" && isStart && !spec.service))) actions.push({ type: "delete", name });
  }
  return actions;
}

/** Of the built-in API at the start alone, and not what somebody has given to another server. */
function isKept({ metadata, spec }: Readonly<APIService>, { managed }: Wanted, isStart: boolean): boolean {
  const known = metadata.labels?.[MANAGED_LABEL];
  if (known === "true" && managed === "true") return true;
  return isStart && known === "onstart" && managed === "onstart" && !spec.service;
}

function isSame({ spec }: Readonly<APIService>, wanted: APIService["spec"]): boolean {
  return !spec.service && spec.groupPriorityMinimum === wanted.groupPriorityMinimum && spec.versionPriority === wanted.versionPriority;
}
