/**
 * What a pod refers to, and thereby what its node may read.
 *
 * Source: kubernetes v1.36 pkg/api/v1/pod/util.go, pkg/api/v1/persistentvolume/util.go, staging/src/k8s.io/component-helpers/storage/ephemeral,
 *         staging/src/k8s.io/dynamic-resource-allocation/resourceclaim
 */
import type { Container, EphemeralContainer, PersistentVolume, PersistentVolumeSource, Pod, PodResourceClaimStatus, SecretReference } from "../gen/core.v1.ts";

/** One that is about to be refused may have null for them. */
function allContainers({ initContainers, containers, ephemeralContainers }: Readonly<Pod["spec"]>): readonly Readonly<Container | EphemeralContainer>[] {
  return [...(initContainers ?? []), ...(containers ?? []), ...(ephemeralContainers ?? [])];
}

/** Names of Secrets in the pod's namespace, each once, none empty. */
export function podSecretNames({ spec }: Readonly<Pod>): ReadonlySet<string> {
  const names = new Set<string | undefined>(spec.imagePullSecrets?.map(({ name }) => name));
  for (const { env = [], envFrom = [] } of allContainers(spec)) {
    for (const { secretRef } of envFrom) names.add(secretRef?.name);
    for (const { valueFrom } of env) names.add(valueFrom?.secretKeyRef?.name);
  }
  for (const volume of spec.volumes ?? []) {
    names.add(volume.azureFile?.secretName);
    names.add(volume.secret?.secretName);
    for (const { secret } of volume.projected?.sources ?? []) names.add(secret?.name);
    for (const source of [volume.cephfs, volume.cinder, volume.flexVolume, volume.rbd, volume.scaleIO, volume.iscsi, volume.storageos]) names.add(source?.secretRef?.name);
    names.add(volume.csi?.nodePublishSecretRef?.name);
  }
  return named(names);
}

/** Names of ConfigMaps in the pod's namespace. */
export function podConfigMapNames({ spec }: Readonly<Pod>): ReadonlySet<string> {
  const names = new Set<string | undefined>();
  for (const { env = [], envFrom = [] } of allContainers(spec)) {
    for (const { configMapRef } of envFrom) names.add(configMapRef?.name);
    for (const { valueFrom } of env) names.add(valueFrom?.configMapKeyRef?.name);
  }
  for (const volume of spec.volumes ?? []) {
    names.add(volume.configMap?.name);
    for (const { configMap } of volume.projected?.sources ?? []) names.add(configMap?.name);
  }
  return named(names);
}

/** Names of PersistentVolumeClaims, those of ephemeral volumes included. */
export function podClaimNames({ spec, metadata }: Readonly<Pod>): ReadonlySet<string> {
  return named(spec.volumes?.map((volume) => volume.persistentVolumeClaim?.claimName ?? (volume.ephemeral ? `${metadata.name}-${volume.name}` : undefined)) ?? []);
}

/** What has become of its claims that are made from templates, by their names in the pod. */
export function claimStatusesOf({ status }: Readonly<Pod>): ReadonlyMap<string, PodResourceClaimStatus> {
  return new Map((status?.resourceClaimStatuses ?? []).map((one): [string, PodResourceClaimStatus] => [one.name, one]));
}

/** Names of ResourceClaims that exist for the pod. */
export function podResourceClaimNames(pod: Readonly<Pod>): ReadonlySet<string> {
  const made = claimStatusesOf(pod);
  const names = pod.spec.resourceClaims?.map(({ name, resourceClaimName }) => resourceClaimName ?? made.get(name)?.resourceClaimName) ?? [];
  return named([...names, pod.status?.extendedResourceClaimStatus?.resourceClaimName]);
}

/** Secrets a node needs to mount the volume. */
export function volumeSecrets({ spec }: Readonly<PersistentVolume>): readonly { readonly namespace: string; readonly name: string }[] {
  const source: Readonly<PersistentVolumeSource> = spec;
  const claimNamespace = spec.claimRef?.namespace ?? "";
  const found: { namespace: string; name: string }[] = [];
  const add = (ref: { readonly name?: string | undefined; readonly namespace?: string | undefined } | undefined, namespace = ""): void => {
    if (ref?.name) found.push({ namespace: ref.namespace || namespace, name: ref.name });
  };
  add(source.azureFile && { name: source.azureFile.secretName, namespace: source.azureFile.secretNamespace }, claimNamespace);
  for (const one of [source.cephfs, source.flexVolume, source.rbd, source.scaleIO, source.iscsi]) add(one?.secretRef as SecretReference | undefined, claimNamespace);
  add(source.cinder?.secretRef);
  add(source.storageos?.secretRef);
  for (const ref of [source.csi?.nodePublishSecretRef, source.csi?.nodeStageSecretRef, source.csi?.nodeExpandSecretRef]) add(ref);
  return found;
}

function named(names: Iterable<string | undefined>): ReadonlySet<string> {
  const set = new Set<string>();
  for (const name of names) if (name) set.add(name);
  return set;
}
