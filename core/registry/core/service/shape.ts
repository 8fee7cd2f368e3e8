/** What a service needs, by its type. Source: kubernetes v1.36 pkg/api/service/util.go, pkg/registry/core/service/strategy.go */
import type { Service } from "../../../api/gen/core.v1.ts";

type S = Readonly<Service>;

/** `clusterIP: None`. */
export function isHeadless({ spec }: S): boolean { return spec.clusterIPs?.length === 1 && spec.clusterIPs[0] === "None"; }
export function needsClusterIp({ spec }: S): boolean { return spec.type !== "ExternalName"; }
/** By its type alone, whether or not it lets the load balancer do without. */
export function mayHaveNodePorts({ spec }: S): boolean { return spec.type === "NodePort" || spec.type === "LoadBalancer"; }
export function needsNodePorts({ spec }: S): boolean {
  return spec.type === "NodePort" || (spec.type === "LoadBalancer" && spec.allocateLoadBalancerNodePorts !== false);
}
export function needsHealthCheck({ spec }: S): boolean { return spec.type === "LoadBalancer" && spec.externalTrafficPolicy === "Local"; }
export function isExternallyAccessible({ spec }: S): boolean {
  return spec.type === "LoadBalancer" || spec.type === "NodePort" || (spec.type === "ClusterIP" && (spec.externalIPs ?? []).length > 0);
}

export function nodePortsOf({ spec }: S): number[] { return (spec.ports ?? []).flatMap(({ nodePort }) => (nodePort ? [nodePort] : [])); }

export function sameList(a: readonly string[] | undefined, b: readonly string[] | undefined): boolean {
  return (a?.length ?? 0) === (b?.length ?? 0) && (a ?? []).every((item, i) => item === b![i]);
}
