/**
 * What Gateways and their routes ask for: listeners with routes and certificates, and what their status says. Pure.
 *
 *   GatewayClass (ours) ← Gateway: listeners for HTTP and HTTPS on any port ← HTTPRoute and GRPCRoute, if their namespace and a host of theirs are welcome there
 *                                  listeners for TLS, passed through or ended here ← TLSRoute; for TCP ← TCPRoute
 *
 * A Gateway is served where Ingresses are: by every node, at ports that gateway-fronts.ts gives out. Refused in the status are other protocols, parameters (there is no kind of them),
 * RegularExpression matches, and filters other than RequestHeaderModifier, ResponseHeaderModifier, RequestRedirect, URLRewrite, RequestMirror and CORS.
 *
 * API: https://gateway-api.sigs.k8s.io/reference/spec/
 */
import type { Labels } from "../api/meta/label-requirement.ts";
import { labelSelector } from "../api/meta/label-selector.ts";
import { keyOf, type ObjectKey, objectKey } from "../api/meta/object-meta.ts";
import { planBackendTls, type PlannedAncestor } from "./backend-tls.ts";
import { condition, type StatusCondition, type Problem } from "./conditions.ts";
import { ageOf, type Fronts, listenerProblems, type NodePorts, planFronts, type Protocol, terminates } from "./gateway-fronts.ts";
import { type Accepted, gatewayStatus, isKindOf, parametersProblem, type PlannedGatewayStatus, type Reached } from "./gateway-status.ts";
import { type AnyRoute, type BackendTlsPolicy, GATEWAY_CONTROLLER, GATEWAY_GROUP, type Gateway, type GatewayClass, type GatewayResources, type ParentRef, type ParentStatus } from "./gateway-types.ts";
import { grpcRuleSet } from "./grpc-route-rules.ts";
import { type References, type RuleSet, ruleSet } from "./http-route-rules.ts";
import type { CertificateUse } from "./ingress-routes.ts";
import type { Route } from "./route-table.ts";
import { tcpRuleSet, tlsRuleSet } from "./tls-route-rules.ts";

export interface GatewayWorld extends GatewayResources, Omit<References, "tlsOf">, NodePorts {
  readonly namespaces: ReadonlyMap<string, Labels>;
  /** Where a Gateway is reached: at addresses of its own, if it is to have such, or at those of the nodes' ingress. */
  readonly addressesOf: (gateway: ObjectKey, hasOwn: boolean) => readonly string[];
  /** Why nobody can be shown this Secret's certificate. */
  readonly certificateProblem: (namespace: string, name: string) => string | undefined;
  /** Why nobody can be trusted for the sake of this ConfigMap. */
  readonly authorityProblem: (namespace: string, name: string) => string | undefined;
}

/** A listener that is served. */
export interface ServedListener {
  readonly gateway: ObjectKey;
  readonly port: number;
  readonly protocol: Protocol;
  /** In lower case; "" any. */
  readonly hostname: string;
  readonly routes: readonly Route[];
  readonly certificates: readonly CertificateUse[];
  readonly terminates: boolean;
}

type RouteStatus = readonly (Omit<ParentStatus, "conditions"> & { readonly conditions: readonly StatusCondition[] })[];

export interface GatewayPlan {
  readonly listeners: readonly ServedListener[];
  readonly fronts: Fronts;
  readonly gatewayStatus: ReadonlyMap<ObjectKey, PlannedGatewayStatus>;
  /** Of ours among a route's parents. */
  readonly routeStatus: ReadonlyMap<AnyRoute, RouteStatus>;
  /** Of ours among a policy's ancestors. */
  readonly policyStatus: ReadonlyMap<BackendTlsPolicy, readonly PlannedAncestor[]>;
}

export function ourGateways(classes: readonly GatewayClass[], gateways: readonly Gateway[]): Gateway[] {
  const ours = new Set(classes.filter((one) => one.spec.controllerName === GATEWAY_CONTROLLER && !parametersProblem(one.spec.parametersRef)).map(({ metadata }) => metadata.name));
  return gateways.filter(({ spec, metadata }) => ours.has(spec.gatewayClassName) && metadata.deletionTimestamp === undefined);
}

