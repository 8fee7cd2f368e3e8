/**
 * What objects of each resource take of a quota. Pods, Services, PersistentVolumeClaims and ResourceClaims are measured, all others counted (count/<resource>.<group>).
 *
 * Source: kubernetes v1.36 pkg/quota/v1/evaluator/core, apiserver/pkg/quota/v1/generic/evaluator.go, pkg/quota/v1/install/registry.go
 */
import type { PersistentVolumeClaim, Pod, ResourceQuota, ScopedResourceSelectorRequirement, Service } from "../gen/core.v1.ts";
import type { ResourceClaim } from "../gen/resource.v1.ts";
import { formatGroupResource, type GroupResource } from "../meta/gvk.ts";
import type { ApiObject } from "../meta/object-meta.ts";
import { compareQuantity, parseQuantity, quantityOf } from "../meta/quantity.ts";
import type { Amounts } from "./amounts.ts";
import { claimUsage, isClaimResource, mayBeClaimResource, type Surroundings } from "./claim-usage.ts";
import { isPodInScope, isPodResource, isSelected, isTerminating, podProblem, podUsage } from "./pod-usage.ts";

export interface Evaluator {
  /** Whether a quota's name is one of its. */
  covers(name: string): boolean;
  /** All that are, where there are so few. */
  readonly names?: readonly string[] | undefined;
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

/** Nothing else is known. */
const ALONE: Surroundings = { classes: { list: () => [] }, pods: { get: () => undefined }, claims: { inNamespace: () => [] } };

/** Undefined for what quotas do not count. */
export function evaluatorOf(resource: GroupResource, around: Surroundings = ALONE): Evaluator | undefined {
  const name = formatGroupResource(resource);
  if (IGNORED.has(name)) return undefined;
  switch (name) {
    case "pods": return PODS;
    case "services": return SERVICES;
    case "persistentvolumeclaims": return CLAIMS;
    case "resourceclaims.resource.k8s.io": return resourceClaims(around);
    default: return counting(name);
  }
}

/** Resources that a quota's name may be about. Of "count/x.y", x in group y. */
export function resourcesBehind(quotaName: string): readonly GroupResource[] {
  if (quotaName.startsWith("count/")) {
    const full = quotaName.slice("count/".length);
    const dot = full.indexOf(".");
    return [dot < 0 ? { group: "", resource: full } : { group: full.slice(dot + 1), resource: full.slice(0, dot) }];
  }
  if (ALIASED.has(quotaName)) return [{ group: "", resource: quotaName }];
  if (isService(quotaName)) return [{ group: "", resource: "services" }];
  if (isClaim(quotaName)) return [{ group: "", resource: "persistentvolumeclaims" }];
  return [...(isPodResource(quotaName) ? [{ group: "", resource: "pods" }] : []), ...(mayBeClaimResource(quotaName) ? [{ group: "resource.k8s.io", resource: "resourceclaims" }] : [])];
}

/** Of spec.scopes and spec.scopeSelector: all must hold. */
export function scopesOf({ spec }: Readonly<ResourceQuota>): readonly ScopedResourceSelectorRequirement[] {
  return [...(spec?.scopes ?? []).map((scopeName): ScopedResourceSelectorRequirement => ({ scopeName, operator: "Exists" })), ...(spec?.scopeSelector?.matchExpressions ?? [])];
}

function counting(name: string): Evaluator {
  const names = [`count/${name}`, ...(ALIASED.has(name) ? [name] : [])];
  return {
    covers: (one) => names.includes(one), names, usage: () => new Map(names.map((one) => [one, ONE])), isInScope: () => false, scopeFacts: () => [], problem: () => undefined,
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

function resourceClaims(around: Surroundings): Evaluator {
  return {
    covers: (name) => isClaimResource(name, around),
    usage: (claim, nowMs) => claimUsage(claim as ResourceClaim, nowMs, around),
    isInScope: () => false, scopeFacts: () => [], problem: () => undefined,
    handles: ({ operation, subresource }) => subresource === "" && (operation === "CREATE" || operation === "UPDATE"),
  };
}
