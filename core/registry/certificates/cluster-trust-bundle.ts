/**
 * ClusterTrustBundle (certificates.k8s.io/v1beta1): authorities that may be trusted, for pods to have as files; those of a signer are its own to give, says admission (ClusterTrustBundleAttest).
 *
 * Source: kubernetes v1.36 pkg/registry/certificates/clustertrustbundle, pkg/apis/certificates/validation/validation.go, pkg/apis/core/validation/names.go
 */
import type { ClusterTrustBundle } from "../../api/gen/certificates.v1beta1.ts";
import { byteLength } from "../../api/meta/byte-length.ts";
import { child, type FieldError, invalid, tooLong } from "../../api/meta/field-error.ts";
import { immutable } from "../core/checks/values.ts";
import { defineResource } from "../generic/resource.ts";
import { anchorProblems } from "./pem-content.ts";
import { signerName, trustBundleNameFor } from "./signer-name.ts";

const BUNDLE_BYTES_MAX = 1024 * 1024;
const BUNDLE = "spec.trustBundle";

export const clusterTrustBundles = defineResource<ClusterTrustBundle>({
  group: "certificates.k8s.io", version: "v1beta1", kind: "ClusterTrustBundle", plural: "clustertrustbundles",
  generation: false, unconditionalUpdate: false,
  validateName: () => [], // depends on whose it is
  *validate({ metadata, spec }, old) {
    for (const detail of trustBundleNameFor(spec.signerName ?? "", metadata.name)) yield invalid(child("metadata", "name"), metadata.name, detail);
    if (spec.signerName) yield* signerName(child("spec", "signerName"), spec.signerName);
    if (spec.trustBundle !== old?.spec.trustBundle) yield* validateBundle(spec.trustBundle ?? "");
  },
  validateUpdate: (next, old) => immutable("spec.signerName", next.spec.signerName ?? "", old.spec.signerName ?? ""),
  fields: ({ spec }) => ({ "spec.signerName": spec.signerName ?? "" }),
});

/** What is in it is not told. */
function* validateBundle(text: string): Iterable<FieldError> {
  if (byteLength(text) > BUNDLE_BYTES_MAX) { yield tooLong(BUNDLE, BUNDLE_BYTES_MAX); return; }
  for (const detail of anchorProblems(text)) yield invalid(BUNDLE, "<value omitted>", detail);
}
