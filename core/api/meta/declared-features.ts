/**
 * Features that nodes declare in status.declaredFeatures, and what of a pod takes a node that has them. Only those that came lately are declared: what every node of a
 * supported version can do needs no word.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/component-helpers/nodedeclaredfeatures/features (names and rules)
 */
import type { Container, PodSpec } from "../gen/core.v1.ts";

export type DeclaredFeature = "ExtendWebSocketsToKubelet" | "InPlacePodLevelResourcesVerticalScaling" | "InPlacePodVerticalScalingInitContainers" | "RestartAllContainersOnContainerExits" | "UserNamespacesHostNetworkSupport";

/** What a pod of this spec cannot run without. */
export function featuresToRun(spec: Readonly<PodSpec>): DeclaredFeature[] {
  const restartsAll = [...(spec.containers ?? []), ...(spec.initContainers ?? [])].some(({ restartPolicyRules = [] }) => restartPolicyRules.some(({ action }) => action === "RestartAllContainers"));
  return [
    ...(restartsAll ? ["RestartAllContainersOnContainerExits" as const] : []),
    ...(spec.hostNetwork && spec.hostUsers === false ? ["UserNamespacesHostNetworkSupport" as const] : []),
  ];
}

/** What the node of a pod must be able to do for the pod to become so. `same`: whether two values say the same to the API. */
export function featuresToChange(before: Readonly<PodSpec>, after: Readonly<PodSpec>, same: (a: unknown, b: unknown) => boolean): DeclaredFeature[] {
  const isOrdinary = ({ restartPolicy }: Readonly<Container>): boolean => restartPolicy !== "Always";
  const initChanges = (before.initContainers ?? []).some((container, i) => isOrdinary(container) && !same(container.resources ?? {}, after.initContainers?.[i]?.resources ?? {}));
  return [
    ...(!same(before.resources ?? {}, after.resources ?? {}) ? ["InPlacePodLevelResourcesVerticalScaling" as const] : []),
    ...(initChanges ? ["InPlacePodVerticalScalingInitContainers" as const] : []),
  ];
}
