/**
 * Where the data of a volume is. One function a source, shared by the volumes of pods and by PersistentVolumes; most name a storage system.
 *
 * Source: kubernetes v1.36 pkg/apis/core/validation/validation.go validate…VolumeSource
 */
import { child, type FieldError, invalid, key, notSupported, required, tooLong } from "../../../../api/meta/field-error.ts";
import type * as core from "../../../../api/gen/core.v1.ts";
import { byteLength } from "../../../../api/meta/byte-length.ts";
import { dns1123Subdomain, rangeMessage } from "../../../../api/meta/names.ts";
import { localDescending, noBacksteps } from "../../checks/paths.ts";
import { isDns1123Label, problems } from "../../checks/values.ts";

type Errors = Iterable<FieldError>;

/** Every one of `fields` must be there. */
function* need<T extends object>(path: string, source: T, ...fields: readonly (keyof T & string)[]): Errors {
  for (const field of fields) {
    const value = source[field] as unknown;
    if (value === undefined || value === null || value === "" || (Array.isArray(value) && value.length === 0)) yield required(child(path, field));
  }
}

const LUN_MAX = 255;
const PARTITION_MAX = 255;

function* logicalUnit(path: string, value: number | undefined): Errors {
  if (value !== undefined && (value < 0 || value > LUN_MAX)) yield invalid(path, value, rangeMessage(0, LUN_MAX));
}

/** The text says 1 although 0 is fine: upstream's. */
function* partition(path: string, value: number | undefined): Errors {
  if (value !== undefined && (value < 0 || value > PARTITION_MAX)) yield invalid(path, value, rangeMessage(1, PARTITION_MAX));
}

function* secretName(path: string, ref: { readonly name?: string | undefined; readonly namespace?: string | undefined } | undefined, withNamespace = false): Errors {
  if (!ref) return;
  if (!ref.name) yield required(child(path, "secretRef", "name"));
  if (withNamespace && !ref.namespace) yield required(child(path, "secretRef", "namespace"));
}

const HOST_PATH_TYPES = ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];

function* hostPath(path: string, source: core.HostPathVolumeSource): Errors {
  if (!source.path) { yield required(child(path, "path")); return; }
  yield* noBacksteps(child(path, "path"), source.path);
  if (source.type !== undefined && !HOST_PATH_TYPES.includes(source.type)) yield notSupported(child(path, "type"), source.type, HOST_PATH_TYPES);
}

function* gitRepo(path: string, source: core.GitRepoVolumeSource): Errors {
  yield* need(path, source, "repository");
  yield* localDescending(child(path, "directory"), source.directory ?? "");
}

function* nfs(path: string, source: core.NFSVolumeSource): Errors {
  yield* need(path, source, "server", "path");
  if (!source.path?.startsWith("/")) yield invalid(child(path, "path"), source.path ?? "", "must be an absolute path");
}

function* gcePersistentDisk(path: string, source: core.GCEPersistentDiskVolumeSource): Errors {
  yield* need(path, source, "pdName");
  yield* partition(child(path, "partition"), source.partition);
}

function* awsElasticBlockStore(path: string, source: core.AWSElasticBlockStoreVolumeSource): Errors {
  yield* need(path, source, "volumeID");
  yield* partition(child(path, "partition"), source.partition);
}

/** Source: RFC 3720 section 3.2.6.1 has 223 bytes; upstream does not count, and finds the end of a name anywhere. */
const ISCSI_NAME_LENGTH_MAX = 1024;
const ISCSI_NAMES: Readonly<Record<string, RegExp>> = {
  iqn: /iqn\.\d{4}-\d{2}\.[A-Za-z0-9\-.]+:[^,;*&$|\s]+$/, eui: /^eui.[A-Za-z0-9]{16}$/, naa: /^naa.[A-Za-z0-9]{32}$/,
};

function* iscsiName(path: string, name: string, unknown: string): Errors {
  const format = ISCSI_NAMES[name.slice(0, 3)];
  if (!format) yield invalid(path, name, unknown);
  else if (name.length > ISCSI_NAME_LENGTH_MAX || !format.test(name)) yield invalid(path, name, "must be valid format");
}

function* iscsiCommon(path: string, source: core.ISCSIVolumeSource | core.ISCSIPersistentVolumeSource, unknown: string): Errors {
  if (!source.iqn) yield required(child(path, "iqn"));
  else yield* iscsiName(child(path, "iqn"), source.iqn, unknown);
  yield* logicalUnit(child(path, "lun"), source.lun);
  if ((source.chapAuthDiscovery || source.chapAuthSession) && !source.secretRef) yield required(child(path, "secretRef"));
}

const ISCSI_NAME_UNKNOWN = "must be valid format starting with iqn, eui, or naa";

