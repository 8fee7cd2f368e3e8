/** PersistentVolume (v1): a piece of storage. Source: kubernetes v1.36 pkg/registry/core/persistentvolume/strategy.go, pkg/api/persistentvolume/util.go */
import { index } from "../../../api/meta/field-error.ts";
import type { PersistentVolume, PersistentVolumeSpec } from "../../../api/gen/core.v1.ts";
import { timestamp } from "../../../lifecycle/clock.ts";
import { defineResource } from "../../generic/resource.ts";
import { roundResourceList } from "../checks/resources.ts";
import { nodeTermWarnings } from "../pod/warnings.ts";
import { statusPart } from "../status-part.ts";
import { defaultVolumeSource } from "../volume-source.ts";
import { validateMountOptions, validateVolumeSpec, validateVolumeUpdate } from "./validation.ts";

const ANNOTATIONS_DEPRECATED: Readonly<Record<string, string>> = {
  "volume.beta.kubernetes.io/storage-class": `deprecated since v1.8; use "storageClassName" attribute instead`,
  "volume.beta.kubernetes.io/mount-options": `deprecated since v1.31; use "mountOptions" attribute instead`,
};
const SOURCES_DEPRECATED: readonly [field: keyof PersistentVolumeSpec, text: string, shown?: string][] = [
  ["cephfs", "deprecated in v1.28, non-functional in v1.31+"], ["photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"],
  ["scaleIO", "deprecated in v1.16, non-functional in v1.22+"], ["storageos", "deprecated in v1.22, non-functional in v1.25+", "storageOS"],
  ["glusterfs", "deprecated in v1.25, non-functional in v1.26+"], ["rbd", "deprecated in v1.28, non-functional in v1.31+"],
];

export const persistentVolumes = defineResource<PersistentVolume>({
  group: "", version: "v1", kind: "PersistentVolume", plural: "persistentvolumes",
  generation: false,

  defaults(volume) {
    const spec = (volume.spec ??= {});
    volume.status = { ...volume.status, phase: volume.status?.phase || "Pending" };
    spec.persistentVolumeReclaimPolicy ||= "Retain";
    spec.volumeMode ??= "Filesystem";
    roundResourceList(spec.capacity);
    defaultVolumeSource(spec);
  },
  prepareForCreate(volume, { nowMs }) { volume.status = { phase: "Pending", lastPhaseTransitionTime: timestamp(nowMs) }; },
  *validate(volume, old) {
    yield* validateVolumeSpec("spec", volume.spec, volume.metadata.name, old?.spec);
    yield* validateMountOptions(volume, old);
  },
  validateUpdate: validateVolumeUpdate,
  *warnings({ metadata, spec }) {
    for (const [name, text] of Object.entries(ANNOTATIONS_DEPRECATED)) if (metadata.annotations?.[name] !== undefined) yield `metadata.annotations[${name}]: ${text}`;
    if (spec.persistentVolumeReclaimPolicy === "Recycle")
      yield "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.";
    for (const [i, term] of (spec.nodeAffinity?.required?.nodeSelectorTerms ?? []).entries())
      yield* nodeTermWarnings(index("spec.nodeAffinity.required.nodeSelectorTerms", i), term, false);
    for (const [field, text, shown] of SOURCES_DEPRECATED) if (spec[field] !== undefined) yield `spec.${shown ?? field}: ${text}`;
  },
  subresources: {
    status: statusPart<PersistentVolume>({
      prepare(next, old, { nowMs }) {
        const [before, after] = [old.status, (next.status ??= {})];
        const sameTime = after.lastPhaseTransitionTime === undefined || after.lastPhaseTransitionTime === before?.lastPhaseTransitionTime;
        if (before?.phase !== after.phase && sameTime) after.lastPhaseTransitionTime = timestamp(nowMs);
        else if (sameTime && before?.lastPhaseTransitionTime !== undefined) after.lastPhaseTransitionTime = before.lastPhaseTransitionTime;
      },
    }),
  },
});
