/**
 * The volumes of a pod: each has a name of its own and exactly one source.
 *
 * Source: kubernetes v1.36 pkg/apis/core/validation/validation.go ValidateVolumes, validateVolumeSource
 */
import { child, duplicate, type FieldError, forbidden, index, invalid, required } from "../../../../api/meta/field-error.ts";
import type { CSIVolumeSource, EphemeralVolumeSource, ImageVolumeSource, KeyToPath, Volume } from "../../../../api/gen/core.v1.ts";
import { byteLength } from "../../../../api/meta/byte-length.ts";
import { goQuote } from "../../../../api/meta/go-quote.ts";
import { dns1123Subdomain } from "../../../../api/meta/names.ts";
import type { TemplateMeta } from "../../../../api/meta/object-meta.ts";
import { parseQuantity } from "../../../../api/meta/quantity.ts";
import { fileMode } from "../../checks/paths.ts";
import { isDns1123Label, oneOf, problems } from "../../checks/values.ts";
import { validateClaimTemplate } from "../../persistent-volume-claim/validation.ts";
import type { PodRules } from "../rules.ts";
import { csiDriverName, sourceChecks } from "./volume-sources.ts";
import { validateDownwardFile, validateKeyToPath, validateProjected } from "./projected.ts";

interface Context { readonly rules: PodRules; readonly metadata: Readonly<TemplateMeta> | undefined }

/** The errors, and the volumes that have none, by name: what mounts may refer to. */
export function validateVolumes(path: string, volumes: readonly Volume[], context: Context): { readonly errors: FieldError[]; readonly valid: ReadonlyMap<string, Volume> } {
  const errors: FieldError[] = [];
  const valid = new Map<string, Volume>();
  const podName = context.metadata?.name;
  const created = new Set(podName ? volumes.filter(({ ephemeral }) => ephemeral).map(({ name }) => `${podName}-${name}`) : []);
  for (const [i, volume] of volumes.entries()) {
    const at = index(path, i);
    const own = [...validateSource(at, volume, context)];
    if (!volume.name) own.push(required(child(at, "name")));
    else own.push(...isDns1123Label(child(at, "name"), volume.name));
    if (valid.has(volume.name)) own.push(duplicate(child(at, "name"), volume.name));
    if (own.length === 0) valid.set(volume.name, volume);
    errors.push(...own);
    const claim = volume.persistentVolumeClaim?.claimName;
    if (claim !== undefined && created.has(claim))
      errors.push(invalid(child(at, "persistentVolumeClaim", "claimName"), claim, "must not reference a PVC that gets created for an ephemeral volume"));
  }
  return { errors, valid };
}

/** How two sources are named where they collide, when not by their field's name. */
const COLLISION_NAMES: Readonly<Record<string, string>> = { cephfs: "cephFS", downwardAPI: "downwarAPI" };
/** How upstream names two sources in the errors inside them. */
const ERROR_NAMES: Readonly<Record<string, string>> = { gcePersistentDisk: "persistentDisk" };

function* validateSource(path: string, volume: Volume, context: Context): Iterable<FieldError> {
  let sources = 0;
  for (const [field, check] of Object.entries(CHECKS)) {
    const source = volume[field as keyof Volume];
    if (source === undefined || source === null) continue;
    if (sources > 0) yield forbidden(child(path, COLLISION_NAMES[field] ?? field), "may not specify more than 1 volume type");
    else {
      sources++;
      yield* check(child(path, ERROR_NAMES[field] ?? field), source as never, context);
      if (field === "ephemeral") yield* claimName(path, volume.name, context.metadata?.name);
    }
    if (field === "iscsi") yield* iscsiNameLength(path, volume);
  }
  if (sources === 0) yield required(path, "must specify a volume type");
}

type Check = (path: string, source: never, context: Context) => Iterable<FieldError>;

