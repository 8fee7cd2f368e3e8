/** Where volumes appear in a container: mounts of directories, devices of blocks. Source: kubernetes v1.36 pkg/apis/core/validation/validation.go ValidateVolumeMounts, ValidateVolumeDevices */
import { child, type FieldError, forbidden, index, invalid, notFound, notSupported, required } from "../../../../api/meta/field-error.ts";
import type { Container, Volume, VolumeMount } from "../../../../api/gen/core.v1.ts";
import { repeats } from "../../../../api/meta/linear.ts";
import { localDescending, noBacksteps } from "../../checks/paths.ts";

const PROPAGATIONS = ["Bidirectional", "HostToContainer", "None"];
const RECURSIVE_READ_ONLY = ["Disabled", "Enabled", "IfPossible"];

export function* validateMounts(path: string, container: Readonly<Container>, volumes: ReadonlyMap<string, Volume>): Iterable<FieldError> {
  const devices = new Map((container.volumeDevices ?? []).map(({ name, devicePath }) => [name, devicePath])); // of those with one name the last counts
  const devicePaths = new Set(devices.values());
  const mountPaths = new Set<string>();
  for (const [i, mount] of (container.volumeMounts ?? []).entries()) {
    const { name, mountPath, subPath, subPathExpr } = mount;
    const at = index(path, i);
    if (!name) yield required(child(at, "name"));
    if (!volumes.has(name)) yield notFound(child(at, "name"), name ?? "");
    if (!mountPath) yield required(child(at, "mountPath"));
    if (mountPaths.has(mountPath)) yield invalid(child(at, "mountPath"), mountPath, "must be unique");
    mountPaths.add(mountPath);
    if (devices.has(name)) yield invalid(child(at, "name"), name, "must not already exist in volumeDevices");
    if (devicePaths.has(mountPath)) yield invalid(child(at, "mountPath"), mountPath, "must not already exist as a path in volumeDevices");
    if (subPath) yield* localDescending(child(path, "subPath"), subPath);
    if (subPathExpr) {
      if (subPath) yield invalid(child(at, "subPathExpr"), subPathExpr, "subPathExpr and subPath are mutually exclusive");
      yield* localDescending(child(path, "subPathExpr"), subPathExpr);
    }
    yield* validatePropagation(child(path, "mountPropagation"), mount, container);
    yield* validateRecursiveReadOnly(child(path, "recursiveReadOnly"), mount);
  }
}

function* validatePropagation(path: string, { mountPropagation }: VolumeMount, container: Readonly<Container>): Iterable<FieldError> {
  if (mountPropagation === undefined) return;
  if (!PROPAGATIONS.includes(mountPropagation)) yield notSupported(path, mountPropagation, PROPAGATIONS);
  if (mountPropagation === "Bidirectional" && container.securityContext?.privileged !== true)
    yield forbidden(path, "Bidirectional mount propagation is available only to privileged containers");
}

function* validateRecursiveReadOnly(path: string, { recursiveReadOnly, readOnly, mountPropagation }: VolumeMount): Iterable<FieldError> {
  if (recursiveReadOnly === undefined || recursiveReadOnly === "Disabled") return;
  if (!RECURSIVE_READ_ONLY.includes(recursiveReadOnly)) { yield notSupported(path, recursiveReadOnly, RECURSIVE_READ_ONLY); return; }
  if (!readOnly) yield forbidden(path, "may only be specified when readOnly is true");
  if (mountPropagation !== undefined && mountPropagation !== "None") yield forbidden(path, "may only be specified when mountPropagation is None or not specified");
}

export function* validateDevices(path: string, container: Readonly<Container>, volumes: ReadonlyMap<string, Volume>): Iterable<FieldError> {
  const mounts = new Map((container.volumeMounts ?? []).map(({ name, mountPath }) => [name, mountPath]));
  const mountPaths = new Set(mounts.values());
  const isRepeated = repeats<string>();
  const paths = new Set<string>();
  for (const [i, { name, devicePath }] of (container.volumeDevices ?? []).entries()) {
    const [namePath, devicePathAt] = [child(index(path, i), "name"), child(index(path, i), "devicePath")];
    const volume = volumes.get(name);
    if (!name) yield required(namePath);
    if (name && isRepeated(name)) yield invalid(namePath, name, "must be unique");
    if (!volume) yield notFound(namePath, name ?? "");
    else if (!volume.persistentVolumeClaim && !volume.ephemeral) yield invalid(namePath, name, "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode");
    if (!devicePath) yield required(devicePathAt);
    const backsteps = devicePath && [...noBacksteps("", devicePath)].length > 0;
    if (paths.has(devicePath)) yield invalid(devicePathAt, devicePath, "must be unique");
    if (backsteps) yield invalid(devicePathAt, devicePath, "can not contain backsteps ('..')");
    else paths.add(devicePath);
    if (mounts.has(name)) yield invalid(namePath, name, "must not already exist in volumeMounts");
    if (mountPaths.has(devicePath)) yield invalid(devicePathAt, devicePath, "must not already exist as a path in volumeMounts");
  }
}
