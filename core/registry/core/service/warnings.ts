/** What of a service is ignored, deprecated or oddly written. Source: kubernetes v1.36 pkg/api/service/warnings.go */
import { index } from "../../../api/meta/field-error.ts";
import type { Service } from "../../../api/gen/core.v1.ts";
import { cidrWarnings, ipWarnings } from "../checks/ip.ts";

export function* serviceWarnings({ spec, metadata }: Readonly<Service>): Iterable<string> {
  const { type, externalIPs = [], loadBalancerIP = "", externalName = "" } = spec;
  if (metadata.annotations?.["service.kubernetes.io/topology-aware-hints"] !== undefined)
    yield "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use service.kubernetes.io/topology-mode instead";
  const headless = type === "ClusterIP" && spec.clusterIP === "None";
  if (spec.clusterIP && spec.clusterIP !== "None") for (const [i, ip] of (spec.clusterIPs ?? []).entries()) yield* ipWarnings(index("spec.clusterIPs", i), ip);
  if (headless) {
    if (loadBalancerIP) yield "spec.loadBalancerIP is ignored for headless services";
    if (externalIPs.length > 0) yield "spec.externalIPs is ignored for headless services";
    if (spec.sessionAffinity !== "None") yield "spec.SessionAffinity is ignored for headless services";
  }
  for (const [i, ip] of externalIPs.entries()) yield* ipWarnings(index("spec.externalIPs", i), ip);
  if (externalIPs.length > 0 && !headless && type !== "ExternalName") yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters";
  if (loadBalancerIP) yield* ipWarnings("spec.loadBalancerIP", loadBalancerIP);
  for (const [i, range] of (spec.loadBalancerSourceRanges ?? []).entries()) yield* cidrWarnings(index("spec.loadBalancerSourceRanges", i), range);
  if (type === "ExternalName" && externalIPs.length > 0) yield `spec.externalIPs is ignored when spec.type is "ExternalName"`;
  if (type !== "ExternalName" && externalName) yield `spec.externalName is ignored when spec.type is not "ExternalName"`;
  if (spec.trafficDistribution === "PreferClose") yield `spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"`;
}
