/** What the API fills in for services. Source: kubernetes v1.36 pkg/apis/core/v1/defaults.go SetDefaults_Service */
import type { Service } from "../../../api/gen/core.v1.ts";
import { isExternallyAccessible } from "./shape.ts";

const SESSION_SECONDS_DEFAULT = 10_800;

export function defaultService(service: Service): void {
  const spec = (service.spec ??= {});
  spec.sessionAffinity ||= "None";
  if (spec.sessionAffinity === "None") delete spec.sessionAffinityConfig;
  if (spec.sessionAffinity === "ClientIP" && spec.sessionAffinityConfig?.clientIP?.timeoutSeconds === undefined)
    spec.sessionAffinityConfig = { clientIP: { timeoutSeconds: SESSION_SECONDS_DEFAULT } };
  spec.type ||= "ClusterIP";
  for (const port of spec.ports ?? []) {
    port.protocol ||= "TCP";
    port.targetPort ||= port.port;
  }
  if (isExternallyAccessible(service)) spec.externalTrafficPolicy ||= "Cluster";
  if (spec.type === "ClusterIP" || spec.type === "NodePort" || spec.type === "LoadBalancer") spec.internalTrafficPolicy ??= "Cluster";
  if (spec.type !== "LoadBalancer") return;
  spec.allocateLoadBalancerNodePorts ??= true;
  for (const ingress of service.status?.loadBalancer?.ingress ?? []) if (ingress.ip) ingress.ipMode ??= "VIP";
}
