/**
 * What is to be done about a claim, and about a volume. Neither trusts the other: each says what its own state calls for, in any order.
 *
 * Source: kubernetes v1.36 pkg/controller/volume/persistentvolume/pv_controller.go (syncClaim, syncVolume)
 */
import type { Node, PersistentVolume, PersistentVolumeClaim } from "../../api/gen/core.v1.ts";
import type { StorageClass } from "../../api/gen/storage.v1.ts";
import { provisionerNow } from "../../api/meta/in-tree-volumes.ts";
import { annotationsOf, hasFinalizer, isDeleting, namespaceOf, type ObjectKey, objectKey } from "../../api/meta/object-meta.ts";
import type { EventType } from "../../client/events.ts";
import { bestMatch, classOfClaim, isBoundTo, modesDiffer, saysClass, whyUnfit } from "./match.ts";

export const ANNOTATION = {
  bindCompleted: "pv.kubernetes.io/bind-completed",
  boundByController: "pv.kubernetes.io/bound-by-controller",
  provisionedBy: "pv.kubernetes.io/provisioned-by",
  selectedNode: "volume.kubernetes.io/selected-node",
  provisioner: "volume.kubernetes.io/storage-provisioner",
  betaProvisioner: "volume.beta.kubernetes.io/storage-provisioner",
  migratedTo: "pv.kubernetes.io/migrated-to",
  sizeBefore: "volume.alpha.kubernetes.io/pre-resize-capacity",
} as const;

type Volume = Readonly<PersistentVolume>;
type Claim = Readonly<PersistentVolumeClaim>;

export interface Said { readonly type: EventType; readonly reason: string; readonly message: string }

export type ClaimPlan =
  | { readonly type: "bind"; readonly volume: Volume }
  | { readonly type: "pending"; readonly event?: Said | undefined }
  /** Wrong, and nothing that a status could say. */
  | { readonly type: "wrong"; readonly event: Said; readonly message: string }
  | { readonly type: "lost"; readonly event: Said }
  | { readonly type: "set-class"; readonly name: string }
  | { readonly type: "select-node"; readonly name: string }
  | { readonly type: "provision"; readonly provisioner: string; readonly event: Said }
  | { readonly type: "tell"; readonly event: Said };

export interface ClaimFacts {
  /** The volume that spec.volumeName names. */
  readonly named: Volume | undefined;
  /** Those that name the claim, and those of its class that are free. */
  readonly volumes: () => Iterable<Volume>;
  /** The claim's; undefined: there is none of that name. */
  readonly storageClass: Readonly<StorageClass> | undefined;
  readonly defaultClass: () => Readonly<StorageClass> | undefined;
  /** Pods that use the claim and have not ended. */
  readonly users: readonly { readonly name: string; readonly node: Readonly<Node> | undefined; readonly placed: boolean }[];
}

export function planClaim(claim: Claim, facts: ClaimFacts): ClaimPlan {
  const { named } = facts;
  const isBound = annotationsOf(claim)[ANNOTATION.bindCompleted] !== undefined;
  if (isBound) {
    if (!claim.spec.volumeName) return lost("ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!");
    if (named === undefined) return lost("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!");
    if (named.spec.claimRef === undefined || named.spec.claimRef.uid === claim.metadata.uid) return { type: "bind", volume: named };
    return lost("ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly");
  }
  if (!claim.spec.volumeName) return planUnbound(claim, facts);
  if (named === undefined) return { type: "pending" }; // may yet be made
  if (named.spec.claimRef === undefined) {
    const unfit = whyUnfit(named, claim);
    return unfit === undefined ? { type: "bind", volume: named } : { type: "pending", event: warning("VolumeMismatch", `Cannot bind to requested volume "${named.metadata.name}": ${unfit}`) };
  }
  if (isBoundTo(named, claim)) return { type: "bind", volume: named };
  const event = warning("FailedBinding", `volume "${named.metadata.name}" already bound to a different claim.`);
  if (annotationsOf(claim)[ANNOTATION.boundByController] === undefined) return { type: "pending", event };
  const { namespace = "", name = "" } = named.spec.claimRef;
  return { type: "wrong", event, message: `invalid binding of claim "${namespaceOf(claim)}/${claim.metadata.name}" to volume "${claim.spec.volumeName}": volume already claimed by "${namespace}/${name}"` };
}