/** In the order in which upstream looks for them: the first one found is the volume's source. */
const CHECKS: Readonly<Record<string, Check>> = {
  emptyDir: function* (path: string, { sizeLimit }: NonNullable<Volume["emptyDir"]>): Iterable<FieldError> {
    if (sizeLimit !== undefined && parseQuantity(sizeLimit).sign < 0) yield forbidden(child(path, "sizeLimit"), "SizeLimit field must be a valid resource quantity");
  },
  hostPath: sourceChecks.hostPath, gitRepo: sourceChecks.gitRepo, gcePersistentDisk: sourceChecks.gcePersistentDisk, awsElasticBlockStore: sourceChecks.awsElasticBlockStore,
  secret: function* (path: string, { secretName, defaultMode, items }: NonNullable<Volume["secret"]>): Iterable<FieldError> {
    if (!secretName) yield required(child(path, "secretName"));
    yield* keyedFiles(path, defaultMode, items);
  },
  nfs: sourceChecks.nfs, iscsi: sourceChecks.iscsi, glusterfs: sourceChecks.glusterfs, flocker: sourceChecks.flocker,
  persistentVolumeClaim: function* (path: string, { claimName: name }: NonNullable<Volume["persistentVolumeClaim"]>): Iterable<FieldError> {
    if (!name) yield required(child(path, "claimName"));
  },
  rbd: sourceChecks.rbd, cinder: sourceChecks.cinder, cephfs: sourceChecks.cephfs, quobyte: sourceChecks.quobyte,
  downwardAPI: function* (path: string, { defaultMode, items }: NonNullable<Volume["downwardAPI"]>): Iterable<FieldError> {
    yield* fileMode(child(path, "defaultMode"), defaultMode);
    for (const file of items ?? []) yield* validateDownwardFile(path, file);
  },
  fc: sourceChecks.fc, flexVolume: sourceChecks.flexVolume,
  configMap: function* (path: string, { name, defaultMode, items }: NonNullable<Volume["configMap"]>): Iterable<FieldError> {
    if (!name) yield required(child(path, "name"));
    yield* keyedFiles(path, defaultMode, items);
  },
  azureFile: sourceChecks.azureFile, vsphereVolume: sourceChecks.vsphereVolume, photonPersistentDisk: sourceChecks.photonPersistentDisk,
  portworxVolume: sourceChecks.portworxVolume, azureDisk: sourceChecks.azureDisk, storageos: sourceChecks.storageos,
  projected: (path: string, source: NonNullable<Volume["projected"]>, { rules }: Context) => validateProjected(path, source, rules),
  scaleIO: sourceChecks.scaleIO, csi: validateCsi, ephemeral: validateEphemeral, image: validateImage,
};

function* keyedFiles(path: string, defaultMode: number | undefined, items: readonly KeyToPath[] | undefined): Iterable<FieldError> {
  yield* fileMode(child(path, "defaultMode"), defaultMode);
  for (const [i, item] of (items ?? []).entries()) yield* validateKeyToPath(index(child(path, "items"), i), item);
}

const ISCSI_NAME_LENGTH_MAX = 64;

function* iscsiNameLength(path: string, { name, iscsi }: Volume): Iterable<FieldError> {
  if (iscsi?.initiatorName !== undefined && byteLength(`${name}:${iscsi.targetPortal ?? ""}`) > ISCSI_NAME_LENGTH_MAX)
    yield invalid(child(path, "name"), name, "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.");
}

function* validateCsi(path: string, { driver, nodePublishSecretRef }: CSIVolumeSource): Iterable<FieldError> {
  yield* csiDriverName(child(path, "driver"), driver);
  if (!nodePublishSecretRef) return;
  const name = nodePublishSecretRef.name;
  if (!name) yield required(child(path, "nodePublishSecretRef", "name"));
  else yield* problems(child(path, "name"), name, dns1123Subdomain(name));
}

function* validateEphemeral(path: string, { volumeClaimTemplate }: EphemeralVolumeSource): Iterable<FieldError> {
  if (!volumeClaimTemplate) yield required(child(path, "volumeClaimTemplate"));
  else yield* validateClaimTemplate(child(path, "volumeClaimTemplate"), volumeClaimTemplate);
}

/** The claim is named after pod and volume. */
function* claimName(path: string, volumeName: string, podName: string | undefined): Iterable<FieldError> {
  if (!podName || !volumeName) return;
  const name = `${podName}-${volumeName}`;
  for (const text of dns1123Subdomain(name)) yield invalid(child(path, "name"), volumeName, `PVC name ${goQuote(name)}: ${text}`);
}

function* validateImage(path: string, { reference, pullPolicy }: ImageVolumeSource, { rules }: Context): Iterable<FieldError> {
  if (rules.isPod && !reference) yield required(child(path, "reference"));
  yield* oneOf(child(path, "pullPolicy"), pullPolicy, ["Always", "IfNotPresent", "Never"]);
}
