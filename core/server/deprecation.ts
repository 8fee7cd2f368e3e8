/**
 * What is still served but should not be used any more: every request for it is warned of it.
 *
 * Source: kubernetes v1.36 api/<group>/<version>/zz_generated.prerelease-lifecycle.go, apiserver/pkg/endpoints/deprecation/deprecation.go
 */
import { formatApiVersion, type GroupVersionKind } from "../api/meta/gvk.ts";

interface Deprecated { readonly since: string; /** From which release on it is gone. */ readonly gone?: string; readonly use?: string }

const SINCE_34: Deprecated = { since: "v1.34", gone: "v1.37" };
const SINCE_35: Deprecated = { since: "v1.35", gone: "v1.38" };
const SINCE_36: Deprecated = { since: "v1.36", gone: "v1.39" };

/** By apiVersion and kind. */
const DEPRECATED: Readonly<Record<string, Deprecated>> = {
  "v1 ComponentStatus": { since: "v1.19" },
  "v1 Endpoints": { since: "v1.33", use: "discovery.k8s.io/v1 EndpointSlice" },
  "networking.k8s.io/v1beta1 IPAddress": SINCE_34, "networking.k8s.io/v1beta1 ServiceCIDR": SINCE_34,
  "certificates.k8s.io/v1alpha1 ClusterTrustBundle": SINCE_34,
  "storage.k8s.io/v1beta1 VolumeAttributesClass": { ...SINCE_34, use: "storage.k8s.io/v1 VolumeAttributesClass" },
  "resource.k8s.io/v1beta1 DeviceClass": SINCE_35, "resource.k8s.io/v1beta1 ResourceClaim": SINCE_35, "resource.k8s.io/v1beta1 ResourceClaimTemplate": SINCE_35, "resource.k8s.io/v1beta1 ResourceSlice": SINCE_35,
  "admissionregistration.k8s.io/v1alpha1 MutatingAdmissionPolicy": SINCE_35, "admissionregistration.k8s.io/v1alpha1 MutatingAdmissionPolicyBinding": SINCE_35,
  "coordination.k8s.io/v1alpha2 LeaseCandidate": SINCE_35,
  "resource.k8s.io/v1beta2 DeviceClass": SINCE_36, "resource.k8s.io/v1beta2 ResourceClaim": SINCE_36, "resource.k8s.io/v1beta2 ResourceClaimTemplate": SINCE_36, "resource.k8s.io/v1beta2 ResourceSlice": SINCE_36,
  "resource.k8s.io/v1alpha3 DeviceTaintRule": SINCE_36, "coordination.k8s.io/v1beta1 LeaseCandidate": SINCE_36,
};

/** The text of the warning; undefined: none. */
export function deprecation(gvk: GroupVersionKind): string | undefined {
  const name = `${formatApiVersion(gvk)} ${gvk.kind}`;
  const found = DEPRECATED[name];
  return found && `${name} is deprecated in ${found.since}+${found.gone === undefined ? "" : `, unavailable in ${found.gone}+`}${found.use === undefined ? "" : `; use ${found.use}`}`;
}
