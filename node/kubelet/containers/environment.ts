/**
 * The environment of a container: service variables, then envFrom, then env, later ones winning.
 *
 * Source: kubernetes v1.36 pkg/kubelet/kubelet_pods.go (makeEnvironmentVariables)
 */
import type { ConfigMap, Container, EnvVar, EphemeralContainer, ResourceFieldSelector, ResourceList, Secret } from "../../../core/api/gen/core.v1.ts";
import { unlessMissing } from "../objects/unless-missing.ts";
import { textOfBytes } from "./byte-text.ts";
import { expand, lengthBudget } from "./expansion.ts";
import { type FieldFacts, fieldValue, resourceValue } from "./field-reference.ts";

/** ConfigMaps and Secrets of the pod's namespace; throws the API server's NotFound. */
export interface ObjectSource {
  configMap(namespace: string, name: string): Promise<Readonly<ConfigMap>>;
  secret(namespace: string, name: string): Promise<Readonly<Secret>>;
}

export interface EnvironmentFacts extends FieldFacts {
  readonly container: Container | EphemeralContainer;
  readonly services: ReadonlyMap<string, string>;
  readonly objects: ObjectSource;
  readonly allocatable: ResourceList;
  /** Reads one variable of a file in a volume (fileKeyRef); undefined when it is not there. */
  readFileKey(volume: string, path: string, key: string): Promise<string | undefined>;
}

/** Throws an Error whose message is for the user: the container then waits with CreateContainerConfigError. */
export async function environmentOf(facts: EnvironmentFacts): Promise<Map<string, string>> {
  const { pod, container, services } = facts;
  const set = new Map<string, string>();
  const count = lengthBudget("environment variables");
  const put = (name: string, value: string): void => {
    count(name);
    count(value);
    set.set(name, value);
  };
  for (const { prefix = "", configMapRef, secretRef } of container.envFrom ?? []) {
    if (configMapRef) {
      const data = (await unlessMissing(configMapRef.optional, facts.objects.configMap(pod.metadata.namespace ?? "", configMapRef.name ?? "")))?.data;
      for (const [key, value] of Object.entries(data ?? {})) put(prefix + key, value);
    } else if (secretRef) {
      const data = (await unlessMissing(secretRef.optional, facts.objects.secret(pod.metadata.namespace ?? "", secretRef.name ?? "")))?.data;
      for (const [key, value] of Object.entries(data ?? {})) put(prefix + key, decodeBase64(value));
    }
  }
  for (const variable of container.env ?? []) {
    const value = variable.value ? expand(variable.value, (name) => set.get(name) ?? services.get(name)) : await valueFrom(variable, facts);
    if (value !== undefined) put(variable.name, value);
  }
  return new Map([...[...services].filter(([name]) => !set.has(name)), ...set]);
}

/** Undefined: an optional source is missing, the variable is not set. */
async function valueFrom({ valueFrom: source }: EnvVar, facts: EnvironmentFacts): Promise<string | undefined> {
  const { pod, objects, allocatable } = facts;
  const namespace = pod.metadata.namespace ?? "";
  if (!source) return "";
  if (source.fieldRef) return fieldValue(source.fieldRef.fieldPath, facts);
  if (source.resourceFieldRef) return resourceValue(source.resourceFieldRef, containerOf(source.resourceFieldRef, facts), { allocatable, podLevel: pod.spec.resources?.limits });
  if (source.configMapKeyRef) {
    const { name = "", key, optional } = source.configMapKeyRef;
    const found = await unlessMissing(optional, objects.configMap(namespace, name));
    const value = found?.data?.[key];
    if (found && value === undefined && !optional) throw new Error(`couldn't find key ${key} in ConfigMap ${namespace}/${name}`);
    return value;
  }
  if (source.secretKeyRef) {
    const { name = "", key, optional } = source.secretKeyRef;
    const found = await unlessMissing(optional, objects.secret(namespace, name));
    const value = found?.data?.[key];
    if (found && value === undefined && !optional) throw new Error(`couldn't find key ${key} in Secret ${namespace}/${name}`);
    return value === undefined ? undefined : decodeBase64(value);
  }
  if (source.fileKeyRef) {
    const { volumeName, path, key, optional } = source.fileKeyRef;
    const value = await facts.readFileKey(volumeName, path, key);
    if (value === undefined && !optional) throw new Error(`environment variable key "${key}" not found in file "${path}"`);
    return value;
  }
  return "";
}

/** The one that is named, otherwise the one whose environment it is. */
function containerOf({ containerName }: ResourceFieldSelector, { pod, container }: EnvironmentFacts): Container | EphemeralContainer {
  if (!containerName) return container;
  const isNamed = ({ name }: Container): boolean => name === containerName;
  const named = pod.spec.containers.find(isNamed) ?? pod.spec.initContainers?.find(isNamed);
  if (!named) throw new Error(`container ${containerName} not found`);
  return named;
}

function decodeBase64(text: string): string { return textOfBytes(Buffer.from(text, "base64")); }