function* iscsi(path: string, source: core.ISCSIVolumeSource): Errors {
  yield* need(path, source, "targetPortal");
  yield* iscsiCommon(path, source, ISCSI_NAME_UNKNOWN);
  if (source.initiatorName !== undefined) yield* iscsiName(child(path, "initiatorname"), source.initiatorName, ISCSI_NAME_UNKNOWN);
}

const ISCSI_TARGET_LENGTH_MAX = 64;

export function* persistentIscsi(path: string, source: core.ISCSIPersistentVolumeSource, volumeName: string): Errors {
  yield* need(path, source, "targetPortal");
  if (source.initiatorName !== undefined && byteLength(`${volumeName}:${source.targetPortal ?? ""}`) > ISCSI_TARGET_LENGTH_MAX)
    yield invalid(child(path, "targetportal"), source.targetPortal, "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.");
  yield* iscsiCommon(path, source, "must be valid format");
  yield* secretName(path, source.secretRef);
  if (source.initiatorName !== undefined) yield* iscsiName(child(path, "initiatorname"), source.initiatorName, "must be valid format");
}

function glusterfs(path: string, source: core.GlusterfsVolumeSource): Errors { return need(path, source, "endpoints", "path"); }

export function* persistentGlusterfs(path: string, source: core.GlusterfsPersistentVolumeSource): Errors {
  yield* need(path, source, "endpoints", "path");
  const namespace = source.endpointsNamespace;
  if (namespace === undefined) return;
  if (namespace === "") yield invalid(child(path, "endpointsNamespace"), "", "if the endpointnamespace is set, it must be a valid namespace name");
  else yield* isDns1123Label(child(path, "endpointsNamespace"), namespace);
}

function* flocker(path: string, { datasetName = "", datasetUUID = "" }: core.FlockerVolumeSource): Errors {
  if (!datasetName && !datasetUUID) yield required(path, "one of datasetName and datasetUUID is required");
  if (datasetName && datasetUUID) yield invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously");
  if (datasetName.includes("/")) yield invalid(child(path, "datasetName"), datasetName, "must not contain '/'");
}

function rbd(path: string, source: core.RBDVolumeSource | core.RBDPersistentVolumeSource): Errors { return need(path, source, "monitors", "image"); }

function* cinder(path: string, source: core.CinderVolumeSource): Errors {
  yield* need(path, source, "volumeID");
  yield* secretName(path, source.secretRef);
}

function* persistentCinder(path: string, source: core.CinderPersistentVolumeSource): Errors {
  yield* need(path, source, "volumeID");
  yield* secretName(path, source.secretRef, true);
}

function cephfs(path: string, source: core.CephFSVolumeSource | core.CephFSPersistentVolumeSource): Errors { return need(path, source, "monitors"); }

const HOST_PORTS_WRONG = "must be a host:port pair or multiple pairs separated by commas";
const QUOBYTE_TENANT_LENGTH_MAX = 64;

function* quobyte(path: string, source: core.QuobyteVolumeSource): Errors {
  if (!source.registry) yield required(child(path, "registry"), HOST_PORTS_WRONG);
  else if ((source.tenant ?? "").length > QUOBYTE_TENANT_LENGTH_MAX) yield required(child(path, "tenant"), "must be a UUID and may not exceed a length of 64 characters");
  else for (const pair of source.registry.split(",")) if (!/^([^:[\]]*|\[[^[\]]*\]):[^:[\]]*$/.test(pair)) yield invalid(child(path, "registry"), source.registry, HOST_PORTS_WRONG);
  yield* need(path, source, "volume");
}

function* fc(path: string, { targetWWNs = [], wwids = [], lun }: core.FCVolumeSource): Errors {
  const at = child(path, "targetWWNs");
  if (targetWWNs.length === 0 && wwids.length === 0) yield required(at, "must specify either targetWWNs or wwids, but not both");
  if (targetWWNs.length > 0 && wwids.length > 0) yield invalid(at, targetWWNs, "targetWWNs and wwids can not be specified simultaneously");
  if (targetWWNs.length === 0) return;
  if (lun === undefined) yield required(child(path, "lun"), "lun is required if targetWWNs is specified");
  else yield* logicalUnit(child(path, "lun"), lun);
}

function* flexVolume(path: string, source: core.FlexVolumeSource | core.FlexPersistentVolumeSource): Errors {
  yield* need(path, source, "driver");
  for (const option of Object.keys(source.options ?? {}))
    if (/\.(kubernetes|k8s)\.io$/.test(`.${option.split("/")[0]!.toLowerCase()}`))
      yield invalid(key(child(path, "options"), option), option, "kubernetes.io and k8s.io namespaces are reserved");
}

function azureFile(path: string, source: core.AzureFileVolumeSource): Errors { return need(path, source, "secretName", "shareName"); }

function* persistentAzureFile(path: string, source: core.AzureFilePersistentVolumeSource): Errors {
  yield* need(path, source, "secretName", "shareName");
  if (source.secretNamespace === "") yield required(child(path, "secretNamespace"));
}

