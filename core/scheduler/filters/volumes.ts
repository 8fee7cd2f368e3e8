/**
 * Filters on where a pod's volumes can be.
 *
 * Source: kubernetes v1.36 pkg/scheduler/framework/plugins/{volumebinding,volumezone,nodevolumelimits,volumerestrictions}
 */
import type { PersistentVolumeClaim, Pod, Volume } from "../../api/gen/core.v1.ts";
import type { CSINode, CSIStorageCapacity } from "../../api/gen/storage.v1.ts";
import { type ApiObject, keyOf, labelsOf, namespaceOf } from "../../api/meta/object-meta.ts";
import { compareQuantities } from "../../api/meta/quantity.ts";
import { type ClusterChange, nodeChanged } from "../changes.ts";
import type { LiveNode } from "../node-info.ts";
import type { Filter } from "../plugin.ts";
import { resolvable, unresolvable } from "../rejection.ts";
import { classOf, type Storage } from "../storage.ts";
import { planVolumes, podClaims, podVolumes, waitsForConsumer } from "../volume-plan.ts";

/** Claims are bound, or can be bound or provisioned at the node. */
export const volumeBinding: Filter = {
  name: "VolumeBinding",
  prepare({ pod }, { storage }) {
    if (podClaims(pod).length === 0) return undefined;
    const volumes = podVolumes(pod, storage);
    if ("refused" in volumes) return volumes;
    return {
      reject({ node }) {
        const plan = planVolumes(volumes, node, storage);
        return "reasons" in plan ? unresolvable(...plan.reasons) : undefined;
      },
    };
  },
  mayHelp: (pod, change) => isOwnClaim(pod, change) || isStorageSetUp(change) || nodeChanged(change, ({ metadata, spec }) => [metadata.labels, spec.taints]),
};

function isOwnClaim(pod: Readonly<Pod>, change: ClusterChange): boolean {
  return change.of === "claim" && !change.deleted && namespaceOf(change.object) === namespaceOf(pod) && podClaims(pod).some(({ name }) => name === change.object.metadata.name);
}

function isOwnNewClaim(pod: Readonly<Pod>, change: ClusterChange): boolean { return change.of === "claim" && !change.old && isOwnClaim(pod, change); }

/** There is more room for volumes, or it is in other places. */
function isStorageSetUp(change: ClusterChange): boolean {
  if (change.deleted) return change.of === "CSI driver" && change.object.spec.storageCapacity === true; // nobody tells any more what room there is
  switch (change.of) {
    case "volume": return true;
    case "storage class": return !change.old || !Bun.deepEquals(change.old.allowedTopologies, change.object.allowedTopologies);
    case "CSI node": return !change.old;
    case "CSI driver": return change.old?.spec.storageCapacity === true && !change.object.spec.storageCapacity;
    case "storage capacity": return !change.old || isMore(largest(change.object), largest(change.old));
    default: return false;
  }
}

function largest({ maximumVolumeSize, capacity }: Readonly<CSIStorageCapacity>): string | undefined { return maximumVolumeSize ?? capacity ?? undefined; }

function isMore(size: string | undefined, than: string | undefined): boolean { return size !== undefined && (than === undefined || compareQuantities(size, than) > 0); }

/** A driver can attach more than before. */
function attachesMore({ spec }: Readonly<CSINode>, old: Readonly<CSINode> | undefined): boolean {
  if (!old) return true;
  const before = new Map((old.spec.drivers ?? []).map(({ name, allocatable }) => [name, allocatable?.count ?? 0]));
  return (spec.drivers ?? []).some(({ name, allocatable }) => (allocatable?.count ?? 0) > (before.get(name) ?? 0));
}

