/**
 * What objects of each resource take of a quota. Pods, Services, PersistentVolumeClaims and ResourceClaims are measured, all others counted (count/<resource>.<group>).
 *
 * Source: kubernetes v1.36 pkg/quota/v1/evaluator/core, apiserver/pkg/quota/v1/generic/evaluator.go, pkg/quota/v1/install/registry.go
 */
import type { PersistentVolumeClaim, Pod, ResourceQuota, ScopedResourceSelectorRequirement, Service } from "../gen/core.v1.ts";
import type { DeviceSubRequest, ResourceClaim } from "../gen/resource.v1.ts";
import { formatGroupResource, type GroupResource } from "../meta/gvk.ts";
import type { ApiObject } from "../meta/object-meta.ts";
import { compareQuantity, parseQuantity, quantityOf } from "../meta/quantity.ts";
import { add, type Amounts } from "./amounts.ts";
import { isPodInScope, isPodResource, isSelected, isTerminating, podProblem, podUsage } from "./pod-usage.ts";

export interface Evaluator {
  /** Whether a quota's name is one of its. */
  covers(name: string): boolean;
  usage(object: Readonly<ApiObject>, nowMs: number): Amounts;
  isInScope(object: Readonly<ApiObject>, selector: Readonly<ScopedResourceSelectorRequirement>): boolean;
  /** What decides in which scopes it is, as far as that can change while it lives. */
  scopeFacts(object: Readonly<ApiObject>): readonly unknown[];
  /** What the object has to say when these are limited, and does not; undefined: nothing. */
  problem(object: Readonly<ApiObject>, limited: readonly string[]): string | undefined;
  /** Whether such a write is to be looked at. */
  handles(write: { readonly operation: string; readonly subresource: string; readonly object: Readonly<ApiObject> | undefined; readonly old: Readonly<ApiObject> | undefined }): boolean;
}

/** "resource.group" of what no quota counts. */
const IGNORED: ReadonlySet<string> = new Set([
  "bindings", "componentstatuses", "events", "events.events.k8s.io", "tokenreviews.authentication.k8s.io", "selfsubjectreviews.authentication.k8s.io",
  "subjectaccessreviews.authorization.k8s.io", "selfsubjectaccessreviews.authorization.k8s.io", "localsubjectaccessreviews.authorization.k8s.io", "selfsubjectrulesreviews.authorization.k8s.io",
]);
/** Names from before there was count/…: of everything that has one of the same name. */
const ALIASED: ReadonlySet<string> = new Set(["configmaps", "resourcequotas", "replicationcontrollers", "secrets"]);
const ONE = parseQuantity("1");

/** Undefined for what quotas do not count. */
export function evaluatorOf(resource: GroupResource): Evaluator | undefined {
  const name = formatGroupResource(resource);
  if (IGNORED.has(name)) return undefined;
  switch (name) {
    case "pods": return PODS;
    case "services": return SERVICES;
    case "persistentvolumeclaims": return CLAIMS;
    case "resourceclaims.resource.k8s.io": return RESOURCE_CLAIMS;
    default: return counting(name);
  }
}

/** Resources that a quota's name may be about. Of "count/x.y", x in group y; undefined for none. */
export function resourcesBehind(quotaName: string): GroupResource | undefined {
  if (quotaName.startsWith("count/")) {
    const full = quotaName.slice("count/".length);
    const dot = full.indexOf(".");
    return dot < 0 ? { group: "", resource: full } : { group: full.slice(dot + 1), resource: full.slice(0, dot) };
  }
  if (ALIASED.has(quotaName)) return { group: "", resource: quotaName };
  if (isService(quotaName)) return { group: "", resource: "services" };
  if (isClaim(quotaName)) return { group: "", resource: "persistentvolumeclaims" };
  if (isResourceClaim(quotaName)) return { group: "resource.k8s.io", resource: "resourceclaims" };
  return isPodResource(quotaName) ? { group: "", resource: "pods" } : undefined;
}

/** Of spec.scopes and spec.scopeSelector: all must hold. */
export function scopesOf({ spec }: Readonly<ResourceQuota>): readonly ScopedResourceSelectorRequirement[] {
  return [...(spec?.scopes ?? []).map((scopeName): ScopedResourceSelectorRequirement => ({ scopeName, operator: "Exists" })), ...(spec?.scopeSelector?.matchExpressions ?? [])];
}

function counting(name: string): Evaluator {
  const names = [`count/${name}`, ...(ALIASED.has(name) ? [name] : [])];
  return {
    covers: (one) => names.includes(one), usage: () => new Map(names.map((one) => [one, ONE])), isInScope: () => false, scopeFacts: () => [], problem: () => undefined,
    handles: ({ operation, subresource }) => operation === "CREATE" && subresource === "",
  };
}

const PODS: Evaluator = {
  covers: isPodResource,
  usage: (pod, nowMs) => podUsage(pod as Pod, nowMs),
  isInScope: (pod, selector) => isPodInScope(pod as Pod, selector),
  scopeFacts: (pod) => (["Terminating", "BestEffort"] as const).map((scopeName) => isPodInScope(pod as Pod, { scopeName, operator: "Exists" })),
  problem: (pod, limited) => podProblem(pod as Pod, limited),
  handles({ operation, subresource, object, old }) {
    if (subresource === "resize") return operation === "UPDATE";
    if (subresource !== "") return false;
    return operation === "CREATE" || (operation === "UPDATE" && object !== undefined && old !== undefined && isTerminating(object as Pod) !== isTerminating(old as Pod));
  },
};

