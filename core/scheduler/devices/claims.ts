/**
 * Claims, slices and classes as the scheduler sees them: as informers tell, and on top the allocations it has decided on and not yet heard back.
 *
 * A claim that is decided on is pending from the decision until the API has taken it: nobody else's pod may use it meanwhile, and its devices are taken. Pods of one group, thought through
 * together, may: they are bound together.
 */
import type { Pod } from "../../api/gen/core.v1.ts";
import type { AllocationResult, DeviceClass, ResourceClaim, ResourceSlice } from "../../api/gen/resource.v1.ts";
import { isControlledBy, keyOf, namespaceOf, type ObjectKey, objectKey } from "../../api/meta/object-meta.ts";
import { claimStatusesOf } from "../../api/meta/pod-references.ts";
import { type CompiledSelector, compileDeviceSelector, deviceEnvironment } from "../../cel/device-selector.ts";
import type { Informers } from "../../client/informer-factory.ts";
import { DEVICE_CLASSES, DEVICE_TAINT_RULES, RESOURCE_CLAIMS, RESOURCE_SLICES } from "../../client/resources.ts";
import { Assumed } from "../storage.ts";
import { Allocated } from "./allocated.ts";
import { classBehind } from "./extended-resources.ts";
import { withTaintsOf } from "./taint-rules.ts";

/** `gates`: those that are off by default and were switched on. */
export function deviceResources(gates: ReadonlySet<string> | undefined) {
  return [RESOURCE_CLAIMS, RESOURCE_SLICES, DEVICE_CLASSES, ...(gates?.has("DRADeviceTaintRules") ? [DEVICE_TAINT_RULES] : [])] as const;
}

/** Expressions kept compiled. There are few in a cluster: one or two a class, and those of templates. */
const SELECTORS_MAX = 256;

export interface Devices {
  readonly claims: Assumed<ResourceClaim>;
  claim(namespace: string, name: string): Readonly<ResourceClaim> | undefined;
  deviceClass(name: string): Readonly<DeviceClass> | undefined;
  /** The class behind an extended resource. */
  classBehind(resource: string): Readonly<DeviceClass> | undefined;
  /** The claims somebody owns. */
  ownedBy(uid: string): readonly Readonly<ResourceClaim>[];
  slices(): Iterable<Readonly<ResourceSlice>>;
  /** By uid of claim. */
  readonly pending: Map<string, AllocationResult>;
  /** Those of them, by uid of claim, that were decided on for the group that is thought through now. */
  readonly shared: Set<string>;
  /** What all allocations take, those under way included. */
  allocated(): Allocated;
  /** Throws the problem of an expression that is none. */
  selector(expression: string): CompiledSelector;
  /** Attributes of devices may be lists. */
  readonly listAttributes: boolean;
}

export function devicesFrom(informers: Informers, gates: ReadonlySet<string>): Devices {
  const rules = gates.has("DRADeviceTaintRules") ? informers.of(DEVICE_TAINT_RULES) : undefined;
  const informer = informers.of(RESOURCE_CLAIMS);
  const claims = new Assumed(informer);
  const pending = new Map<string, AllocationResult>();
  const listAttributes = gates.has("DRAListTypeAttributes");
  return {
    claims, pending, shared: new Set(),
    claim: (namespace, name) => claims.get(objectKey(namespace, name)),
    deviceClass: (name) => informers.of(DEVICE_CLASSES).get(objectKey("", name)),
    classBehind: (resource) => classBehind(resource, informers.of(DEVICE_CLASSES).list()),
    ownedBy: (uid) => informer.ownedBy(uid),
    slices: () => (rules ? withTaintsOf([...rules.list()], informers.of(RESOURCE_SLICES).list()) : informers.of(RESOURCE_SLICES).list()),
    allocated() {
      const allocated = new Allocated();
      const counted = new Set<string>();
      for (const known of informer.list()) {
        const allocation = claims.get(keyOf(known))?.status?.allocation;
        if (!allocation) continue;
        allocated.add(allocation);
        counted.add(known.metadata.uid);
      }
      for (const [uid, allocation] of pending) if (!counted.has(uid)) allocated.add(allocation);
      return allocated;
    },
    selector: selectorCache(listAttributes), listAttributes,
  };
}

function selectorCache(lists: boolean): (expression: string) => CompiledSelector {
  const known = new Map<string, ReturnType<typeof compileDeviceSelector>>();
  let environment: ReturnType<typeof deviceEnvironment> | undefined;
  return (expression) => {
    let compiled = known.get(expression);
    if (!compiled) {
      if (known.size >= SELECTORS_MAX) known.delete(known.keys().next().value!);
      known.set(expression, (compiled = compileDeviceSelector(expression, (environment ??= deviceEnvironment(lists)))));
    }
    if ("problem" in compiled) throw new Error(compiled.problem);
    return compiled;
  };
}

/** The claims a pod has. `refused`: why it cannot go anywhere yet. Source: dynamic-resource-allocation/resourceclaim/claim.go */
export function podClaimsOf(pod: Readonly<Pod>, devices: Pick<Devices, "claim">): readonly Readonly<ResourceClaim>[] | { readonly refused: string } {
  const found: Readonly<ResourceClaim>[] = [];
  const statuses = claimStatusesOf(pod);
  for (const { name, resourceClaimName, resourceClaimTemplateName } of pod.spec.resourceClaims ?? []) {
    const made = statuses.get(name);
    if (resourceClaimName === undefined && resourceClaimTemplateName === undefined) return { refused: `pod claim ${name}: ${NOT_SUPPORTED}` };
    if (resourceClaimName === undefined && !made) return { refused: `pod "${keyOf(pod)}": ResourceClaim not created yet` };
    const claimName = resourceClaimName ?? made?.resourceClaimName;
    if (claimName === undefined) continue; // whoever made the claims decided that none is needed
    const claim = devices.claim(namespaceOf(pod), claimName);
    if (!claim) return { refused: notFound(objectKey(namespaceOf(pod), claimName)) };
    if (claim.metadata.deletionTimestamp != null) return { refused: `resourceclaim "${claimName}" is being deleted` };
    if (resourceClaimName === undefined && !isControlledBy(claim, pod)) return { refused: `ResourceClaim ${keyOf(claim)} was not created for Pod ${keyOf(pod)} (Pod is not owner)` };
    found.push(claim);
  }
  return found;
}

/** Source: pkg/scheduler/util/assumecache NotFoundError */
export function notFound(key: ObjectKey): string { return `could not find ResourceClaim "${key}"`; }

const NOT_SUPPORTED = "none of the supported fields are set";

/** Pods that may use a claim at once. Source: resource/v1 ResourceClaimReservedForMaxSize */
const RESERVED_MAX = 256;

export function isReservedFor({ status }: Readonly<ResourceClaim>, { metadata: { uid } }: Readonly<Pod>): boolean {
  return (status?.reservedFor ?? []).some((one) => one.uid === uid);
}

export function canBeReserved({ status }: Readonly<ResourceClaim>): boolean {
  return (status?.reservedFor ?? []).length < RESERVED_MAX;
}
