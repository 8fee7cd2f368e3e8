/** Environment variables and where their values come from. Source: kubernetes v1.36 pkg/apis/core/validation/validation.go ValidateEnv, ValidateEnvFrom */
import { child, type FieldError, index, invalid, notSupported, required } from "../../../../api/meta/field-error.ts";
import type { ConfigMapKeySelector, EnvFromSource, EnvVar, FileKeySelector, ObjectFieldSelector, ResourceFieldSelector, SecretKeySelector } from "../../../../api/gen/core.v1.ts";
import { configMapKey, dns1123Subdomain, nameProblems, relaxedEnvVarName } from "../../../../api/meta/names.ts";
import { compareQuantities, parseQuantity } from "../../../../api/meta/quantity.ts";
import { noBacksteps } from "../../checks/paths.ts";
import { isDns1123Label, isQualifiedName, problems } from "../../checks/values.ts";

const ENV_FIELD_PATHS = [
  "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
];
const FIELD_PATHS: ReadonlySet<string> = new Set([...ENV_FIELD_PATHS, "metadata.annotations", "metadata.labels", "spec.restartPolicy", "spec.schedulerName", "status.phase"]);
const RESOURCES = ["limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory"];
const HUGEPAGES = ["limits.hugepages-", "requests.hugepages-"];
const BYTE_DIVISORS = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

export function* validateEnv(path: string, vars: readonly EnvVar[]): Iterable<FieldError> {
  for (const [i, variable] of vars.entries()) {
    const at = index(path, i);
    if (!variable.name) yield required(child(at, "name"));
    else yield* problems(child(at, "name"), variable.name, relaxedEnvVarName(variable.name));
    if (variable.valueFrom) yield* validateValueFrom(child(at, "valueFrom"), variable.valueFrom, variable.value);
  }
}

