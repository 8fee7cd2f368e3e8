/** Whether what a webhook has answered is a review of the kind that was sent, as Go's decoder finds out. Source: kubernetes v1.36 apiserver/pkg/util/webhook/client.go */
import { type GroupVersionKind, gvkOf } from "../../api/meta/gvk.ts";

/** Of AdmissionReview and ConversionReview alike; all are of one form. */
export const REVIEW_VERSIONS = ["v1", "v1beta1"] as const;
export type ReviewVersion = (typeof REVIEW_VERSIONS)[number];

/** Where Go registers what it decodes from webhooks. */
const SCHEME = "pkg/util/webhook/client.go:71";
/** What Go knows under v1 wherever it decodes something. Source: kubernetes v1.36 apimachinery/pkg/apis/meta/v1/register.go */
const UNVERSIONED: ReadonlySet<string> = new Set(["Status", "APIVersions", "APIGroupList", "APIGroup", "APIResourceList"]);

/** Throws an Error that says why it cannot be decoded. Who says nothing of itself is taken for what is expected. */
export function refuseOtherType(told: { readonly apiVersion: string; readonly kind: string }, expected: GroupVersionKind): void {
  const { group, version, kind } = gvkOf({ apiVersion: told.apiVersion, kind: told.kind || expected.kind });
  if (version === "") return;
  if (told.apiVersion === "v1" && UNVERSIONED.has(kind)) throw new Error(`converting (v1.${kind}) to (${expected.version}.${expected.kind}): unknown conversion`);
  if (kind !== expected.kind || group !== expected.group || !REVIEW_VERSIONS.includes(version as ReviewVersion))
    throw new Error(`no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(told.apiVersion)} in scheme ${JSON.stringify(SCHEME)}`);
  if (version !== expected.version) throw new Error(`converting (${version}.${expected.kind}) to (${expected.version}.${expected.kind}): unknown conversion`);
}
