/**
 * What is still served but should not be used any more: every request for it is warned of it.
 *
 * Source: kubernetes v1.36 api/core/v1/zz_generated.prerelease-lifecycle.go, apiserver/pkg/endpoints/deprecation/deprecation.go
 */
import { formatApiVersion, type GroupVersionKind } from "../api/meta/gvk.ts";

/** By apiVersion and kind: since which release, and what to use instead. */
const DEPRECATED: Readonly<Record<string, { readonly since: string; readonly use?: string }>> = {
  "v1 ComponentStatus": { since: "v1.19" },
  "v1 Endpoints": { since: "v1.33", use: "discovery.k8s.io/v1 EndpointSlice" },
};

/** The text of the warning; undefined: none. */
export function deprecation(gvk: GroupVersionKind): string | undefined {
  const name = `${formatApiVersion(gvk)} ${gvk.kind}`;
  const found = DEPRECATED[name];
  return found && `${name} is deprecated in ${found.since}+${found.use === undefined ? "" : `; use ${found.use}`}`;
}
