/**
 * What a projected volume has of ClusterTrustBundles: one by its name, or those of a signer that have some labels; each authority once, in an order that means nothing.
 *
 * Source: kubernetes v1.36 pkg/kubelet/clustertrustbundle/clustertrustbundle_manager.go
 */
import type { ClusterTrustBundle } from "../../../core/api/gen/certificates.v1beta1.ts";
import type { ClusterTrustBundleProjection } from "../../../core/api/gen/core.v1.ts";
import { ifFound } from "../../../core/api/meta/if-found.ts";
import { labelSelector } from "../../../core/api/meta/label-selector.ts";
import { labelsOf } from "../../../core/api/meta/object-meta.ts";
import { goQuote } from "../../../core/api/meta/go-quote.ts";
import type { Client } from "../../../core/client/client.ts";
import { CLUSTER_TRUST_BUNDLES, CLUSTER_TRUST_BUNDLES_ALPHA } from "../../../core/client/resources.ts";
import { readPem, toPem } from "../../../core/pki/pem.ts";

/** In the newest version in which they are served; none if they are in no version. */
export async function servedBundles(client: Client, signal: AbortSignal): Promise<readonly Readonly<ClusterTrustBundle>[]> {
  for (const resource of [CLUSTER_TRUST_BUNDLES, CLUSTER_TRUST_BUNDLES_ALPHA]) {
    const found = await ifFound(client.resource(resource).list({}, { signal }));
    if (found) return found.items;
  }
  return [];
}

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
