/**
 * Services as environment variables: REDIS_SERVICE_HOST, REDIS_SERVICE_PORT, and the older link variables.
 * The API server's own service is there for every pod, those of the pod's namespace when it wants links.
 *
 * Source: kubernetes v1.36 pkg/kubelet/envvars/envvars.go, pkg/kubelet/kubelet_pods.go (getServiceEnvVarMap)
 */
import type { Service } from "../../../core/api/gen/core.v1.ts";

export function serviceEnvironment(services: Iterable<Service>, namespace: string, links: boolean): Map<string, string> {
  const chosen = new Map<string, Service>();
  for (const service of services) {
    const { name, namespace: home } = service.metadata;
    const { clusterIP, type } = service.spec;
    if (!clusterIP || clusterIP === "None" || type === "ExternalName") continue;
    if (home === namespace && links) chosen.set(name, service);
    else if (home === "default" && name === "kubernetes" && !chosen.has(name)) chosen.set(name, service);
  }
  return new Map([...chosen.values()].flatMap(variablesOf));
}

function variablesOf({ metadata, spec }: Service): [string, string][] {
  const prefix = variableName(metadata.name);
  const ip = spec.clusterIP ?? "";
  const ports = spec.ports ?? [];
  const result: [string, string][] = [[`${prefix}_SERVICE_HOST`, ip]];
  if (ports[0]) result.push([`${prefix}_SERVICE_PORT`, String(ports[0].port)]);
  for (const { name, port } of ports) if (name) result.push([`${prefix}_SERVICE_PORT_${variableName(name)}`, String(port)]);
  for (const [i, { port, protocol = "TCP" }] of ports.entries()) {
    const url = `${protocol.toLowerCase()}://${ip.includes(":") ? `[${ip}]` : ip}:${port}`;
    const link = `${prefix}_PORT_${port}_${protocol.toUpperCase()}`;
    if (i === 0) result.push([`${prefix}_PORT`, url]);
    result.push([link, url], [`${link}_PROTO`, protocol.toLowerCase()], [`${link}_PORT`, String(port)], [`${link}_ADDR`, ip]);
  }
  return result;
}

function variableName(name: string): string {
  return name.replaceAll("-", "_").toUpperCase();
}
