/**
 * What is in use does not go while it is: admission puts a finalizer on claims, volumes, attribute classes and groups of pods, and this takes it off once nobody uses them.
 *
 *   PersistentVolumeClaim   no pod on a node names it, be it that it has ended: while it is there, so is what it wrote
 *   PersistentVolume        it is not bound
 *   VolumeAttributesClass   no claim and no volume names it
 *   PodGroup                no pod that has not ended is of it; where groups are switched on
 *
 * Source: kubernetes v1.36 pkg/controller/volume/{pvcprotection,pvprotection,vacprotection}, pkg/controller/scheduling/podgroupprotection
 */
import type { PersistentVolume, PersistentVolumeClaim, Pod } from "../../api/gen/core.v1.ts";
import type { VolumeAttributesClass } from "../../api/gen/storage.v1.ts";
import { ifFound } from "../../api/meta/if-found.ts";
import { type ApiObject, hasFinalizer, isControlledBy, isDeleting, keyOf, namespaceOf, type ObjectKey, objectKey } from "../../api/meta/object-meta.ts";
import type { ResourceClient } from "../../client/client.ts";
import type { Index, Informer } from "../../client/informer.ts";
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, POD_GROUPS, PODS, VOLUME_ATTRIBUTES_CLASSES } from "../../client/resources.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { type Controller, itself, mapped, type Watch } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { claimsOf, isTerminal } from "../pod-state.ts";

type Deps = Pick<ControllerDeps, "client" | "informers">;
type Claim = Readonly<PersistentVolumeClaim>;
type ClaimDeps = Pick<ControllerDeps, "client" | "informers" | "clock" | "gates">;

const CLAIM_FINALIZER = "kubernetes.io/pvc-protection";
/** A claim's condition. */
const UNUSED = "Unused";
const VOLUME_FINALIZER = "kubernetes.io/pv-protection";
const CLASS_FINALIZER = "kubernetes.io/vac-protection";
const GROUP_FINALIZER = "scheduling.k8s.io/podgroup-protection";

const PODS_BY_CLAIM: Index<Pod> = { name: "claim", valuesOf: (pod) => claimsOf(pod) };
const CLAIMS_BY_CLASS: Index<PersistentVolumeClaim> = {
  name: "volume attributes class",
  valuesOf: ({ spec, status }) => [spec.volumeAttributesClassName, status?.currentVolumeAttributesClassName, status?.modifyVolumeStatus?.targetVolumeAttributesClassName].flatMap((name) => name || []),
};
const VOLUMES_BY_CLASS: Index<PersistentVolume> = { name: "volume attributes class", valuesOf: ({ spec }) => (spec.volumeAttributesClassName ? [spec.volumeAttributesClassName] : []) };

const PODS_BY_GROUP: Index<Pod> = { name: "group, not ended", valuesOf: (pod) => (isTerminal(pod) ? [] : groupOf(pod)) };

/** The key of the group a pod says it is of. */
function groupOf({ metadata, spec: { schedulingGroup } }: Readonly<Pod>): ObjectKey[] { return schedulingGroup?.podGroupName === undefined ? [] : [objectKey(metadata.namespace ?? "", schedulingGroup.podGroupName)]; }
export function claimProtectionController({ client, informers, clock, gates }: ClaimDeps): Controller {
  const claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
  const pods = informers.of(PODS);
  const claimClient = client.resource(PERSISTENT_VOLUME_CLAIMS);
  const isAny = async (claim: Claim, matters: (pod: Readonly<Pod>, claim: Claim) => boolean, signal: AbortSignal): Promise<boolean> => {
    if (pods.by(PODS_BY_CLAIM, keyOf(claim)).some((pod) => matters(pod, claim))) return true;
    const { items } = await client.resource(PODS).list({ namespace: namespaceOf(claim) }, { signal }); // our copy may not have the pod yet that has come before the claim was to go
    return items.some((pod) => matters(pod, claim));
  };
  return protection(claims, claimClient, {
    name: "pvc_protection", finalizer: CLAIM_FINALIZER,
    inUse: (claim, signal) => isAny(claim, uses, signal),
    ...(gates?.has("PersistentVolumeClaimUnusedSinceTime") ? {
      async before(claim, signal) {
        const conditions = claim.status?.conditions ?? [], old = conditions.find(({ type }) => type === UNUSED);
        const status = (await isAny(claim, wants, signal)) ? "False" : "True";
        if (old?.status === status) return undefined;
        const next = {
          type: UNUSED, status, lastTransitionTime: timestamp(clock.nowMs()),
          ...(status === "True" ? { reason: "NoPodsUsingPVC", message: "No pods are currently referencing this PVC" } : { reason: "PodUsingPVC", message: "A pod is currently referencing this PVC" }),
        } as const;
        return await claimClient.updateStatus({ ...claim, status: { ...claim.status, conditions: old ? conditions.map((one) => (one === old ? next : one)) : [...conditions, next] } }, { signal });
      },
    } : {}),
    watches: [mapped(pods, ({ object, old }) => [...claimsOf(object), ...(old ? claimsOf(old) : [])])],
  });
}