const ZONE_LABELS = ["failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

/** Volumes that carry a zone as label can be used in that zone only. */
export const volumeZone: Filter = {
  name: "VolumeZone",
  prepare({ pod }, { storage }) {
    const wanted: { key: string; values: readonly string[] }[] = [];
    for (const { name, ephemeral } of podClaims(pod)) {
      if (ephemeral) continue; // made for the pod, where it goes
      const claim = storage.claim(namespaceOf(pod), name);
      if (!claim) return { refused: `persistentvolumeclaim "${name}" not found` };
      if (!claim.spec.volumeName) continue; // VolumeBinding decides where it may be
      const volume = storage.volume(claim.spec.volumeName);
      if (!volume) return { refused: `persistentvolume "${claim.spec.volumeName}" not found` };
      for (const key of ZONE_LABELS) {
        const value = labelsOf(volume)[key];
        if (value !== undefined) wanted.push({ key, values: value.split("__") });
      }
    }
    if (wanted.length === 0) return undefined;
    return {
      reject({ node }) {
        const labels = labelsOf(node);
        if (!ZONE_LABELS.some((key) => key in labels)) return undefined; // a cluster that knows no zones
        const fits = wanted.every(({ key, values }) => values.includes(labels[key] ?? labels[key.replace("failure-domain.beta", "topology")] ?? ""));
        return fits ? undefined : unresolvable("node(s) had no available volume zone");
      },
    };
  },
  mayHelp: (pod, change) => isOwnClaim(pod, change) || (!change.deleted && ((change.of === "volume" && (!change.old || !Bun.deepEquals(zonesOf(change.old), zonesOf(change.object)))) || (change.of === "storage class" && !change.old && waitsForConsumer(change.object)))) || nodeChanged(change, zonesOf),
};

function zonesOf({ metadata }: Readonly<ApiObject>): readonly (string | undefined)[] { return ZONE_LABELS.map((key) => metadata.labels?.[key]); }

/** The gate of drivers without which a node takes none of their volumes. */
const SCALING = "VolumeLimitScaling";

/** A CSI driver can attach only so many volumes to a node. */
export const nodeVolumeLimits: Filter = {
  name: "NodeVolumeLimits",
  judgesTaints: true,
  prepare({ pod }, { storage, gates }) {
    const wanted = volumesOf(pod, storage); // claims that are missing are VolumeBinding's to report
    if (wanted.size === 0) return undefined;
    const required = gates.has(SCALING) ? [...new Set(wanted.values())].filter((driver) => storage.csiDriver(driver)?.spec.preventPodSchedulingIfMissing) : [];
    return {
      reject({ name, pods }) {
        const missing = required.find((driver) => !(storage.csiNode(name)?.spec.drivers ?? []).some((one) => one.name === driver));
        if (missing !== undefined) return resolvable(`${missing} CSI driver is not installed on the node`);
        const limits = new Map((storage.csiNode(name)?.spec.drivers ?? []).flatMap(({ name: driver, allocatable }) => (allocatable?.count == null ? [] : [[driver, allocatable.count] as const])));
        if (limits.size === 0) return undefined;
        const attached = new Map<string, string>();
        for (const placed of pods.values()) for (const [volume, driver] of volumesOf(placed.pod, storage)) attached.set(volume, driver);
        for (const { spec } of storage.attachmentsTo(name)) {
          const handle = spec.source.persistentVolumeName && storage.volume(spec.source.persistentVolumeName)?.spec.csi?.volumeHandle;
          if (handle) attached.set(`${spec.attacher}/${handle}`, spec.attacher);
        }
        const perDriver = new Map<string, number>();
        for (const [, driver] of attached) perDriver.set(driver, (perDriver.get(driver) ?? 0) + 1);
        for (const [driver, count] of countDrivers(wanted, attached)) {
          const limit = limits.get(driver);
          if (limit !== undefined && (perDriver.get(driver) ?? 0) + count > limit) return resolvable("node(s) exceed max volume count");
        }
        return undefined;
      },
    };
  },
  mayHelp: (pod, change, { gates }) => isOwnNewClaim(pod, change) || (gates.has(SCALING) && (change.of === "CSI driver" || (change.of === "CSI node" && !change.deleted))) || (change.of === "placed pod" && change.deleted && podClaims(change.object).length > 0)
    || (change.of === "attachment" && change.deleted && podClaims(pod).length > 0) || (change.of === "CSI node" && !change.deleted && attachesMore(change.object, change.old)),
};

function countDrivers(wanted: ReadonlyMap<string, string>, attached: ReadonlyMap<string, string>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const [volume, driver] of wanted) if (!attached.has(volume)) counts.set(driver, (counts.get(driver) ?? 0) + 1);
  return counts;
}

/** CSI volumes behind a pod's claims: unique name → driver. One that does not exist yet counts under the name of its claim. */
function volumesOf(pod: Readonly<Pod>, storage: Storage): Map<string, string> {
  const found = new Map<string, string>();
  for (const { name } of podClaims(pod)) {
    const claim = storage.claim(namespaceOf(pod), name);
    if (!claim) continue;
    const volume = claim.spec.volumeName ? storage.volume(claim.spec.volumeName) : undefined;
    if (volume) {
      if (volume.spec.csi) found.set(`${volume.spec.csi.driver}/${volume.spec.csi.volumeHandle}`, volume.spec.csi.driver);
    } else {
      const driver = driverFor(claim, storage);
      if (driver) found.set(`${driver}/claim ${keyOf(claim)}`, driver);
    }
  }
  return found;
}

