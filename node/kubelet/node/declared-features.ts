/** What this node declares it can do, beyond what every node of a supported version can. Source: kubernetes v1.36 pkg/kubelet/kubelet_node_declared_features.go */
import type { DeclaredFeature } from "../../../core/api/meta/declared-features.ts";
import type { StatusResponse } from "../../cri/gen/runtime.v1.ts";

/** In order of the alphabet, as the API wants it. Pods that need another are kept away. */
const ALWAYS: readonly DeclaredFeature[] = ["ExtendWebSocketsToKubelet", "InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers", "RestartAllContainersOnContainerExits"];
const USER_NAMESPACES: DeclaredFeature = "UserNamespacesHostNetworkSupport";

/** `gates`: as the node's configuration has them. Pods with ids of their own on the host's network are the runtime's to make. */
export function declaredFeatures(gates: Readonly<Record<string, boolean>>, status: StatusResponse | undefined): DeclaredFeature[] {
  return [...ALWAYS, ...(gates[USER_NAMESPACES] && status?.features?.user_namespaces_host_network ? [USER_NAMESPACES] : [])];
}