export function planGateways(world: GatewayWorld): GatewayPlan {
  const gateways = new Map(ourGateways(world.classes, world.gateways).map((gateway) => [keyOf(gateway), gateway]));
  const listeners = new Map([...gateways].map(([key, gateway]) => [key, listenersOf(gateway, world)]));
  const tls = planBackendTls(world.tlsPolicies, world.authorityProblem), references: References = { ...world, tlsOf: (namespace, service) => tls.of(objectKey(namespace, service)) };
  const routeStatus = new Map<AnyRoute, RouteStatus>(), leadTo = new Map<ObjectKey, Set<ObjectKey>>();
  const attachAll = <R extends AnyRoute>(kind: string, routes: readonly R[], rulesOf: (route: R, references: References) => RuleSet): void => {
    for (const route of routes) {
      if (route.metadata.deletionTimestamp !== undefined) continue;
      const parents = (route.spec.parentRefs ?? []).flatMap((parentRef) => {
        const gateway = objectKey(parentRef.namespace ?? route.metadata.namespace ?? "", parentRef.name), all = isGatewayRef(parentRef) ? listeners.get(gateway) : undefined;
        if (!all) return [];
        const rules = rulesOf(route, references);
        if (world.tlsPolicies.length > 0) for (const service of servicesOf(rules)) leadTo.set(service, (leadTo.get(service) ?? new Set()).add(gateway));
        return [attachTo(all, { kind, route, parentRef, rules }, world)];
      });
      if (parents.length > 0) routeStatus.set(route, parents);
    }
  };
  attachAll("HTTPRoute", world.routes, ruleSet);
  attachAll("GRPCRoute", world.grpcRoutes, grpcRuleSet);
  attachAll("TLSRoute", world.tlsRoutes, tlsRuleSet);
  attachAll("TCPRoute", world.tcpRoutes, tcpRuleSet);
  const served = [...listeners].flatMap(([gateway, all]) => all.filter(({ refused, invalid }) => !refused && !invalid).map(({ listener, routes, certificates }): ServedListener => (
    { gateway, port: listener.port, protocol: listener.protocol as Protocol, hostname: (listener.hostname ?? "").toLowerCase(), routes, certificates, terminates: terminates(listener) })));
  const fronts = planFronts([...gateways.values()], world);
  const reached = (gateway: ObjectKey): Reached => ({ at: world.addressesOf(gateway, fronts.own.has(gateway)), alone: fronts.own.has(gateway) });
  return {
    listeners: served, routeStatus, fronts, policyStatus: new Map(world.tlsPolicies.map((policy) => [policy, tls.statusOf(policy, (service) => leadTo.get(service) ?? [])])),
    gatewayStatus: new Map([...gateways].map(([key, gateway]) => [key, gatewayStatus(gateway, listeners.get(key)!, reached(key))])),
  };
}

/** Where its requests go. */
function servicesOf({ routes }: RuleSet): ObjectKey[] {
  return routes.flatMap(({ action }) => (action.type === "forward" ? [...action.backends, ...(action.mirrors ?? []).map(({ backend }) => backend)].map(({ namespace, service }) => objectKey(namespace, service)) : []));
}

function isGatewayRef({ group = GATEWAY_GROUP, kind = "Gateway" }: ParentRef): boolean { return group === GATEWAY_GROUP && kind === "Gateway"; }

function listenersOf(gateway: Gateway, world: GatewayWorld): Accepted[] {
  const problems = listenerProblems(gateway, world.portProblem);
  const refused = parametersProblem(gateway.spec.infrastructure?.parametersRef);
  return gateway.spec.listeners.map((listener) => {
    const refs = terminates(listener) ? (listener.tls?.certificateRefs ?? []).map((ref) => ({ ref, problem: certificateRefProblem(ref, gateway, world) })) : [];
    const badKind = (listener.allowedRoutes?.kinds ?? []).find((one) => !isKindOf(one, listener.protocol));
    const badCertificate = !terminates(listener) ? undefined : refs.length === 0 ? { reason: "InvalidCertificateRef", message: "the listener names no certificate" } : refs.find(({ problem }) => problem)?.problem;
    return {
      gateway, listener, refused, invalid: problems.get(listener.name), routes: [], attached: 0,
      certificates: refs.filter(({ problem }) => !problem).map(({ ref }) => ({ host: (listener.hostname ?? "").toLowerCase(), labels: "many", namespace: ref.namespace ?? gateway.metadata.namespace ?? "", secret: ref.name })),
      unresolved: badKind ? { reason: "InvalidRouteKinds", message: `routes of kind ${badKind.kind} are not supported` } : badCertificate,
    };
  });
}

/** What is wrong with a reference to a certificate. */
function certificateRefProblem({ group = "", kind = "Secret", name, namespace }: {
  readonly group?: string;
  readonly kind?: string;
  readonly name: string;
  readonly namespace?: string;
}, { metadata }: Gateway, world: GatewayWorld): Problem | undefined {
  const own = metadata.namespace ?? "", at = namespace ?? own;
  if (group !== "" || kind !== "Secret") return { reason: "InvalidCertificateRef", message: `certificates of kind ${kind} are not supported` };
  if (at !== own && !world.isGranted({ kind: "Gateway", namespace: own }, { kind: "Secret", namespace: at, name })) return { reason: "RefNotPermitted", message: `namespace ${at} has no ReferenceGrant for Secret ${name}` };
  const message = world.certificateProblem(at, name);
  return message === undefined ? undefined : { reason: "InvalidCertificateRef", message };
}

