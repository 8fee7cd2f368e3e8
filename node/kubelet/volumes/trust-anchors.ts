/**
 * What a projected volume has of ClusterTrustBundles: one by its name, or those of a signer that have some labels; each authority once, in an order that means nothing.
 *
 * Source: kubernetes v1.36 pkg/kubelet/clustertrustbundle/clustertrustbundle_manager.go
 */
import type { ClusterTrustBundle } from "../../../core/api/gen/certificates.v1beta1.ts";
import type { ClusterTrustBundleProjection } from "../../../core/api/gen/core.v1.ts";
import { labelSelector } from "../../../core/api/meta/label-selector.ts";
import { labelsOf } from "../../../core/api/meta/object-meta.ts";
import { goQuote } from "../../../core/api/meta/go-quote.ts";
import { readPem, toPem } from "../../../core/pki/pem.ts";

/** PEM. Throws an Error for the user. */
export function trustAnchors({ name, signerName, labelSelector: labels, optional = false }: ClusterTrustBundleProjection, bundles: readonly Readonly<ClusterTrustBundle>[]): string {
  if (name === undefined && signerName === undefined) throw new Error("ClusterTrustBundle projection requires either name or signerName to be set");
  const selector = labelSelector(labels);
  const chosen = bundles.filter((bundle) => (name !== undefined ? bundle.metadata.name === name : (bundle.spec.signerName ?? "") === signerName && selector.matches(labelsOf(bundle))));
  if (chosen.length === 0 && !optional)
    throw new Error(name !== undefined ? `while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io ${goQuote(name)} not found` : "combination of signerName and labelSelector matched zero ClusterTrustBundles");
  const anchors = new Set(chosen.flatMap(({ spec }) => readPem(spec.trustBundle, { withHeaders: true }).map(({ der }) => toPem("CERTIFICATE", der))));
  return [...anchors].toSorted().join("");
}
