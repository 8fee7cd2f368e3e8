/** What the names in expressions of admission stand for. Source: kubernetes v1.36 apiserver/pkg/admission/plugin/cel/{activation,condition}.go */
import type { AdmissionReview } from "../../api/gen/admission.v1.ts";
import type { Namespace } from "../../api/gen/core.v1.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import type { Bindings } from "../../cel/admission/activation.ts";
import { authorizerValue, requestResourceValue } from "../../cel/library/authz.ts";
import { fromJson } from "../../cel/value/json.ts";
import type { AdmissionRequest } from "../plugin.ts";
import type { Decisions } from "./decisions.ts";

export interface Speaking {
  /** With the objects in the version they are spoken of. */
  readonly review: NonNullable<AdmissionReview["request"]>;
  readonly request: AdmissionRequest;
  /** Null: of the whole cluster, or not told. */
  readonly namespace: Readonly<Namespace> | null;
  /** Null: there is no parameter. */
  readonly params: Readonly<ApiObject> | null;
  readonly decisions: Decisions;
}

export function bindingsOf({ review, request, namespace, params, decisions: { decide } }: Speaking): Bindings {
  const { object, oldObject, ...rest } = review;
  const { user, group, version, resource, subresource, namespace: inNamespace, name } = request;
  return {
    object: fromJson(object ?? null), oldObject: fromJson(oldObject ?? null), request: fromJson(rest), namespaceObject: fromJson(namespace && namespaceObject(namespace)), params: fromJson(params),
    authorizer: authorizerValue(user, decide),
    "authorizer.requestResource": requestResourceValue(user, decide, { isResource: true, verb: "", group, version, resource, subresource, namespace: inNamespace, name, path: "" }),
  };
}

/** What conditions are told: nothing of the namespace, and the resource as it was requested. Source: kubernetes v1.36 apiserver/pkg/admission/plugin/webhook/matchconditions/matcher.go */
export function conditionBindingsOf(speaking: Omit<Speaking, "namespace">): Bindings {
  const { review } = speaking;
  return bindingsOf({ ...speaking, namespace: null, review: { ...review, resource: review.requestResource ?? review.resource } });
}

const META = ["name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "finalizers"] as const;

/** Without who owns which of its fields. */
function namespaceObject({ metadata, spec, status }: Readonly<Namespace>): object {
  return { metadata: Object.fromEntries(META.flatMap((name) => (metadata[name] === undefined ? [] : [[name, metadata[name]]]))), spec: spec ?? {}, status: status ?? {} };
}