function planUnbound(claim: Claim, { volumes, storageClass, defaultClass, users }: ClaimFacts): ClaimPlan {
  const delayed = storageClass?.volumeBindingMode === "WaitForFirstConsumer";
  const selected = annotationsOf(claim)[ANNOTATION.selectedNode] !== undefined;
  // Placed by somebody who knows nothing of volumes: the claim goes where the pod is.
  const placed = delayed && !selected ? users.find(({ node }) => node !== undefined)?.node : undefined;
  const volume = bestMatch(claim, volumes(), { delayed, node: placed });
  if (volume !== undefined) return { type: "bind", volume };
  if (!saysClass(claim)) {
    const found = defaultClass();
    if (found !== undefined) return { type: "set-class", name: found.metadata.name };
  }
  if (delayed && !selected) return placed === undefined ? { type: "pending", event: waiting(users) } : { type: "select-node", name: placed.metadata.name };
  const className = classOfClaim(claim);
  if (className === "") return { type: "pending", event: { type: "Normal", reason: "FailedBinding", message: "no persistent volumes available for this claim and no storage class is set" } };
  if (storageClass === undefined) return { type: "tell", event: warning("ProvisioningFailed", `storageclass.storage.k8s.io "${className}" not found`) };
  const provisioner = provisionerNow(storageClass.provisioner);
  if (provisioner.startsWith("kubernetes.io/")) return { type: "tell", event: warning("ProvisioningFailed", `no volume plugin matched name: ${provisioner}`) };
  const message = `Waiting for a volume to be created either by the external provisioner '${provisioner}' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.`;
  return { type: "provision", provisioner, event: { type: "Normal", reason: "ExternalProvisioning", message } };
}

function waiting(users: ClaimFacts["users"]): Said {
  const names = users.filter(({ placed }) => !placed).map(({ name }) => name);
  if (names.length === 0) return { type: "Normal", reason: "WaitForFirstConsumer", message: "waiting for first consumer to be created before binding" };
  return { type: "Normal", reason: "WaitForPodScheduled", message: names.length > 1 ? `waiting for pods ${names.join(",")} to be scheduled` : `waiting for pod ${names[0]} to be scheduled` };
}

export type VolumePlan =
  | { readonly type: "phase"; readonly phase: "Available" | "Bound" }
  | { readonly type: "reclaim" }
  | { readonly type: "unbind" }
  /** The claim has the next move. */
  | { readonly type: "claim"; readonly key: ObjectKey }
  | { readonly type: "mismatch"; readonly volumeMessage: string; readonly claimMessage: string };

/** `claim`: the one the volume names, by uid too; undefined: it is gone for certain. */
export function planVolume(volume: Volume, claim: Claim | undefined): VolumePlan {
  const { claimRef } = volume.spec;
  if (claimRef === undefined || !claimRef.uid) return { type: "phase", phase: "Available" };
  if (claim === undefined) return { type: "reclaim" };
  if (!claim.spec.volumeName) {
    if (!modesDiffer(volume, claim)) return { type: "claim", key: objectKey(namespaceOf(claim), claim.metadata.name) };
    return {
      type: "mismatch",
      volumeMessage: `Cannot bind PersistentVolume to requested PersistentVolumeClaim "${claim.metadata.name}" due to incompatible volumeMode.`,
      claimMessage: `Cannot bind PersistentVolume "${volume.metadata.name}" to requested PersistentVolumeClaim due to incompatible volumeMode.`,
    };
  }
  if (claim.spec.volumeName === volume.metadata.name) return { type: "phase", phase: "Bound" };
  const isProvisioned = annotationsOf(volume)[ANNOTATION.provisionedBy] !== undefined;
  return isProvisioned && volume.spec.persistentVolumeReclaimPolicy === "Delete" ? { type: "reclaim" } : { type: "unbind" };
}