const AZURE_CACHING_MODES = ["None", "ReadOnly", "ReadWrite"];
const AZURE_KINDS = ["Dedicated", "Managed", "Shared"];
const AZURE_MANAGED_URIS = ["/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"];
const AZURE_BLOB_URIS = ["https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"];

function* azureDisk(path: string, source: core.AzureDiskVolumeSource): Errors {
  const { diskURI = "", cachingMode, kind } = source;
  yield* need(path, source, "diskName", "diskURI");
  if (cachingMode !== undefined && !AZURE_CACHING_MODES.includes(cachingMode)) yield notSupported(child(path, "cachingMode"), cachingMode, AZURE_CACHING_MODES);
  if (kind !== undefined && !AZURE_KINDS.includes(kind)) yield notSupported(child(path, "kind"), kind, AZURE_KINDS);
  if (kind === "Managed" && !diskURI.startsWith("/subscriptions/")) yield notSupported(child(path, "diskURI"), diskURI, AZURE_MANAGED_URIS);
  if (kind !== undefined && kind !== "Managed" && !diskURI.startsWith("https://")) yield notSupported(child(path, "diskURI"), diskURI, AZURE_BLOB_URIS);
}

function* storageOsCommon(path: string, { volumeName, volumeNamespace }: core.StorageOSVolumeSource | core.StorageOSPersistentVolumeSource): Errors {
  if (!volumeName) yield required(child(path, "volumeName"));
  else yield* isDns1123Label(child(path, "volumeName"), volumeName);
  if (volumeNamespace) yield* isDns1123Label(child(path, "volumeNamespace"), volumeNamespace);
}

function* storageos(path: string, source: core.StorageOSVolumeSource): Errors {
  yield* storageOsCommon(path, source);
  yield* secretName(path, source.secretRef);
}

function* persistentStorageos(path: string, source: core.StorageOSPersistentVolumeSource): Errors {
  yield* storageOsCommon(path, source);
  yield* secretName(path, source.secretRef, true);
}

function vsphereVolume(path: string, source: core.VsphereVirtualDiskVolumeSource): Errors { return need(path, source, "volumePath"); }
function photonPersistentDisk(path: string, source: core.PhotonPersistentDiskVolumeSource): Errors { return need(path, source, "pdID"); }
function portworxVolume(path: string, source: core.PortworxVolumeSource): Errors { return need(path, source, "volumeID"); }
function scaleIO(path: string, source: core.ScaleIOVolumeSource | core.ScaleIOPersistentVolumeSource): Errors { return need(path, source, "gateway", "system", "volumeName"); }

function* local(path: string, source: core.LocalVolumeSource): Errors {
  if (!source.path) yield required(child(path, "path"));
  else yield* noBacksteps(child(path, "path"), source.path);
}

const CSI_DRIVER_NAME_BYTES_MAX = 63;

export function* csiDriverName(path: string, driver: string | undefined): Errors {
  if (!driver) { yield required(path); return; }
  if (byteLength(driver) > CSI_DRIVER_NAME_BYTES_MAX) yield tooLong(path, CSI_DRIVER_NAME_BYTES_MAX);
  yield* problems(path, driver, dns1123Subdomain(driver.toLowerCase()));
}

const CSI_SECRETS = ["controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef"] as const;

function* persistentCsi(path: string, source: core.CSIPersistentVolumeSource): Errors {
  yield* csiDriverName(child(path, "driver"), source.driver);
  yield* need(path, source, "volumeHandle");
  for (const field of CSI_SECRETS) {
    const ref = source[field];
    if (!ref) continue;
    const at = child(path, field);
    if (!ref.name) yield required(child(at, "name"));
    else yield* problems(child(at, "name"), ref.name, dns1123Subdomain(ref.name));
    if (!ref.namespace) yield required(child(at, "namespace"));
    else yield* isDns1123Label(child(at, "namespace"), ref.namespace);
  }
}

/** Of pods. */
export const sourceChecks = {
  hostPath, gitRepo, gcePersistentDisk, awsElasticBlockStore, nfs, iscsi, glusterfs, flocker, rbd, cinder, cephfs, quobyte, fc, flexVolume, azureFile, vsphereVolume,
  photonPersistentDisk, portworxVolume, azureDisk, storageos, scaleIO,
} as const;

/** Of PersistentVolumes, but for the two that need more than the source: iscsi and glusterfs. In upstream's order. */
export const persistentSourceChecks = {
  hostPath, gcePersistentDisk, awsElasticBlockStore, flocker, nfs, rbd, quobyte, cephfs, cinder: persistentCinder, fc, flexVolume,
  azureFile: persistentAzureFile, vsphereVolume, photonPersistentDisk, portworxVolume, azureDisk, scaleIO, local, storageos: persistentStorageos, csi: persistentCsi,
} as const;

