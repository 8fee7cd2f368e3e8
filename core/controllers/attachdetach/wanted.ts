/** Which volumes the pods of a node use that somebody has to attach for them. Source: kubernetes v1.36 pkg/controller/volume/attachdetach/util */
import type { PersistentVolume, PersistentVolumeClaim, Pod } from "../../api/gen/core.v1.ts";
import { iscsiVolumeName } from "../../api/meta/iscsi-names.ts";
import { isControlledBy, objectKey } from "../../api/meta/object-meta.ts";
import { CSI_DRIVERS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS } from "../../client/resources.ts";
import type { ControllerDeps } from "../deps.ts";
import { PODS_BY_NODE } from "../nodelifecycle/node-health.ts";
import { claimsOf } from "../pod-state.ts";
import { isDoneWithVolumes } from "../volume/volume.ts";
import { isForMany, type Wanted } from "./plan.ts";
import type { WantedDisk } from "./plan-disks.ts";

export interface WantedVolumes {
  volume(name: string): Readonly<PersistentVolume> | undefined;
  /** What the pod's claims are bound to, on either side. */
  boundTo(pod: Readonly<Pod>): Readonly<PersistentVolume>[];
  /** Whether the driver wants that. */
  isAttached(wanted: Wanted): boolean;
  /** Of CSI drivers, by pods that need them still. */
  usedOn(node: string): Wanted[];
  /** Those of them that are to be attached. */
  wantedOn(node: string): Wanted[];
  /** Disks of iSCSI targets. */
  disksOn(node: string): WantedDisk[];
}

export function wantedVolumes(informers: ControllerDeps["informers"]): WantedVolumes {
  const pods = informers.of(PODS);
  const claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
  const volumes = informers.of(PERSISTENT_VOLUMES);
  const drivers = informers.of(CSI_DRIVERS);

  const volume = (name: string): Readonly<PersistentVolume> | undefined => volumes.get(objectKey("", name));

  function boundTo(pod: Readonly<Pod>): Readonly<PersistentVolume>[] {
    return claimsOf(pod).flatMap((key) => {
      const claim: Readonly<PersistentVolumeClaim> | undefined = claims.get(key);
      if (claim === undefined || !isFor(pod, claim)) return [];
      const bound = claim.spec.volumeName ? volume(claim.spec.volumeName) : undefined;
      return bound && bound.spec.claimRef?.uid === claim.metadata.uid ? [bound] : [];
    });
  }

  /** A claim by the name of the pod's own one may be somebody else's, which the pod never gets. */
  function isFor({ metadata, spec }: Readonly<Pod>, claim: Readonly<PersistentVolumeClaim>): boolean {
    return spec.volumes?.some(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName === claim.metadata.name) || isControlledBy(claim, { metadata });
  }

  function isAttached({ volume: { spec } }: Wanted): boolean {
    return drivers.get(objectKey("", spec.csi!.driver))?.spec.attachRequired !== false;
  }

  function usedOn(node: string): Wanted[] {
    const found = new Map<string, { volume: Readonly<PersistentVolume>; pods: Readonly<Pod>[] }>();
    for (const pod of pods.by(PODS_BY_NODE, node)) {
      if (isDoneWithVolumes(pod)) continue;
      for (const bound of boundTo(pod)) {
        if (!bound.spec.csi) continue;
        const known = found.get(bound.metadata.name);
        if (known) known.pods.push(pod);
        else found.set(bound.metadata.name, { volume: bound, pods: [pod] });
      }
    }
    return [...found.values()];
  }

  function disksOn(node: string): WantedDisk[] {
    const found = new Map<string, WantedDisk & { readonly pods: Readonly<Pod>[] }>();
    const add = (pod: Readonly<Pod>, one: Omit<WantedDisk, "pods">): void => {
      const known = found.get(one.name);
      if (known) known.pods.push(pod);
      else found.set(one.name, { ...one, pods: [pod] });
    };
    for (const pod of pods.by(PODS_BY_NODE, node)) {
      if (isDoneWithVolumes(pod)) continue;
      for (const { iscsi } of pod.spec.volumes ?? []) if (iscsi) add(pod, { name: iscsiVolumeName(iscsi), isForMany: true });
      for (const bound of boundTo(pod)) if (bound.spec.iscsi) add(pod, { name: iscsiVolumeName(bound.spec.iscsi), volume: bound, isForMany: isForMany(bound) });
    }
    return [...found.values()];
  }

  return { volume, boundTo, isAttached, usedOn, disksOn, wantedOn: (node) => usedOn(node).filter(isAttached) };
}
