/**
 * The AdmissionReview that is sent, and what may come back.
 *
 * Source: kubernetes v1.36 apiserver/pkg/admission/plugin/webhook/{request/admissionreview.go,errors/statuserror.go}
 */
import type { AdmissionResponse, AdmissionReview } from "../../api/gen/admission.v1.ts";
import type { GroupVersionKind } from "../../api/meta/gvk.ts";
import { formatGvk, gvkOf } from "../../api/meta/gvk.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { type Status, StatusError } from "../../api/meta/status-error.ts";
import { isMap } from "../../api/patch/json-value.ts";
import type { AdmissionRequest } from "../plugin.ts";
import type { Invocation } from "./match.ts";

const REVIEW_API_VERSION = "admission.k8s.io/v1";
const REVIEW: GroupVersionKind = { group: "admission.k8s.io", version: "v1", kind: "AdmissionReview" };
const PATCH_TYPE = "JSONPatch";

export interface Shown { readonly object: Readonly<ApiObject> | undefined; readonly oldObject: Readonly<ApiObject> | undefined }

/** `requestKind`: of what was sent, whatever the webhook is shown. */
export function reviewOf(request: AdmissionRequest, { resource, kind }: Pick<Invocation, "resource" | "kind">, { uid, requestKind, shown: { object, oldObject } }: { readonly uid: string; readonly requestKind: GroupVersionKind; readonly shown: Shown }): AdmissionReview {
  const { group, version, subresource, name, namespace, operation, user, dryRun, options } = request;
  return {
    kind: "AdmissionReview", apiVersion: REVIEW_API_VERSION,
    request: {
      uid, kind: plainKind(kind), resource: { group: resource.group, version: resource.version, resource: resource.resource },
      ...(subresource && { subResource: subresource }),
      requestKind: plainKind(requestKind), requestResource: { group, version, resource: request.resource },
      ...(subresource && { requestSubResource: subresource }), ...(name && { name }), ...(namespace && { namespace }),
      operation,
      userInfo: {
        username: user.name, ...(user.uid && { uid: user.uid }), groups: [...user.groups],
        ...(user.extra && { extra: Object.fromEntries(Object.entries(user.extra).map(([key, values]) => [key, [...values]])) }),
      },
      object: object ?? null, oldObject: oldObject ?? null, dryRun, options: operation === "CONNECT" ? null : options,
    },
  };
}

function plainKind({ group, version, kind }: GroupVersionKind): GroupVersionKind { return { group, version, kind }; }

/** Throws an Error that says what is wrong with an answer. */
export function checkResponse(answer: unknown, { uid, mutates }: { readonly uid: string; readonly mutates: boolean }): AdmissionResponse {
  const review = answer as AdmissionReview;
  const { response } = review;
  if (!isMap(response)) throw new Error("webhook response was absent");
  const { uid: told = "", patch = "", patchType } = response as AdmissionResponse;
  if (told !== uid) throw new Error(`expected response.uid=${JSON.stringify(uid)}, got ${JSON.stringify(told)}`);
  const given = gvkOf({ apiVersion: review.apiVersion ?? "", kind: review.kind ?? "" });
  if (formatGvk(given) !== formatGvk(REVIEW)) throw new Error(`expected webhook response of ${formatGvk(REVIEW)}, got ${formatGvk(given)}`);
  if (!mutates) {
    if (patch) throw new Error("validating webhook may not return response.patch");
    if (patchType) throw new Error("validating webhook may not return response.patchType");
    return response as AdmissionResponse;
  }
  if (patch && !patchType) throw new Error("webhook returned response.patch but not response.patchType");
  if (!patch && patchType) throw new Error("webhook returned response.patchType but not response.patch");
  if (patchType && patchType !== PATCH_TYPE) throw new Error(`webhook returned invalid response.patchType of ${JSON.stringify(patchType)}`);
  return response as AdmissionResponse;
}

/** A webhook's no, as the client is told. */
export class Rejection extends StatusError {}

export function rejection(webhook: string, result: AdmissionResponse["status"]): Rejection {
  const { message, reason, code = 0, details, metadata } = (result ?? {}) as Partial<Status>;
  const denied = `admission webhook ${JSON.stringify(webhook)} denied the request`;
  const told = message || reason;
  return new Rejection({
    kind: "Status", apiVersion: "v1", metadata: metadata ?? {}, status: "Failure", message: told ? `${denied}: ${told}` : `${denied} without explanation`,
    ...(reason ? { reason } : {}), ...(details ? { details } : {}), code: Math.max(code, 400),
  });
}
