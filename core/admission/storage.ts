/**
 * Three plug-ins for volumes: DefaultStorageClass, StorageObjectInUseProtection, PersistentVolumeClaimResize.
 *
 * Source: kubernetes v1.36 plugin/pkg/admission/storage
 */
import type { PersistentVolumeClaim } from "../api/gen/core.v1.ts";
import type { StorageClass } from "../api/gen/storage.v1.ts";
import { DEFAULT_CLASS_ANNOTATIONS } from "../api/meta/default-class.ts";
import { compareQuantities } from "../api/meta/quantity.ts";
import type { ResourceClient } from "../client/client.ts";
import type { Informer } from "../client/informer.ts";
import { listAll, type Lookup } from "../client/lookup.ts";
import { newestMarked } from "./default-class.ts";
import type { AdmissionPlugin } from "./plugin.ts";
import { isResource, refusal } from "./refuse.ts";

const CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class";

/** A claim that names no class gets the default one, the newest if there are several. A claim for class "" wants none. */
export function defaultStorageClass({ storageClasses, client }: { readonly storageClasses: Informer<StorageClass>; readonly client: ResourceClient<StorageClass> }): AdmissionPlugin {
  return {
    name: "DefaultStorageClass",
    handles: (request) => request.operation === "CREATE" && isResource(request, "persistentvolumeclaims"),
    async admit({ object, signal }) {
      const claim = object as PersistentVolumeClaim;
      if (claim.metadata.annotations?.[CLASS_ANNOTATION] !== undefined || claim.spec?.storageClassName != null) return;
      const found = newestMarked(await listAll(storageClasses, client, { signal }), DEFAULT_CLASS_ANNOTATIONS);
      if (found) claim.spec = { ...claim.spec!, storageClassName: found.metadata.name };
    },
  };
}

const PROTECTION_FINALIZERS: Readonly<Record<string, string>> = {
  "persistentvolumes": "kubernetes.io/pv-protection", "persistentvolumeclaims": "kubernetes.io/pvc-protection", "volumeattributesclasses.storage.k8s.io": "kubernetes.io/vac-protection",
};

/** What is in use is not deleted before its user is gone: a controller removes the finalizer. */
export const storageObjectInUseProtection: AdmissionPlugin = {
  name: "StorageObjectInUseProtection",
  handles: (request) => request.operation === "CREATE" && Object.keys(PROTECTION_FINALIZERS).some((resource) => isResource(request, resource)),
  admit({ group, resource, object }) {
    const finalizer = PROTECTION_FINALIZERS[group === "" ? resource : `${resource}.${group}`]!;
    const { metadata } = object!;
    if (!metadata.finalizers?.includes(finalizer)) metadata.finalizers = [...(metadata.finalizers ?? []), finalizer];
  },
};

/** A claim can grow once it is bound, if its class allows that. */
export function persistentVolumeClaimResize({ storageClasses }: { readonly storageClasses: Lookup<StorageClass> }): AdmissionPlugin {
  return {
    name: "PersistentVolumeClaimResize",
    handles: (request) => request.operation === "UPDATE" && isResource(request, "persistentvolumeclaims"),
    async validate(request) {
      const next = request.object as PersistentVolumeClaim;
      const old = request.oldObject as Readonly<PersistentVolumeClaim>;
      if (compareQuantities(String(sizeOf(next)), String(sizeOf(old))) <= 0) return;
      if (old.status?.phase !== "Bound") throw refusal(request, "Only bound persistent volume claims can be expanded");
      const className = classOf(next);
      const found = className !== "" && className === classOf(old) ? await storageClasses.find("", className, request.signal) : undefined;
      if (found?.allowVolumeExpansion !== true) throw refusal(request, "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize");
    },
  };
}

function sizeOf({ spec }: Readonly<PersistentVolumeClaim>): string | number { return spec?.resources?.requests?.storage ?? "0"; }

function classOf({ metadata, spec }: Readonly<PersistentVolumeClaim>): string { return metadata.annotations?.[CLASS_ANNOTATION] ?? spec?.storageClassName ?? ""; }