interface Attaching { readonly kind: string; readonly route: AnyRoute; readonly parentRef: ParentRef; readonly rules: RuleSet }

/** Gives the route to the listeners that take it, and tells what becomes of it. */
function attachTo(all: readonly Accepted[], { kind, route, parentRef, rules }: Attaching, world: GatewayWorld): RouteStatus[number] {
  const { hosts, problem } = welcome(all, { kind, route, parentRef }, world);
  const refused = rules.unsupported ?? problem;
  for (const { accepted, hostnames } of refused ? [] : hosts) {
    accepted.attached++;
    for (const host of hostnames)
      for (const rule of rules.routes) accepted.routes.push({
        ...rule, host, labels: "many", fallback: false, source: `${kind.toLowerCase()} ${keyOf(route)}`,
        age: `${ageOf(accepted.gateway)} ${route.metadata.creationTimestamp ?? ""} ${keyOf(route)}`,
      });
  }
  const observedGeneration = route.metadata.generation ?? 0;
  return {
    parentRef, controllerName: GATEWAY_CONTROLLER,
    conditions: [
      condition("Accepted", refused, { reason: "Accepted", message: "Route is accepted", observedGeneration }),
      condition("ResolvedRefs", rules.unresolved, { reason: "ResolvedRefs", message: "All references resolved", observedGeneration }),
    ],
  };
}

function welcome(all: readonly Accepted[], { kind, route, parentRef: { sectionName, port } }: Omit<Attaching, "rules">, { namespaces }: GatewayWorld): {
  readonly hosts: readonly { readonly accepted: Accepted; readonly hostnames: readonly string[] }[];
  readonly problem: Problem | undefined;
} {
  const named = all.filter(({ listener }) => (sectionName === undefined || listener.name === sectionName) && (port === undefined || listener.port === port));
  if (named.length === 0) return { hosts: [], problem: { reason: "NoMatchingParent", message: "the Gateway has no such listener" } };
  const allowed = named.filter((one) => welcomes(one, kind, route, namespaces));
  if (allowed.length === 0) return { hosts: [], problem: { reason: "NotAllowedByListeners", message: "no listener allows routes of this namespace or kind" } };
  const hosts = allowed.flatMap((accepted) => {
    const hostnames = intersection(route.spec.hostnames ?? [], accepted.listener.hostname);
    return hostnames.length === 0 ? [] : [{ accepted, hostnames: hostnames.filter((host) => !belongsToAnother(host, accepted, all)) }];
  });
  if (hosts.length === 0) return { hosts: [], problem: { reason: "NoMatchingListenerHostname", message: "no listener has a hostname of this route" } };
  return { hosts: hosts.filter(({ accepted }) => !accepted.refused && !accepted.invalid), problem: undefined };
}

/** Requests for a host are the most specific listener's that has it. */
function belongsToAnother(host: string, { listener }: Accepted, all: readonly Accepted[]): boolean {
  const own = (listener.hostname ?? "").toLowerCase();
  return all.some(({ listener: other, invalid }) => {
    const hostname = (other.hostname ?? "").toLowerCase();
    return !invalid && other.port === listener.port && hostname !== own && isWithin(hostname, own) && isWithin(host, hostname);
  });
}

/** Whether all hosts of one pattern are another's. */
function isWithin(host: string, pattern: string): boolean { return pattern === "" || host === pattern || (pattern.startsWith("*.") && host.endsWith(pattern.slice(1))); }

function welcomes({ gateway, listener }: Accepted, kind: string, { metadata }: AnyRoute, namespaces: ReadonlyMap<string, Labels>): boolean {
  const { namespaces: allowed = {}, kinds = [] } = listener.allowedRoutes ?? {};
  if (!isKindOf({ kind }, listener.protocol) || (kinds.length > 0 && !kinds.some((one) => isKindOf(one, listener.protocol) && one.kind === kind))) return false;
  switch (allowed.from ?? "Same") {
    case "All": return true;
    case "Selector": return labelSelector(allowed.selector).matches(namespaces.get(metadata.namespace ?? ""));
    case "Same": return metadata.namespace === gateway.metadata.namespace;
    default: return false;
  }
}

/** The hosts both have; a wildcard stands for one label and more. [""] is any. */
export function intersection(hostnames: readonly string[], listener: string | undefined): string[] {
  const limit = (listener ?? "").toLowerCase();
  if (hostnames.length === 0) return [limit];
  return hostnames.map((host) => host.toLowerCase()).flatMap((host) => {
    if (limit === "" || host === limit) return [host];
    if (limit.startsWith("*.") && host.endsWith(limit.slice(1))) return [host];
    return host.startsWith("*.") && limit.endsWith(host.slice(1)) ? [limit] : [];
  });
}