function driverFor(claim: Readonly<PersistentVolumeClaim>, storage: Storage): string | undefined {
  return storage.storageClass(classOf(claim))?.provisioner;
}

/** Volumes that only one pod may use, in the cluster (ReadWriteOncePod) or on a node (some kinds of disks). */
export const volumeRestrictions: Filter = {
  name: "VolumeRestrictions",
  prepare({ pod }, cluster) {
    const namespace = namespaceOf(pod);
    const missing = podClaims(pod).find(({ name, ephemeral }) => !ephemeral && !cluster.storage.claim(namespace, name));
    if (missing) return { refused: `persistentvolumeclaim "${missing.name}" not found` };
    const exclusive = podClaims(pod).map(({ name }) => cluster.storage.claim(namespace, name)).filter((claim) => claim?.spec.accessModes?.includes("ReadWriteOncePod"));
    const disks = (pod.spec.volumes ?? []).filter(isDisk);
    if (exclusive.length === 0 && disks.length === 0) return undefined;
    const uses = (other: Readonly<Pod>): number => exclusive.filter((claim) => namespaceOf(other) === namespace && podClaims(other).some(({ name }) => name === claim!.metadata.name)).length;
    let users = 0;
    for (const claim of exclusive) {
      const { name } = claim!.metadata;
      const { perNode } = cluster.pods.where({ key: `claim ${namespace}/${name}`, namespaces: [namespace], matches: (other) => podClaims(other).some((one) => one.name === name) });
      for (const [node, count] of perNode) if (cluster.node(node)) users += count; // who was on a node that is gone uses it no more
    }
    return {
      reject({ pods }: LiveNode) {
        if (disks.length > 0) for (const { pod: other } of pods.values())
          if ((other.spec.volumes ?? []).some((theirs) => disks.some((ours) => conflict(ours, theirs)))) return resolvable("node(s) had no available disk");
        return users > 0 ? resolvable("node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod") : undefined;
      },
      podMoved(placed, _node, by) {
        users += by * uses(placed.pod);
      },
    };
  },
  mayHelp: (pod, change) => isOwnNewClaim(pod, change) || (change.of === "node" && (change.deleted || !change.old))
    || (change.of === "placed pod" && change.deleted && namespaceOf(change.object) === namespaceOf(pod) && sharesVolume(pod, change.object)),
};

function sharesVolume(pod: Readonly<Pod>, other: Readonly<Pod>): boolean {
  const theirs = podClaims(other);
  return podClaims(pod).some(({ name, ephemeral }) => !ephemeral && theirs.some((one) => !one.ephemeral && one.name === name))
    || (pod.spec.volumes ?? []).some((ours) => (other.spec.volumes ?? []).some((one) => conflict(ours, one)));
}

function isDisk({ gcePersistentDisk, awsElasticBlockStore, iscsi, rbd }: Volume): boolean {
  return Boolean(gcePersistentDisk ?? awsElasticBlockStore ?? iscsi ?? rbd);
}

/** The same disk twice on a node; read-only together is fine where the disk allows it. */
function conflict(a: Volume, b: Volume): boolean {
  if (a.gcePersistentDisk && b.gcePersistentDisk) return a.gcePersistentDisk.pdName === b.gcePersistentDisk.pdName && !(a.gcePersistentDisk.readOnly && b.gcePersistentDisk.readOnly);
  if (a.awsElasticBlockStore && b.awsElasticBlockStore) return a.awsElasticBlockStore.volumeID === b.awsElasticBlockStore.volumeID;
  if (a.iscsi && b.iscsi) return a.iscsi.iqn === b.iscsi.iqn && !(a.iscsi.readOnly && b.iscsi.readOnly);
  if (a.rbd && b.rbd) {
    const { monitors, pool, image, readOnly } = a.rbd;
    return b.rbd.monitors.some((monitor) => monitors.includes(monitor)) && (pool ?? "rbd") === (b.rbd.pool ?? "rbd") && image === b.rbd.image && !(readOnly && b.rbd.readOnly);
  }
  return false;
}