function* validateValueFrom(path: string, from: NonNullable<EnvVar["valueFrom"]>, value: string | undefined): Iterable<FieldError> {
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef } = from;
  if (fieldRef) yield* validateFieldRef(child(path, "fieldRef"), fieldRef, ENV_FIELD_PATHS);
  if (resourceFieldRef) yield* validateResourceFieldRef(child(path, "resourceFieldRef"), resourceFieldRef, false);
  if (configMapKeyRef) yield* validateKeyRef(child(path, "configMapKeyRef"), configMapKeyRef);
  if (secretKeyRef) yield* validateKeyRef(child(path, "secretKeyRef"), secretKeyRef);
  if (fileKeyRef) yield* validateFileKeyRef(child(path, "fileKeyRef"), fileKeyRef);
  const sources = [fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef].filter((source) => source !== undefined).length;
  if (sources === 0) yield invalid(path, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`");
  else if (value) yield invalid(path, "", "may not be specified when `value` is not empty");
  else if (sources > 1) yield invalid(path, "", "may not have more than one field specified at a time");
}

/** `allowed`: the whole paths; entries of labels and annotations may be named anywhere. */
export function* validateFieldRef(path: string, { apiVersion, fieldPath }: ObjectFieldSelector, allowed: readonly string[]): Iterable<FieldError> {
  const at = child(path, "fieldPath");
  if (!apiVersion) { yield required(child(path, "apiVersion")); return; }
  if (!fieldPath) { yield required(at); return; }
  const entry = entryOf(fieldPath);
  const wrong = apiVersion !== "v1" ? `unsupported pod version: ${apiVersion}`
    : entry && entry.map !== "metadata.annotations" && entry.map !== "metadata.labels" ? `field label does not support subscript: ${fieldPath}`
      : !entry && fieldPath !== "spec.host" && !FIELD_PATHS.has(fieldPath) ? `field label not supported: ${fieldPath}` : undefined;
  if (wrong !== undefined) { yield invalid(at, fieldPath, `error converting fieldPath: ${wrong}`); return; }
  if (entry) {
    const { map, name } = entry;
    yield* isQualifiedName(path, map === "metadata.annotations" ? name.toLowerCase() : name);
    return;
  }
  const converted = fieldPath === "spec.host" ? "spec.nodeName" : fieldPath;
  if (!allowed.includes(converted)) yield notSupported(at, converted, allowed.toSorted());
}

/** "metadata.labels['app']" */
function entryOf(fieldPath: string): { readonly map: string; readonly name: string } | undefined {
  const at = fieldPath.indexOf("['");
  return at > 0 && at + 2 <= fieldPath.length - 2 && fieldPath.endsWith("']") ? { map: fieldPath.slice(0, at), name: fieldPath.slice(at + 2, -2) } : undefined;
}

export function* validateResourceFieldRef(path: string, { containerName, resource, divisor }: ResourceFieldSelector, isVolume: boolean): Iterable<FieldError> {
  if (isVolume && !containerName) yield required(child(path, "containerName"));
  else if (!resource) yield required(child(path, "resource"));
  else if (!RESOURCES.includes(resource) && !HUGEPAGES.some((prefix) => resource.startsWith(prefix))) yield notSupported(child(path, "resource"), resource, RESOURCES);
  if (divisor && resource && compareQuantities(divisor, "0") !== 0) yield* validateDivisor(child(path, "divisor"), resource, parseQuantity(divisor).toString());
}

function* validateDivisor(path: string, resource: string, divisor: string): Iterable<FieldError> {
  if (resource === "limits.cpu" || resource === "requests.cpu") {
    if (divisor !== "1m" && divisor !== "1") yield invalid(path, resource, "only divisor's values 1m and 1 are supported with the cpu resource");
    return;
  }
  const what = resource === "limits.memory" || resource === "requests.memory" ? "memory"
    : resource === "limits.ephemeral-storage" || resource === "requests.ephemeral-storage" ? "local ephemeral storage"
    : HUGEPAGES.some((prefix) => resource.startsWith(prefix)) ? "hugepages" : undefined;
  if (what !== undefined && !BYTE_DIVISORS.includes(divisor)) yield invalid(path, resource, `only divisor's values ${BYTE_DIVISORS.join(", ")} are supported with the ${what} resource`);
}

function* validateKeyRef(path: string, { name, key }: ConfigMapKeySelector | SecretKeySelector): Iterable<FieldError> {
  yield* problems(child(path, "name"), name ?? "", dns1123Subdomain(name ?? ""));
  if (!key) yield required(child(path, "key"));
  else yield* problems(child(path, "key"), key, configMapKey(key));
}

function* validateFileKeyRef(path: string, { key, volumeName, path: file }: FileKeySelector): Iterable<FieldError> {
  if (!key) yield required(child(path, "key"));
  else yield* problems(child(path, "key"), key, relaxedEnvVarName(key));
  if (!volumeName) yield required(child(path, "volumeName"));
  else yield* isDns1123Label(child(path, "volumeName"), volumeName);
  if (!file) yield required(child(path, "path"));
  else yield* noBacksteps(child(path, "path"), file);
}

export function* validateEnvFrom(path: string, sources: readonly EnvFromSource[]): Iterable<FieldError> {
  for (const [i, { prefix, configMapRef, secretRef }] of sources.entries()) {
    const at = index(path, i);
    if (prefix) yield* problems(child(at, "prefix"), prefix, relaxedEnvVarName(prefix));
    for (const [field, ref] of [["configMapRef", configMapRef], ["secretRef", secretRef]] as const) {
      if (!ref) continue;
      const namePath = child(at, field, "name");
      if (!ref.name) yield required(namePath);
      else yield* problems(namePath, ref.name, nameProblems("dns1123Subdomain", ref.name, { prefix: true }));
    }
    if (!configMapRef && !secretRef) yield invalid(path, "", "must specify one of: `configMapRef` or `secretRef`");
    else if (configMapRef && secretRef) yield invalid(path, "", "may not have more than one field specified at a time");
  }
}
