/**
 * Projected volumes: several sources in one directory, none of which may write another's file; and the files of ConfigMaps, Secrets and the downward API.
 *
 * Source: kubernetes v1.36 pkg/apis/core/validation/validation.go validateProjectionSources
 */
import { child, type FieldError, forbidden, index, invalid, notSupported, required, tooLong } from "../../../../api/meta/field-error.ts";
import type { ClusterTrustBundleProjection, DownwardAPIVolumeFile, KeyToPath, PodCertificateProjection, ProjectedVolumeSource, VolumeProjection } from "../../../../api/gen/core.v1.ts";
import { validateLabelSelector } from "../../../../api/meta/label-selector.ts";
import { fileMode, localNonReserved } from "../../checks/paths.ts";
import { isDomainPrefixedKey } from "../../checks/values.ts";
import { isKubernetesSigner, signerName, trustBundleName } from "../../../certificates/signer-name.ts";
import type { PodRules } from "../rules.ts";
import { validateFieldRef, validateResourceFieldRef } from "./env.ts";

const FILE_FIELD_PATHS = ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
const TOKEN_SECONDS_MIN = 10 * 60;
const TOKEN_SECONDS_MAX = 2 ** 32;
const KEY_TYPES = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];
const CERTIFICATE_SECONDS_MIN = 3600;
const CERTIFICATE_SECONDS_MAX = 91 * 24 * 3600;
const KUBERNETES_CERTIFICATE_SECONDS_MAX = 24 * 3600;
const ANNOTATIONS_BYTES_MAX = 256 * 1024;

export function* validateDownwardFile(path: string, { path: file, fieldRef, resourceFieldRef, mode }: DownwardAPIVolumeFile): Iterable<FieldError> {
  if (!file) yield required(child(path, "path"));
  yield* localNonReserved(child(path, "path"), file ?? "");
  if (fieldRef) {
    yield* validateFieldRef(child(path, "fieldRef"), fieldRef, FILE_FIELD_PATHS);
    if (resourceFieldRef) yield invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously");
  } else if (resourceFieldRef) yield* validateResourceFieldRef(child(path, "resourceFieldRef"), resourceFieldRef, true);
  else yield required(path, "one of fieldRef and resourceFieldRef is required");
  yield* fileMode(child(path, "mode"), mode);
}

export function* validateKeyToPath(path: string, { key, path: file, mode }: KeyToPath): Iterable<FieldError> {
  if (!key) yield required(child(path, "key"));
  if (!file) yield required(child(path, "path"));
  yield* localNonReserved(child(path, "path"), file ?? "");
  yield* fileMode(child(path, "mode"), mode);
}

export function* validateProjected(path: string, { defaultMode, sources }: ProjectedVolumeSource, rules: PodRules): Iterable<FieldError> {
  yield* fileMode(child(path, "defaultMode"), defaultMode);
  const paths = new TakenPaths(path);
  for (const [i, source] of (sources ?? []).entries()) {
    const at = index(child(path, "sources"), i);
    yield* validateSource(path, at, source, paths, rules);
    if (Object.values(source).filter((part) => part !== undefined).length > 1) yield forbidden(at, "may not specify more than 1 volume type per source");
  }
}