/** What a released volume becomes when there is nobody to reclaim it; undefined: it stays, or its provisioner sees to it. */
export function reclaimFailure(volume: Volume): Said | undefined {
  const { persistentVolumeReclaimPolicy: policy, csi, hostPath, nfs } = volume.spec;
  const { [ANNOTATION.provisionedBy]: provisioner = "", [ANNOTATION.migratedTo]: driver } = annotationsOf(volume);
  if (driver || policy === "Retain") return undefined;
  if (policy === "Recycle") return warning("VolumeFailedRecycle", "No recycler plugin found for the volume!");
  if (policy !== "Delete") return warning("VolumeUnknownReclaimPolicy", "Volume has unrecognized PersistentVolumeReclaimPolicy");
  if (provisioner !== "" && !provisioner.startsWith("kubernetes.io/")) return undefined;
  if (provisioner !== "" && !RECYCLED.includes(provisioner)) return warning("VolumeFailedDelete", `no volume plugin matched name: ${provisioner}`); // whatever it is made of
  if (provisioner === "" && (csi !== undefined || hasFinalizer(volume, DRIVER_FINALIZER))) return undefined;
  if (hostPath !== undefined && !/^\/tmp\/.+/.test(hostPath.path)) return warning("VolumeFailedDelete", `host_path deleter only supports /tmp/.+ but received provided ${hostPath.path}`);
  if (provisioner !== "") return warning("VolumeFailedDelete", "no deletable volume plugin matched");
  return warning("VolumeFailedDelete", `error getting deleter volume plugin for volume "${volume.metadata.name}": no ${hostPath || nfs ? "deletable " : ""}volume plugin matched`);
}

/** What upstream has a plug-in for that does more than mount. Source: kubernetes v1.36 cmd/kube-controller-manager/app/plugins.go ProbeProvisionableRecyclableVolumePlugins */
const RECYCLED = ["kubernetes.io/host-path", "kubernetes.io/nfs"];
const IN_TREE_FINALIZER = "kubernetes.io/pv-controller";
const DRIVER_FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer";

/** Names the driver that took the place of its provisioner, which looks for that, and has the finalizers that go with it; undefined: all is so already. */
export function withDriver<T extends Volume | Claim>(object: T): T | undefined {
  const { [ANNOTATION.migratedTo]: before, ...annotations } = annotationsOf(object);
  const provisioner = annotations[ANNOTATION.provisionedBy] ?? annotations[ANNOTATION.provisioner] ?? annotations[ANNOTATION.betaProvisioner];
  if (provisioner === undefined) return undefined;
  const now = provisionerNow(provisioner);
  const driver = now === provisioner ? undefined : now;
  const { finalizers: given = [] } = object.metadata;
  const finalizers = annotations[ANNOTATION.provisionedBy] === undefined ? given : finalizersOf(object as Volume, given, { provisioner, isMigrated: driver !== undefined });
  if (driver === before && finalizers.length === given.length && new Set(finalizers).isSubsetOf(new Set(given))) return undefined;
  return { ...object, metadata: { ...object.metadata, ...(finalizers === given ? {} : { finalizers }), annotations: { ...annotations, ...(driver === undefined ? {} : { [ANNOTATION.migratedTo]: driver }) } } };
}

/** A volume that was made by a part of Kubernetes is held for that, not for a driver, while it is to be deleted when nobody wants it any more. */
function finalizersOf(volume: Volume, given: readonly string[], { provisioner, isMigrated }: { readonly provisioner: string; readonly isMigrated: boolean }): readonly string[] {
  if (!isMigrated && !provisioner.startsWith("kubernetes.io/")) return given;
  const left = given.filter((one) => one !== IN_TREE_FINALIZER && (isMigrated || one !== DRIVER_FINALIZER));
  const isHeld = !isMigrated && volume.spec.persistentVolumeReclaimPolicy === "Delete" && (given.includes(IN_TREE_FINALIZER) || !isDeleting(volume)); // one that is going takes no new ones
  return isHeld ? [...left, IN_TREE_FINALIZER] : left;
}

function warning(reason: string, message: string): Said { return { type: "Warning", reason, message }; }
function lost(reason: string, message: string): ClaimPlan { return { type: "lost", event: warning(reason, message) }; }
