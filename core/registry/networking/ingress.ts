/**
 * Ingress (networking.k8s.io/v1): which service answers which host and path from outside.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/service-resources/ingress-v1/
 * Source: kubernetes v1.36 pkg/registry/networking/ingress/strategy.go, pkg/apis/networking/validation/validation.go
 */
import type { HTTPIngressPath, Ingress, IngressBackend, IngressLoadBalancerIngress, IngressRule, IngressServiceBackend, IngressTLS } from "../../api/gen/networking.v1.ts";
import { child, type FieldError, index, invalid, notSupported, required } from "../../api/meta/field-error.ts";
import { dns1123Subdomain, portName, portNumber, wildcardDns1123Subdomain } from "../../api/meta/names.ts";
import { familyOf, ingressWarnings, legacyIp } from "../core/checks/ip.ts";
import { isDns1123Label, isDns1123Subdomain, problems } from "../core/checks/values.ts";
import { statusPart } from "../core/status-part.ts";
import { defineResource } from "../generic/resource.ts";
import { validateTypedReference } from "./typed-reference.ts";

const CLASS_ANNOTATION = "kubernetes.io/ingress.class";
const NO_IP = "must be a DNS name, not an IP address";

export const ingresses = defineResource<Ingress>({
  group: "networking.k8s.io", version: "v1", kind: "Ingress", plural: "ingresses",
  prepareForCreate(ingress) { ingress.status = { loadBalancer: {} }; },

  *validate({ metadata, spec }, old) {
    const { rules = [], defaultBackend, tls = [], ingressClassName } = spec;
    if (rules.length === 0 && !defaultBackend) yield { ...invalid("spec", spec.rules ?? null, "either `defaultBackend` or `rules` must be specified"), shows: "spec.rules" };
    if (defaultBackend) yield* validateBackend("spec.defaultBackend", defaultBackend);
    const allowWildcards = (old?.spec.rules ?? []).some((rule) => rule.host?.includes("*") && isWrong(validateHttp("", rule)));
    for (const [i, rule] of rules.entries()) yield* validateRule(index("spec.rules", i), rule, allowWildcards);
    const allowSecrets = (old?.spec.tls ?? []).some(({ secretName }) => secretName && dns1123Subdomain(secretName).length > 0);
    for (const [i, part] of tls.entries()) yield* validateTls(index("spec.tls", i), part, allowSecrets);
    if (ingressClassName !== undefined) yield* isDns1123Subdomain("spec.ingressClassName", ingressClassName);
    const annotation = metadata.annotations?.[CLASS_ANNOTATION];
    if (!old && annotation !== undefined && ingressClassName !== undefined && annotation !== ingressClassName)
      yield invalid(child("annotations", CLASS_ANNOTATION), annotation, "must match `ingressClassName` when both are specified");
  },
  *warnings({ metadata, spec }, old) {
    if (!old && metadata.annotations?.[CLASS_ANNOTATION] !== undefined && spec.ingressClassName === undefined)
      yield `annotation "${CLASS_ANNOTATION}" is deprecated, please use 'spec.ingressClassName' instead`;
  },

  subresources: {
    status: statusPart<Ingress>({
      *validate({ status }, old) {
        const known = new Set((old.status?.loadBalancer?.ingress ?? []).flatMap(({ ip }) => (ip ? [ip] : [])));
        for (const [i, point] of (status?.loadBalancer?.ingress ?? []).entries()) yield* validatePoint(index("status.loadBalancer.ingress", i), point, known);
      },
      warnings: ({ status }) => ingressWarnings(status?.loadBalancer?.ingress),
    }),
  },
});

function isWrong(errors: Iterable<FieldError>): boolean { return !errors[Symbol.iterator]().next().done; }

function* validateRule(path: string, rule: IngressRule, allowWildcards: boolean): Iterable<FieldError> {
  const { host = "" } = rule;
  const isWildcard = host.includes("*");
  const hostPath = child(path, "host");
  if (host !== "") {
    if (familyOf(host)) yield invalid(hostPath, host, NO_IP);
    yield* problems(hostPath, host, isWildcard ? wildcardDns1123Subdomain(host) : dns1123Subdomain(host));
  }
  if (!isWildcard || !allowWildcards) yield* validateHttp(path, rule);
}

function* validateHttp(path: string, { http }: IngressRule): Iterable<FieldError> {
  if (!http) return;
  const at = child(path, "http", "paths");
  if (!http.paths?.length) yield required(at);
  for (const [i, route] of (http.paths ?? []).entries()) yield* validatePath(index(at, i), route);
}

function* validatePath(path: string, { path: route = "", pathType, backend }: HTTPIngressPath): Iterable<FieldError> {
  if (pathType == null) { yield required(child(path, "pathType"), "pathType must be specified"); return; }
  const at = child(path, "path");
  switch (pathType) {
    case "Exact": case "Prefix":
      if (!route.startsWith("/")) yield invalid(at, route, "must be an absolute path");
      for (const part of ["//", "/./", "/../", "%2f", "%2F"]) if (route.includes(part)) yield invalid(at, route, `must not contain '${part}'`);
      for (const end of ["/..", "/."]) if (route.endsWith(end)) yield invalid(at, route, `cannot end with '${end}'`);
      break;
    case "ImplementationSpecific":
      if (route !== "" && !route.startsWith("/")) yield invalid(at, route, "must be an absolute path");
      break;
    default:
      yield notSupported(child(path, "pathType"), pathType, ["Exact", "ImplementationSpecific", "Prefix"]);
  }
  yield* validateBackend(child(path, "backend"), backend);
}

function* validateBackend(path: string, { service, resource }: IngressBackend): Iterable<FieldError> {
  if (resource && service) yield invalid(path, "", "cannot set both resource and service backends");
  else if (resource) yield* validateTypedReference(child(path, "resource"), resource);
  else if (service) yield* validateService(path, service);
  else yield invalid(path, "", "resource or service backend is required");
}

function* validateService(path: string, { name, port: { name: portText = "", number = 0 } = {} }: IngressServiceBackend): Iterable<FieldError> {
  const at = child(path, "service");
  if (!name) yield required(child(at, "name"));
  else yield* isDns1123Label(child(at, "name"), name);
  if (portText !== "" && number !== 0) yield invalid(path, "", "cannot set both port name & port number");
  else if (portText !== "") yield* problems(child(at, "port", "name"), portText, portName(portText));
  else if (number !== 0) yield* problems(child(at, "port", "number"), number, portNumber(number));
  else yield required(path, "port name or number is required");
}

function* validateTls(path: string, { hosts = [], secretName = "" }: IngressTLS, allowSecrets: boolean): Iterable<FieldError> {
  for (const [i, host] of hosts.entries()) yield* problems(index(child(path, "hosts"), i), host, host.includes("*") ? wildcardDns1123Subdomain(host) : dns1123Subdomain(host));
  if (!allowSecrets && secretName !== "") yield* isDns1123Subdomain(child(path, "secretName"), secretName);
}

function* validatePoint(path: string, { ip, hostname }: IngressLoadBalancerIngress, known: ReadonlySet<string>): Iterable<FieldError> {
  if (ip) yield* legacyIp(child(path, "ip"), ip, known);
  if (!hostname) return;
  yield* isDns1123Subdomain(child(path, "hostname"), hostname);
  if (familyOf(hostname)) yield invalid(child(path, "hostname"), hostname, NO_IP);
}
