/** Small questions about a pod's spec that many parts of the kubelet ask. */
import type { Container, EphemeralContainer, ObjectReference, Pod, PodSpec } from "../../core/api/gen/core.v1.ts";

export type ContainerKind = "container" | "init" | "ephemeral";

/** A container of any kind: what an EphemeralContainer adds is asked for where it matters. */
export interface NamedContainer { readonly kind: ContainerKind; readonly container: Container | EphemeralContainer }

export function allContainers(spec: PodSpec): NamedContainer[] {
  return [
    ...(spec.initContainers ?? []).map((container) => ({ kind: "init" as const, container })),
    ...spec.containers.map((container) => ({ kind: "container" as const, container })),
    ...(spec.ephemeralContainers ?? []).map((container) => ({ kind: "ephemeral" as const, container })),
  ];
}

export function findContainer(spec: PodSpec, name: string): NamedContainer | undefined {
  return allContainers(spec).find(({ container }) => container.name === name);
}

/** An init container that stays: restartPolicy Always. */
export function isSidecar(container: Container | EphemeralContainer): boolean {
  return container.restartPolicy === "Always";
}

/** What the container's own rules say about its end with `exitCode`: the first that fits. Source: kubernetes v1.36 pkg/api/v1/pod/util.go */
export function restartRule({ restartPolicy, restartPolicyRules = [] }: Container | EphemeralContainer, exitCode: number): string | undefined {
  if (restartPolicy === undefined) return undefined;
  return restartPolicyRules.find(({ exitCodes }) => exitCodes !== undefined && (exitCodes.operator === "In" || exitCodes.operator === "NotIn") && (exitCodes.values ?? []).includes(exitCode) === (exitCodes.operator === "In"))?.action;
}

/** Whether a container that ended with `exitCode` runs again, by its own rules, its own policy, or the pod's. */
export function restartsAfter(container: Container | EphemeralContainer, spec: PodSpec, exitCode: number): boolean {
  const action = restartRule(container, exitCode);
  if (action === "Restart" || action === "RestartAllContainers") return true;
  const policy = container.restartPolicy ?? spec.restartPolicy ?? "Always";
  return policy === "Always" || (policy === "OnFailure" && exitCode !== 0);
}

/** Some container's end may start them all anew. */
export function mayRestartAll({ containers, initContainers = [] }: PodSpec): boolean {
  return [...initContainers, ...containers].some(({ restartPolicyRules = [] }) => restartPolicyRules.some(({ action }) => action === "RestartAllContainers"));
}

export function isHostNetwork(pod: Pod): boolean {
  return pod.spec.hostNetwork === true;
}

export function usesUserNamespace(pod: Pod): boolean {
  return pod.spec.hostUsers === false;
}

/** As upstream writes a pod in messages: name_namespace(uid). */
export function formatPod(pod: Pod): string {
  return `${pod.metadata.name}_${pod.metadata.namespace ?? ""}(${pod.metadata.uid})`;
}

export function podReference(pod: Pod): ObjectReference {
  const { namespace, name, uid, resourceVersion } = pod.metadata;
  return { apiVersion: "v1", kind: "Pod", namespace, name, uid, resourceVersion };
}

const FIELD_OF_KIND: Readonly<Record<ContainerKind, string>> = { container: "containers", init: "initContainers", ephemeral: "ephemeralContainers" };

/** The pod, pointing at one of its containers: spec.containers{web}. */
export function containerReference(pod: Pod, { kind, container }: NamedContainer): ObjectReference {
  return { ...podReference(pod), fieldPath: `spec.${FIELD_OF_KIND[kind]}{${container.name}}` };
}

export function isTerminalPhase(phase: string | undefined): boolean {
  return phase === "Succeeded" || phase === "Failed";
}

export const CONFIG_SOURCE = "kubernetes.io/config.source";
/** When this kubelet has seen the pod first. */
export const CONFIG_SEEN = "kubernetes.io/config.seen";

/** Read from a manifest on this machine, not from the API server. */
export function isStaticPod(pod: Pod): boolean {
  const source = pod.metadata.annotations?.[CONFIG_SOURCE];
  return source !== undefined && source !== "api";
}

/** A pod of the API server's, wherever and since when it claims to be: what manifests of this machine may, it may not. Both are told to its runtime and to its containers. Source: kubernetes v1.36 pkg/kubelet/config/config.go (merge) */
export function fromApi(pod: Pod, seenAt: string): Pod {
  return { ...pod, metadata: { ...pod.metadata, annotations: { ...pod.metadata.annotations, [CONFIG_SEEN]: seenAt, [CONFIG_SOURCE]: "api" } } };
}

/** The API server's image of a static pod. */
export function isMirrorPod(pod: Pod): boolean {
  return pod.metadata.annotations?.["kubernetes.io/config.mirror"] !== undefined;
}

/** Runs whatever the node is short of. Source: kubernetes v1.36 pkg/kubelet/types/pod_update.go IsCriticalPod */
export function isCriticalPod(pod: Pod): boolean {
  return isStaticPod(pod) || isMirrorPod(pod) || (pod.spec.priority ?? 0) >= 2_000_000_000;
}
