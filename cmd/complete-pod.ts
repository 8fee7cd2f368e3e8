/**
 * What a pod from a file on a machine has in common with one that the API server took in: its defaults, and that it is valid. Only that it may not
 * refer to objects of the API server, which it has to run without.
 *
 * Source: kubernetes v1.36 pkg/kubelet/config/common.go (tryDecodeSinglePod)
 */
import { apiReferenceOf } from "../core/admission/pod-api-references.ts";
import type { Pod } from "../core/api/gen/core.v1.ts";
import { formatFieldErrors } from "../core/api/meta/field-error.ts";
import { dns1123Subdomain } from "../core/api/meta/names.ts";
import { declaredDefaults } from "../core/api/schema/declared-defaults.ts";
import { builtInFacts } from "../core/api/schema/facts.ts";
import { pods } from "../core/registry/core/pod/pod.ts";
import { validateMeta } from "../core/registry/generic/object-meta.ts";

/** Changes the pod. Throws an Error when it cannot run so. */
export function completePod(pod: Pod): void {
  declaredDefaults.apply(builtInFacts.typeOf(pods)!, pod);
  pods.defaults?.(pod);
  const problems = formatFieldErrors([...validateMeta(pod, true, dns1123Subdomain), ...(pods.validate?.(pod) ?? [])]);
  if (problems !== "") throw new Error(`invalid pod: ${problems}`);
  const { resource, error } = apiReferenceOf(pod);
  if (error !== undefined) throw new Error(error);
  if (resource !== undefined) throw new Error(`static pods may not reference ${resource}`);
}