function isService(name: string): boolean { return name === "count/services" || name === "services" || name === "services.nodeports" || name === "services.loadbalancers"; }

const SERVICES: Evaluator = {
  covers: isService,
  usage(object) {
    const { type, ports = [], allocateLoadBalancerNodePorts } = (object as Service).spec ?? {};
    const allocated = allocateLoadBalancerNodePorts === false && type === "LoadBalancer" ? ports.filter(({ nodePort }) => nodePort).length : ports.length;
    return new Map([
      ["count/services", ONE], ["services", ONE],
      ["services.nodeports", quantityOf(type === "NodePort" || type === "LoadBalancer" ? allocated : 0)], ["services.loadbalancers", quantityOf(type === "LoadBalancer" ? 1 : 0)],
    ]);
  },
  isInScope: () => false, scopeFacts: () => [], problem: () => undefined,
  handles: ({ operation, subresource }) => subresource === "" && (operation === "CREATE" || operation === "UPDATE"),
};

const OF_CLASS = ".storageclass.storage.k8s.io/";

function isClaim(name: string): boolean {
  return name === "count/persistentvolumeclaims" || ["persistentvolumeclaims", "requests.storage"].some((one) => name === one || name.endsWith(`${OF_CLASS}${one}`));
}

const CLAIMS: Evaluator = {
  covers: isClaim,
  usage(object) {
    const { spec, status, metadata } = object as PersistentVolumeClaim;
    const className = metadata.annotations?.["volume.beta.kubernetes.io/storage-class"] ?? spec?.storageClassName ?? "";
    const usage = new Map([["count/persistentvolumeclaims", ONE], ["persistentvolumeclaims", ONE]]);
    const sizes = [spec?.resources?.requests?.["storage"], spec?.resources?.requests?.["storage"] === undefined ? undefined : status?.allocatedResources?.["storage"]];
    const size = sizes.flatMap((text) => (text === undefined ? [] : [parseQuantity(String(text)).roundUp(0)])).toSorted((a, b) => compareQuantity(b, a))[0];
    if (size) usage.set("requests.storage", size);
    if (className !== "") {
      usage.set(`${className}${OF_CLASS}persistentvolumeclaims`, ONE);
      if (size) usage.set(`${className}${OF_CLASS}requests.storage`, size);
    }
    return usage;
  },
  isInScope: (object, { scopeName, operator, values = [] }) => scopeName === "VolumeAttributesClass" && isSelected(attributesClasses(object as PersistentVolumeClaim), operator, values),
  scopeFacts: (object) => attributesClasses(object as PersistentVolumeClaim).toSorted(),
  problem: () => undefined,
  handles({ operation, subresource, object, old }) {
    if (subresource === "") return operation === "CREATE" || operation === "UPDATE";
    return subresource === "status" && operation === "UPDATE" && object !== undefined && old !== undefined && claimMoved(object as PersistentVolumeClaim, old as PersistentVolumeClaim);
  },
};

function attributesClasses({ spec, status }: Readonly<PersistentVolumeClaim>): string[] {
  return [...new Set([spec?.volumeAttributesClassName, status?.currentVolumeAttributesClassName, status?.modifyVolumeStatus?.targetVolumeAttributesClassName].flatMap((name) => name || []))];
}

function claimMoved(next: Readonly<PersistentVolumeClaim>, old: Readonly<PersistentVolumeClaim>): boolean {
  return next.status?.allocatedResources?.["storage"] !== old.status?.allocatedResources?.["storage"] || attributesClasses(next).toSorted().join() !== attributesClasses(old).toSorted().join();
}

const OF_DEVICE_CLASS = ".deviceclass.resource.k8s.io/devices";
/** What "all devices" is counted as. Source: resource.k8s.io/v1 AllocationResultsMaxSize */
const DEVICES_MAX = 32;

function isResourceClaim(name: string): boolean { return name === "count/resourceclaims.resource.k8s.io" || name.endsWith(OF_DEVICE_CLASS); }

const RESOURCE_CLAIMS: Evaluator = {
  covers: isResourceClaim,
  usage(object) {
    let usage: Amounts = new Map([["count/resourceclaims.resource.k8s.io", ONE]]);
    for (const { exactly, firstAvailable = [] } of (object as ResourceClaim).spec?.devices?.requests ?? []) {
      const most = new Map<string, number>(); // of alternatives, each class at its most
      for (const one of firstAvailable.length > 0 ? firstAvailable : exactly ? [exactly] : []) most.set(one.deviceClassName, Math.max(most.get(one.deviceClassName) ?? 0, devicesOf(one)));
      usage = add(usage, new Map([...most].map(([name, count]) => [`${name}${OF_DEVICE_CLASS}`, quantityOf(count)])));
    }
    return usage;
  },
  isInScope: () => false, scopeFacts: () => [], problem: () => undefined,
  handles: ({ operation, subresource }) => subresource === "" && (operation === "CREATE" || operation === "UPDATE"),
};

function devicesOf({ allocationMode, count }: Pick<DeviceSubRequest, "allocationMode" | "count">): number {
  return allocationMode === "All" ? DEVICES_MAX : allocationMode === "ExactCount" ? count ?? 0 : 0;
}