/** For what is told of its use a pod counts that has not ended, be it that it has no node yet. */
function wants(pod: Readonly<Pod>, claim: Claim): boolean {
  if (isTerminal(pod)) return false;
  return (pod.spec.volumes ?? []).some(({ name, persistentVolumeClaim, ephemeral }) => persistentVolumeClaim?.claimName === claim.metadata.name || (ephemeral !== undefined && `${pod.metadata.name}-${name}` === claim.metadata.name && isControlledBy(claim, pod)));
}

/** One that was never placed will not be: its claim is going. A claim of its own it holds no longer than its kubelet holds it. */
function uses(pod: Readonly<Pod>, claim: Readonly<PersistentVolumeClaim>): boolean {
  if (!pod.spec.nodeName) return false;
  if (pod.spec.volumes?.some(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName === claim.metadata.name)) return true;
  return isControlledBy(claim, pod) && !(isDeleting(pod) && pod.metadata.deletionGracePeriodSeconds === 0);
}

export function volumeProtectionController({ client, informers }: Deps): Controller {
  return protection(informers.of(PERSISTENT_VOLUMES), client.resource(PERSISTENT_VOLUMES), {
    name: "pv_protection", finalizer: VOLUME_FINALIZER, watches: [],
    inUse: ({ status }) => status?.phase === "Bound",
  });
}

export function classProtectionController({ client, informers }: Deps): Controller {
  const claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
  const volumes = informers.of(PERSISTENT_VOLUMES);
  return protection<VolumeAttributesClass>(informers.of(VOLUME_ATTRIBUTES_CLASSES), client.resource(VOLUME_ATTRIBUTES_CLASSES), {
    name: "vac_protection", finalizer: CLASS_FINALIZER,
    inUse: ({ metadata: { name } }) => claims.by(CLAIMS_BY_CLASS, name).length > 0 || volumes.by(VOLUMES_BY_CLASS, name).length > 0,
    watches: [
      mapped(claims, ({ object, old }) => [object, ...(old ? [old] : [])].flatMap((claim) => [...CLAIMS_BY_CLASS.valuesOf(claim)]).map((name) => objectKey("", name))),
      mapped(volumes, ({ object, old }) => [object, ...(old ? [old] : [])].flatMap((volume) => [...VOLUMES_BY_CLASS.valuesOf(volume)]).map((name) => objectKey("", name))),
    ],
  });
}

/** One made without the finalizer has asked for none. */
export function podGroupProtectionController({ client, informers }: Deps): Controller {
  const pods = informers.of(PODS);
  return protection(informers.of(POD_GROUPS), client.resource(POD_GROUPS), {
    name: "podgroupprotection", finalizer: GROUP_FINALIZER, leavesBare: true,
    inUse: (group) => pods.by(PODS_BY_GROUP, keyOf(group)).length > 0,
    watches: [mapped(pods, ({ object, old }) => [...groupOf(object), ...(old ? groupOf(old) : [])])],
  });
}

interface Rule<T extends ApiObject> {
  readonly name: string;
  readonly finalizer: string;
  /** What is without the finalizer stays without it. */
  readonly leavesBare?: boolean;
  inUse(object: Readonly<T>, signal: AbortSignal): boolean | Promise<boolean>;
  /** Of one that is not to go: what is done first. Returns it as it is then, if it has changed. */
  before?(object: Readonly<T>, signal: AbortSignal): Promise<Readonly<T> | undefined>;
  readonly watches: readonly Watch[];
}

function protection<T extends ApiObject>(informer: Informer<T>, client: ResourceClient<T>, { name, finalizer, leavesBare = false, inUse, before, watches }: Rule<T>): Controller {
  return {
    name,
    workers: 1,
    watches: [itself(informer), ...watches],
    async reconcile(key, { signal }) {
      const known = informer.get(key);
      if (!known) return;
      const object = (isDeleting(known) ? undefined : await before?.(known, signal)) ?? known;
      if (isDeleting(object) && hasFinalizer(object, finalizer)) {
        if (await inUse(object, signal)) return; // looked at again when a user goes
        await write(object, (object.metadata.finalizers ?? []).filter((one) => one !== finalizer), signal);
      } else if (!leavesBare && !isDeleting(object) && !hasFinalizer(object, finalizer)) {
        await write(object, [...(object.metadata.finalizers ?? []), finalizer], signal); // from before there was protection
      }
    },
  };

  async function write(object: Readonly<T>, finalizers: string[], signal: AbortSignal): Promise<void> {
    await ifFound(client.update({ ...object, metadata: { ...object.metadata, finalizers } }, { signal }));
  }
}
