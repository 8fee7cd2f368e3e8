/**
 * The AdmissionReview that is sent, and what may come back.
 *
 * Source: kubernetes v1.36 apiserver/pkg/admission/plugin/webhook/{request/admissionreview.go,errors/statuserror.go}
 */
import type { AdmissionResponse, AdmissionReview } from "../../api/gen/admission.v1.ts";
import { typeMetaOf } from "../../api/codec/body.ts";
import { jsonNodeOf, type JsonObject } from "../../api/codec/json-document.ts";
import type { GroupVersionKind } from "../../api/meta/gvk.ts";
import { formatGvk, gvkOf } from "../../api/meta/gvk.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { type Status, StatusError } from "../../api/meta/status-error.ts";
import { canonical } from "../../api/schema/canonical.ts";
import { diagnose } from "../../api/schema/diagnose.ts";
import { builtInFacts } from "../../api/schema/facts.ts";
import type { AdmissionRequest } from "../plugin.ts";
import type { Invocation } from "./match.ts";
import { REVIEW_VERSIONS, refuseOtherType, type ReviewVersion } from "./review-type.ts";

const GROUP = "admission.k8s.io";
const KIND = "AdmissionReview";
/** The first of those a webhook takes that we know. */
export function reviewVersionOf(accepted: readonly string[] = []): ReviewVersion | undefined { return accepted.find((one): one is ReviewVersion => REVIEW_VERSIONS.includes(one as ReviewVersion)); }

export interface Shown { readonly object: Readonly<ApiObject> | undefined; readonly oldObject: Readonly<ApiObject> | undefined }

interface Asked {
  readonly uid: string;
  readonly version?: ReviewVersion;
  readonly requestKind: GroupVersionKind;
  readonly shown: Shown;
}

/** `requestKind`: of what was sent, whatever the webhook is shown. */
export function reviewOf(request: AdmissionRequest, { resource, kind }: Pick<Invocation, "resource" | "kind">, { uid, version: reviewVersion = "v1", requestKind, shown: { object, oldObject } }: Asked): AdmissionReview {
  const { group, version, subresource, name, namespace, operation, user, dryRun, options } = request;
  return {
    kind: KIND, apiVersion: `${GROUP}/${reviewVersion}`,
    request: {
      uid, kind: plainKind(kind), resource: { group: resource.group, version: resource.version, resource: resource.resource },
      ...(subresource && { subResource: subresource }),
      requestKind: plainKind(requestKind), requestResource: { group, version, resource: request.resource },
      ...(subresource && { requestSubResource: subresource }), ...(name && { name }), ...(namespace && { namespace }),
      operation,
      userInfo: {
        ...(user.name && { username: user.name }), ...(user.uid && { uid: user.uid }), ...(user.groups.length > 0 && { groups: [...user.groups] }),
        ...(user.extra && Object.keys(user.extra).length > 0 && { extra: Object.fromEntries(Object.entries(user.extra).map(([key, values]) => [key, [...values]])) }),
      },
      object: object ?? null, oldObject: oldObject ?? null, dryRun, options: operation === "CONNECT" ? null : options,
    },
  };
}

function plainKind({ group, version, kind }: GroupVersionKind): GroupVersionKind { return { group, version, kind }; }

/** What was sent back, as it is typed. Throws an Error that says why it is no review. */
export function decodedReview(answer: unknown, version: ReviewVersion): AdmissionReview {
  const { apiVersion, kind } = typeMetaOf(answer as JsonObject);
  refuseOtherType({ apiVersion, kind }, { group: GROUP, version, kind: KIND });
  const type = builtInFacts.typeOf({ group: GROUP, version: "v1", kind: KIND })!;
  const { object, clean } = canonical(type, answer as JsonObject);
  const { error } = clean ? {} : diagnose(type, jsonNodeOf(answer as JsonObject));
  if (error !== undefined) throw new Error(error);
  return { ...object, apiVersion, kind } as AdmissionReview;
}

/** Throws an Error that says what is wrong with an answer. Of those of v1beta1 nothing else is asked. */
export function checkResponse({ apiVersion, kind, response }: Readonly<AdmissionReview>, { uid, version, mutates }: { readonly uid: string; readonly version: ReviewVersion; readonly mutates: boolean }): AdmissionResponse {
  if (!response) throw new Error("webhook response was absent");
  if (version === "v1beta1") return mutates && response.patch ? { ...response, patchType: PATCH_TYPE } : omitted(response);
  const { uid: told = "", patch = "", patchType } = response;
  if (told !== uid) throw new Error(`expected response.uid=${JSON.stringify(uid)}, got ${JSON.stringify(told)}`);
  const given = formatGvk(gvkOf({ apiVersion: apiVersion ?? "", kind: kind ?? "" }));
  const expected = formatGvk({ group: GROUP, version, kind: KIND });
  if (given !== expected) throw new Error(`expected webhook response of ${expected}, got ${given}`);
  if (!mutates) {
    if (patch) throw new Error("validating webhook may not return response.patch");
    if (patchType !== undefined) throw new Error("validating webhook may not return response.patchType");
    return response;
  }
  if (patch && patchType === undefined) throw new Error("webhook returned response.patch but not response.patchType");
  if (!patch && patchType !== undefined) throw new Error("webhook returned response.patchType but not response.patch");
  if (patchType === "") throw new Error('webhook returned invalid response.patchType of ""');
  return response;
}

function omitted({ patch: _, patchType: __, ...response }: AdmissionResponse): AdmissionResponse { return response; }

export const PATCH_TYPE = "JSONPatch";

/** A webhook's no, as the client is told: whatever it says of itself, it is no success. */
export class Rejection extends StatusError {}

export function rejection(webhook: string, result: AdmissionResponse["status"]): Rejection {
  const { message, reason, code = 0, details, metadata, status } = (result ?? {}) as Partial<Status>; // any word may stand for its status
  const denied = `admission webhook ${JSON.stringify(webhook)} denied the request`;
  const told = message || reason;
  return new Rejection({
    kind: "Status", apiVersion: "v1", metadata: metadata ?? {}, status: !status || status === "Success" ? "Failure" : status, message: told ? `${denied}: ${told}` : `${denied} without explanation`,
    ...(reason ? { reason } : {}), ...(details ? { details } : {}), code: Math.max(code, 400),
  });
}