/** The files of one volume. A file that two sources want is an error, told with the name of the later one. */
class TakenPaths {
  readonly #taken = new Set<string>();
  readonly #volumePath: string;
  constructor(volumePath: string) { this.#volumePath = volumePath; }

  *take(file: string, shown: string): Iterable<FieldError> {
    if (this.#taken.has(file)) yield invalid(this.#volumePath, shown, "conflicting duplicate paths");
    this.#taken.add(file);
  }
}

function* validateSource(volumePath: string, path: string, source: VolumeProjection, paths: TakenPaths, rules: PodRules): Iterable<FieldError> {
  const { secret, configMap, downwardAPI, serviceAccountToken, clusterTrustBundle, podCertificate } = source;
  if (secret) yield* validateKeyed(child(path, "secret"), secret, paths);
  if (configMap) yield* validateKeyed(child(path, "configMap"), configMap, paths);
  for (const file of downwardAPI?.items ?? []) {
    yield* validateDownwardFile(child(path, "downwardAPI"), file);
    if (file.path) yield* paths.take(file.path, file.path);
  }
  if (serviceAccountToken) {
    const at = child(path, "serviceAccountToken", "expirationSeconds");
    const seconds = serviceAccountToken.expirationSeconds ?? 0;
    if (seconds < TOKEN_SECONDS_MIN) yield invalid(at, seconds, "may not specify a duration less than 10 minutes");
    if (seconds > TOKEN_SECONDS_MAX) yield invalid(at, seconds, "may not specify a duration larger than 2^32 seconds");
    if (!serviceAccountToken.path) yield required(child(volumePath, "path"));
    else if (!rules.allowNonLocalTokenPath) yield* localNonReserved(child(volumePath, "path"), serviceAccountToken.path);
  }
  if (clusterTrustBundle) {
    yield* validateTrustBundle(child(path, "clusterTrustBundle"), clusterTrustBundle);
    yield* paths.take(clusterTrustBundle.path ?? "", clusterTrustBundle.path ?? "");
  }
  if (podCertificate) yield* validatePodCertificate(child(path, "podCertificate"), podCertificate, paths);
}

function* validateKeyed(path: string, { name, items }: { readonly name?: string | undefined; readonly items?: readonly KeyToPath[] | undefined }, paths: TakenPaths): Iterable<FieldError> {
  if (!name) yield required(child(path, "name"));
  for (const [i, item] of (items ?? []).entries()) {
    yield* validateKeyToPath(index(child(path, "items"), i), item);
    if (item.path) yield* paths.take(item.path, name ?? "");
  }
}

function* validateTrustBundle(path: string, bundle: ClusterTrustBundleProjection): Iterable<FieldError> {
  const { name, signerName: signer, labelSelector, path: file } = bundle;
  if (name !== undefined && signer !== undefined) yield invalid(path, bundle, "only one of name and signerName may be used");
  else if (name !== undefined) {
    const at = child(path, "name");
    if (name === "") yield required(at, "must be a valid object name");
    for (const text of trustBundleName(name)) yield invalid(at, name, `not a valid clustertrustbundlename: ${text}`);
    if (labelSelector) yield invalid(child(path, "labelSelector"), labelSelector, "labelSelector must be unset if name is specified");
  } else if (signer !== undefined) {
    if (signer === "") yield required(child(path, "signerName"), "must be a valid signer name");
    yield* signerName(child(path, "signerName"), signer);
    yield* validateLabelSelector(labelSelector, child(path, "labelSelector"));
  } else yield required(path, "either name or signerName must be specified");
  if (!file) yield required(child(path, "path"));
  yield* localNonReserved(child(path, "path"), file ?? "");
}

function* validatePodCertificate(path: string, projection: PodCertificateProjection, paths: TakenPaths): Iterable<FieldError> {
  const { keyType, maxExpirationSeconds: seconds, userAnnotations, signerName: signer } = projection;
  yield* signerName(child(path, "signerName"), signer);
  if (userAnnotations) yield* validateUserAnnotations(child(path, "userAnnotations"), userAnnotations);
  if (!KEY_TYPES.includes(keyType ?? "")) yield notSupported(child(path, "keyType"), keyType ?? "", KEY_TYPES);
  if (seconds !== undefined) {
    const at = child(path, "maxExpirationSeconds");
    const max = isKubernetesSigner(signer ?? "") ? KUBERNETES_CERTIFICATE_SECONDS_MAX : CERTIFICATE_SECONDS_MAX;
    if (seconds < CERTIFICATE_SECONDS_MIN) yield invalid(at, seconds, "if provided, maxExpirationSeconds must be >= 3600");
    if (seconds > max) yield invalid(at, seconds, `if provided, maxExpirationSeconds must be <= ${max}`);
  }
  let files = 0;
  for (const field of ["credentialBundlePath", "keyPath", "certificateChainPath"] as const) {
    const file = projection[field];
    if (!file) continue;
    files++;
    yield* localNonReserved(child(path, field), file);
    yield* paths.take(file, file);
  }
  if (files === 0) yield required(path, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath");
}

/** What is said to a signer of certificates of pods. */
export function* validateUserAnnotations(path: string, annotations: Readonly<Record<string, string>>): Iterable<FieldError> {
  let bytes = 0;
  for (const [name, value] of Object.entries(annotations)) {
    yield* isDomainPrefixedKey(path, name.toLowerCase());
    bytes += Buffer.byteLength(name) + Buffer.byteLength(value);
  }
  if (bytes > ANNOTATIONS_BYTES_MAX) yield tooLong(path, ANNOTATIONS_BYTES_MAX);
}
