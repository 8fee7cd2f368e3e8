/**
 * resource.k8s.io between v1beta1 and v1. v1beta2 has v1's shapes.
 *
 *   v1beta1 request.deviceClassName, …           v1 request.exactly.deviceClassName, …
 *   v1beta1 device.basic.attributes, …           v1 device.attributes, …
 *
 * Source: kubernetes v1.36 pkg/apis/resource/v1beta1/conversion.go
 */
import type { Device, DeviceRequest, ResourceClaim, ResourceClaimSpec, ResourceClaimTemplate, ResourceSlice } from "../../api/gen/resource.v1.ts";
import type {
  Device as DeviceBeta, DeviceRequest as DeviceRequestBeta, ResourceClaim as ClaimBeta, ResourceClaimSpec as ClaimSpecBeta, ResourceClaimTemplate as TemplateBeta,
  ResourceSlice as SliceBeta,
} from "../../api/gen/resource.v1beta1.ts";

const V1 = "resource.k8s.io/v1";
const BETA = "resource.k8s.io/v1beta1";

export function claimFromBeta(claim: Readonly<ClaimBeta>): ResourceClaim { return { ...claim, apiVersion: V1, spec: specFromBeta(claim.spec) }; }
export function claimToBeta(claim: Readonly<ResourceClaim>): ClaimBeta { return { ...claim, apiVersion: BETA, spec: specToBeta(claim.spec) }; }

export function templateFromBeta(template: Readonly<TemplateBeta>): ResourceClaimTemplate {
  return { ...template, apiVersion: V1, spec: { ...template.spec, spec: specFromBeta(template.spec.spec) } };
}
export function templateToBeta(template: Readonly<ResourceClaimTemplate>): TemplateBeta {
  return { ...template, apiVersion: BETA, spec: { ...template.spec, spec: specToBeta(template.spec.spec) } };
}

/** No place is an empty one there. */
export function sliceFromBeta(slice: Readonly<SliceBeta>): ResourceSlice {
  const { devices, nodeName, allNodes, ...rest } = slice.spec;
  return {
    ...slice, apiVersion: V1,
    spec: { ...rest, ...(nodeName ? { nodeName } : {}), ...(allNodes ? { allNodes } : {}), ...(devices ? { devices: devices.map(deviceFromBeta) } : {}) },
  };
}
export function sliceToBeta(slice: Readonly<ResourceSlice>): SliceBeta {
  const { devices, ...rest } = slice.spec;
  return { ...slice, apiVersion: BETA, spec: { ...rest, ...(devices ? { devices: devices.map(deviceToBeta) } : {}) } };
}

function specFromBeta(spec: Readonly<ClaimSpecBeta>): ResourceClaimSpec { return withRequests(spec, requestFromBeta); }
function specToBeta(spec: Readonly<ResourceClaimSpec>): ClaimSpecBeta { return withRequests(spec, requestToBeta); }

interface Requesting<R> { readonly devices?: { readonly requests?: R[] | undefined } | undefined }

function withRequests<From, To, S extends Requesting<From>>(spec: S, converted: (request: From) => To): S & Requesting<To> {
  const requests = spec?.devices?.requests;
  return (requests ? { ...spec, devices: { ...spec.devices, requests: requests.map(converted) } } : spec) as S & Requesting<To>;
}

/** Whoever says anything of one device wants exactly that: whether it makes sense is validation's to say. */
function requestFromBeta({ name, firstAvailable, ...own }: DeviceRequestBeta): DeviceRequest {
  const isSaid = own.deviceClassName || own.selectors || own.allocationMode || own.count || own.adminAccess !== undefined || own.tolerations || own.capacity;
  return { name, ...(isSaid ? { exactly: { ...own, deviceClassName: own.deviceClassName ?? "" } } : {}), ...(firstAvailable ? { firstAvailable } : {}) };
}
function requestToBeta({ exactly, ...rest }: DeviceRequest): DeviceRequestBeta { return { ...rest, ...exactly }; }

function deviceFromBeta({ name, basic }: DeviceBeta): Device { return { ...basic, name }; }
function deviceToBeta({ name, ...basic }: Device): DeviceBeta { return { name, basic }; }
