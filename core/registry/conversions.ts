/**
 * Changes of version of the built-in kinds. Of those that are served in more than one, few differ in shape; for the others the name of the version is all there is.
 *
 *   autoscaling/v1 ↔ autoscaling/v2 HorizontalPodAutoscaler        events.k8s.io/v1 ↔ v1 Event
 *   resource.k8s.io/v1beta1 ↔ v1 ResourceClaim, ResourceClaimTemplate, ResourceSlice
 */
import type { MutatingAdmissionPolicyBinding } from "../api/gen/admissionregistration.v1.ts";
import type { HorizontalPodAutoscaler as AutoscalerV1 } from "../api/gen/autoscaling.v1.ts";
import type { HorizontalPodAutoscaler } from "../api/gen/autoscaling.v2.ts";
import type { Event as CoreEvent } from "../api/gen/core.v1.ts";
import type { Event } from "../api/gen/events.v1.ts";
import type { ResourceClaim, ResourceClaimTemplate, ResourceSlice } from "../api/gen/resource.v1.ts";
import type { ResourceClaim as ClaimBeta, ResourceClaimTemplate as TemplateBeta, ResourceSlice as SliceBeta } from "../api/gen/resource.v1beta1.ts";
import { parseApiVersion } from "../api/meta/gvk.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import { canonical } from "../api/schema/canonical.ts";
import { builtInFacts } from "../api/schema/facts.ts";
import { autoscalerToV1, autoscalerToV2 } from "./autoscaling/convert.ts";
import { eventFromCore, eventToCore } from "./events/convert.ts";
import type { Convert } from "./registry.ts";
import { claimFromBeta, claimToBeta, sliceFromBeta, sliceToBeta, templateFromBeta, templateToBeta } from "./resource/convert.ts";

type Conversion = (object: Readonly<ApiObject>) => ApiObject;

const CONVERSIONS: Readonly<Record<string, Conversion>> = {
  "HorizontalPodAutoscaler autoscaling/v1 autoscaling/v2": (object) => autoscalerToV2(object as Readonly<AutoscalerV1>),
  "HorizontalPodAutoscaler autoscaling/v2 autoscaling/v1": (object) => autoscalerToV1(object as Readonly<HorizontalPodAutoscaler>),
  "Event events.k8s.io/v1 v1": (object) => eventToCore(object as Readonly<Event>),
  "Event v1 events.k8s.io/v1": (object) => eventFromCore(object as Readonly<CoreEvent>),
  "MutatingAdmissionPolicyBinding admissionregistration.k8s.io/v1alpha1 admissionregistration.k8s.io/v1": (object) => bindingFromAlpha(object as Readonly<MutatingAdmissionPolicyBinding>),
  "ResourceClaim resource.k8s.io/v1beta1 resource.k8s.io/v1": (object) => claimFromBeta(object as Readonly<ClaimBeta>),
  "ResourceClaim resource.k8s.io/v1 resource.k8s.io/v1beta1": (object) => claimToBeta(object as Readonly<ResourceClaim>),
  "ResourceClaimTemplate resource.k8s.io/v1beta1 resource.k8s.io/v1": (object) => templateFromBeta(object as Readonly<TemplateBeta>),
  "ResourceClaimTemplate resource.k8s.io/v1 resource.k8s.io/v1beta1": (object) => templateToBeta(object as Readonly<ResourceClaimTemplate>),
  "ResourceSlice resource.k8s.io/v1beta1 resource.k8s.io/v1": (object) => sliceFromBeta(object as Readonly<SliceBeta>),
  "ResourceSlice resource.k8s.io/v1 resource.k8s.io/v1beta1": (object) => sliceToBeta(object as Readonly<ResourceSlice>),
};

/** Whose parameters are not found is denied, there where nothing else is said; later versions want it said. */
function bindingFromAlpha(binding: Readonly<MutatingAdmissionPolicyBinding>): MutatingAdmissionPolicyBinding {
  const { spec } = binding;
  const paramRef = spec.paramRef && { ...spec.paramRef, parameterNotFoundAction: spec.paramRef.parameterNotFoundAction ?? "Deny" };
  return { ...binding, apiVersion: "admissionregistration.k8s.io/v1", spec: { ...spec, ...(paramRef ? { paramRef } : {}) } };
}

export const convert: Convert = (object, apiVersion) => {
  if (object.apiVersion === apiVersion) return object;
  const conversion = CONVERSIONS[`${object.kind} ${object.apiVersion} ${apiVersion}`];
  if (!conversion) return { ...object, apiVersion };
  const converted = conversion(object);
  const type = builtInFacts.typeOf({ ...parseApiVersion(apiVersion), kind: object.kind });
  return type ? (canonical(type, converted).object as unknown as ApiObject) : converted;
};
