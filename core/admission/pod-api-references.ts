/** Whether a pod refers to other API objects: a static pod must not. Source: kubernetes v1.36 pkg/api/pod/util.go (HasAPIObjectReference) */
import type { Pod, Volume, VolumeProjection } from "../api/gen/core.v1.ts";
import { goQuote } from "../api/meta/go-quote.ts";
import { podConfigMapNames, podSecretNames } from "../api/meta/pod-references.ts";

export interface ApiReference { readonly resource?: string; readonly error?: string }

const PLAIN_VOLUMES: readonly (keyof Volume)[] = [
  "awsElasticBlockStore", "azureDisk", "cephfs", "cinder", "downwardAPI", "emptyDir", "fc", "flexVolume", "flocker", "gcePersistentDisk", "gitRepo", "hostPath", "image", "iscsi", "nfs",
  "photonPersistentDisk", "portworxVolume", "quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume",
];
const REFERRING_VOLUMES: readonly (readonly [keyof Volume, string])[] = [
  ["configMap", "configmaps (via configmap volumes)"], ["secret", "secrets (via secret volumes)"], ["csi", "csidrivers (via CSI volumes)"], ["glusterfs", "endpoints (via glusterFS volumes)"],
  ["persistentVolumeClaim", "persistentvolumeclaims"], ["ephemeral", "persistentvolumeclaims (via ephemeral volumes)"], ["azureFile", "secrets (via azureFile volumes)"],
];
const REFERRING_SOURCES: readonly (readonly [keyof VolumeProjection, string])[] = [
  ["configMap", "configmaps (via projected volumes)"], ["secret", "secrets (via projected volumes)"], ["serviceAccountToken", "serviceaccounts (via projected volumes)"],
  ["clusterTrustBundle", "clustertrustbundles"], ["podCertificate", "podcertificates"],
];

/** What it refers to first; nothing when it stands by itself. */
export function apiReferenceOf(pod: Readonly<Pod>): ApiReference {
  if (pod.spec.serviceAccountName) return { resource: "serviceaccounts" };
  if (podSecretNames(pod).size > 0) return { resource: "secrets" };
  if (podConfigMapNames(pod).size > 0) return { resource: "configmaps" };
  if (pod.spec.resourceClaims?.length) return { resource: "resourceclaims" };
  for (const volume of pod.spec.volumes ?? []) {
    if (PLAIN_VOLUMES.some((kind) => volume[kind])) continue;
    const referring = REFERRING_VOLUMES.find(([kind]) => volume[kind]);
    if (referring) return { resource: referring[1] };
    if (!volume.projected) return { error: `unknown volume type for volume  ${goQuote(volume.name)}` };
    for (const source of volume.projected.sources ?? []) {
      const found = REFERRING_SOURCES.find(([kind]) => source[kind]);
      if (found) return { resource: found[1] };
      if (!source.downwardAPI) return { error: `unknown source for projected volume ${goQuote(volume.name)}` };
    }
  }
  return {};
}
