/**
 * What Gateways and HTTPRoutes ask for: routes for HTTP and for HTTPS, certificates, and what their status says. Pure.
 *
 *   GatewayClass (ours) ← Gateway: listeners on port 80 (HTTP) and 443 (HTTPS) ← HTTPRoute, if its namespace and a host of its are welcome there
 *
 * A Gateway is served where Ingresses are: by every node. Other ports and protocols are refused in the status; so are parameters (there is no kind of them),
 * RegularExpression matches, and filters other than RequestHeaderModifier, ResponseHeaderModifier, RequestRedirect and URLRewrite.
 *
 * API: https://gateway-api.sigs.k8s.io/reference/spec/
 */
import type { Condition } from "../api/gen/meta.v1.ts";
import { labelSelector, type Labels } from "../api/meta/label-selector.ts";
import { keyOf, type ObjectKey } from "../api/meta/object-meta.ts";
import { GATEWAY_CONTROLLER, GATEWAY_GROUP, type Gateway, type GatewayClass, type GatewayStatus, type HttpRoute, type Listener, type ListenerStatus, type ParametersRef, type ParentRef, type ParentStatus } from "./gateway-types.ts";
import { type Problem, type References, ruleSet } from "./http-route-rules.ts";
import type { CertificateUse } from "./ingress-routes.ts";
import type { Route } from "./route-table.ts";

export interface GatewayWorld extends References {
  readonly classes: readonly GatewayClass[];
  readonly gateways: readonly Gateway[];
  readonly routes: readonly HttpRoute[];
  readonly namespaces: ReadonlyMap<string, Labels>;
  /** Where the nodes' ingress is reached. */
  readonly addresses: readonly string[];
  /** Why nobody can be shown this Secret's certificate. */
  readonly certificateProblem: (namespace: string, name: string) => string | undefined;
}

export type StatusCondition = Omit<Condition, "lastTransitionTime">;

export interface GatewayPlan {
  readonly http: readonly Route[];
  readonly https: readonly Route[];
  readonly certificates: readonly CertificateUse[];
  readonly gatewayStatus: ReadonlyMap<ObjectKey, { readonly addresses: GatewayStatus["addresses"]; readonly conditions: readonly StatusCondition[]; readonly listeners: readonly (Omit<ListenerStatus, "conditions"> & { readonly conditions: readonly StatusCondition[] })[] }>;
  /** Of ours among a route's parents. */
  readonly routeStatus: ReadonlyMap<ObjectKey, readonly (Omit<ParentStatus, "conditions"> & { readonly conditions: readonly StatusCondition[] })[]>;
}

interface Accepted {
  readonly gateway: Gateway;
  readonly listener: Listener;
  readonly secure: boolean;
  attached: number;
  /** Of the whole Gateway, of the listener, of what it refers to: with either of the first two nothing is served. */
  readonly refused: Problem | undefined;
  readonly invalid: Problem | undefined;
  readonly unresolved: Problem | undefined;
}

const PROTOCOLS: ReadonlySet<string> = new Set(["HTTP", "HTTPS"]);

export function ourGateways(classes: readonly GatewayClass[], gateways: readonly Gateway[]): Gateway[] {
  const ours = new Set(classes.filter((one) => one.spec.controllerName === GATEWAY_CONTROLLER && !parametersProblem(one.spec.parametersRef)).map(({ metadata }) => metadata.name));
  return gateways.filter(({ spec, metadata }) => ours.has(spec.gatewayClassName) && metadata.deletionTimestamp === undefined);
}

/** What is wrong with parameters of a GatewayClass or a Gateway: that there are any. */
export function parametersProblem(ref: ParametersRef | undefined): Problem | undefined {
  return ref && { reason: "InvalidParameters", message: `parameters of kind ${ref.kind} in group ${JSON.stringify(ref.group)} are not supported` };
}

export function planGateways(world: GatewayWorld): GatewayPlan {
  const http: Route[] = [], https: Route[] = [], certificates: CertificateUse[] = [];
  const gateways = new Map(ourGateways(world.classes, world.gateways).map((gateway) => [keyOf(gateway), gateway]));
  const listeners = new Map<ObjectKey, Accepted[]>();
  for (const [key, gateway] of gateways) listeners.set(key, gateway.spec.listeners.map((listener) => acceptedOf(gateway, listener, world)));
  for (const all of listeners.values())
    for (const { listener, gateway, secure, refused, invalid } of all)
      if (secure && !refused && !invalid) for (const ref of listener.tls?.certificateRefs ?? []) if (isCertificate(ref, gateway, world) === undefined) certificates.push({ host: (listener.hostname ?? "").toLowerCase(), namespace: ref.namespace ?? gateway.metadata.namespace ?? "", secret: ref.name });

  const routeStatus = new Map<ObjectKey, GatewayPlan["routeStatus"] extends ReadonlyMap<ObjectKey, infer V> ? V : never>();
  for (const route of world.routes) {
    if (route.metadata.deletionTimestamp !== undefined) continue;
    const rules = ruleSet(route, world);
    const parents = (route.spec.parentRefs ?? []).flatMap((parentRef) => {
      const gateway = isGatewayRef(parentRef) ? gateways.get(`${parentRef.namespace ?? route.metadata.namespace ?? ""}/${parentRef.name}` as ObjectKey) : undefined;
      if (!gateway) return [];
      const { hosts, problem } = attach(route, parentRef, listeners.get(keyOf(gateway))!, world);
      const refused = rules.unsupported ?? problem;
      if (!refused) {
        for (const { accepted, hostnames } of hosts) {
          accepted.attached++;
          for (const host of hostnames)
            for (const rule of rules.routes) (accepted.secure ? https : http).push({ ...rule, host, labels: "many", fallback: false, source: `httproute ${keyOf(route)}`, age: `${route.metadata.creationTimestamp ?? ""} ${keyOf(route)}` });
        }
      }
      const observedGeneration = route.metadata.generation ?? 0;
      return [{
        parentRef, controllerName: GATEWAY_CONTROLLER,
        conditions: [condition("Accepted", refused, { reason: "Accepted", message: "Route is accepted", observedGeneration }), condition("ResolvedRefs", rules.unresolved, { reason: "ResolvedRefs", message: "All references resolved", observedGeneration })],
      }];
    });
    if (parents.length > 0) routeStatus.set(keyOf(route), parents);
  }
  return { http, https, certificates, routeStatus, gatewayStatus: new Map([...gateways].map(([key, gateway]) => [key, gatewayStatus(gateway, listeners.get(key)!, world)])) };
}

function isGatewayRef({ group = GATEWAY_GROUP, kind = "Gateway" }: ParentRef): boolean { return group === GATEWAY_GROUP && kind === "Gateway"; }

function acceptedOf(gateway: Gateway, listener: Listener, world: GatewayWorld): Accepted {
  const { protocol, port, tls } = listener;
  const secure = protocol === "HTTPS";
  const invalid: Problem | undefined = !PROTOCOLS.has(protocol) ? { reason: "UnsupportedProtocol", message: `protocol ${protocol} is not supported` }
    : port !== (secure ? 443 : 80) ? { reason: "PortUnavailable", message: `port ${port} is not available for ${protocol}: there are 80 for HTTP and 443 for HTTPS` }
    : secure && (tls?.mode ?? "Terminate") !== "Terminate" ? { reason: "UnsupportedProtocol", message: `TLS mode ${tls?.mode} is not supported` } : undefined;
  const kinds = listener.allowedRoutes?.kinds ?? [];
  const badKind = kinds.find(({ group = GATEWAY_GROUP, kind }) => group !== GATEWAY_GROUP || kind !== "HTTPRoute");
  const badCertificate = secure ? (tls?.certificateRefs?.length ? tls.certificateRefs : [undefined]).map((ref) => (ref ? isCertificate(ref, gateway, world) : { reason: "InvalidCertificateRef", message: "the listener names no certificate" })).find((problem) => problem !== undefined) : undefined;
  return { gateway, listener, secure, attached: 0, refused: parametersProblem(gateway.spec.infrastructure?.parametersRef), invalid, unresolved: badKind ? { reason: "InvalidRouteKinds", message: `routes of kind ${badKind.kind} are not supported` } : badCertificate };
}

/** What is wrong with a reference to a certificate. */
function isCertificate({ group = "", kind = "Secret", name, namespace }: { readonly group?: string; readonly kind?: string; readonly name: string; readonly namespace?: string }, { metadata }: Gateway, world: GatewayWorld): Problem | undefined {
  const own = metadata.namespace ?? "", at = namespace ?? own;
  if (group !== "" || kind !== "Secret") return { reason: "InvalidCertificateRef", message: `certificates of kind ${kind} are not supported` };
  if (at !== own && !world.isGranted({ kind: "Gateway", namespace: own }, { kind: "Secret", namespace: at, name })) return { reason: "RefNotPermitted", message: `namespace ${at} has no ReferenceGrant for Secret ${name}` };
  const message = world.certificateProblem(at, name);
  return message === undefined ? undefined : { reason: "InvalidCertificateRef", message };
}

function attach(route: HttpRoute, { sectionName, port }: ParentRef, all: readonly Accepted[], { namespaces }: GatewayWorld): { readonly hosts: readonly { readonly accepted: Accepted; readonly hostnames: readonly string[] }[]; readonly problem: Problem | undefined } {
  const named = all.filter(({ listener }) => (sectionName === undefined || listener.name === sectionName) && (port === undefined || listener.port === port));
  if (named.length === 0) return { hosts: [], problem: { reason: "NoMatchingParent", message: "the Gateway has no such listener" } };
  const allowed = named.filter((one) => welcomes(one, route, namespaces));
  if (allowed.length === 0) return { hosts: [], problem: { reason: "NotAllowedByListeners", message: "no listener allows routes of this namespace or kind" } };
  const hosts = allowed.flatMap((accepted) => {
    const hostnames = intersection(route.spec.hostnames ?? [], accepted.listener.hostname);
    return hostnames.length === 0 ? [] : [{ accepted, hostnames }];
  });
  if (hosts.length === 0) return { hosts: [], problem: { reason: "NoMatchingListenerHostname", message: "no listener has a hostname of this route" } };
  return { hosts: hosts.filter(({ accepted }) => !accepted.refused && !accepted.invalid), problem: undefined };
}

function welcomes({ gateway, listener }: Accepted, { metadata }: HttpRoute, namespaces: ReadonlyMap<string, Labels>): boolean {
  const { namespaces: allowed = {}, kinds = [] } = listener.allowedRoutes ?? {};
  if (kinds.length > 0 && !kinds.some(({ group = GATEWAY_GROUP, kind }) => group === GATEWAY_GROUP && kind === "HTTPRoute")) return false;
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

function gatewayStatus({ metadata: { generation = 0 }, spec }: Gateway, listeners: readonly Accepted[], { addresses }: GatewayWorld) {
  const observedGeneration = generation;
  const broken = listeners.some(({ invalid }) => invalid), working = listeners.some(({ invalid }) => !invalid);
  const refused = parametersProblem(spec.infrastructure?.parametersRef) ?? (working ? undefined : { reason: "ListenersNotValid", message: "no listener can be served" });
  const homeless = addresses.length > 0 ? undefined : { reason: "AddressNotAssigned", message: "the Service kube-system/coracle-ingress has no address yet" };
  return {
    addresses: addresses.map((value) => ({ type: /^[\d.]+$|:/.test(value) ? "IPAddress" : "Hostname", value })),
    conditions: [
      condition("Accepted", refused, { reason: broken ? "ListenersNotValid" : "Accepted", message: broken ? "some listeners cannot be served" : "Gateway is accepted", observedGeneration }),
      condition("Programmed", refused ? { reason: "Invalid", message: refused.message } : homeless, { reason: "Programmed", message: "every node serves the Gateway", observedGeneration }),
    ],
    listeners: listeners.map(({ listener: { name, allowedRoutes, protocol }, attached, refused: whole, invalid, unresolved }) => ({
      name, attachedRoutes: attached,
      supportedKinds: !PROTOCOLS.has(protocol) || allowedRoutes?.kinds?.length && !allowedRoutes.kinds.some(({ group = GATEWAY_GROUP, kind }) => group === GATEWAY_GROUP && kind === "HTTPRoute") ? [] : [{ group: GATEWAY_GROUP, kind: "HTTPRoute" }],
      conditions: [
        condition("Accepted", invalid, { reason: "Accepted", message: "Listener is accepted", observedGeneration }),
        condition("Programmed", whole ?? invalid ?? unresolved ? { reason: "Invalid", message: (whole ?? invalid ?? unresolved)!.message } : undefined, { reason: "Programmed", message: "every node serves the listener", observedGeneration }),
        condition("ResolvedRefs", unresolved, { reason: "ResolvedRefs", message: "All references resolved", observedGeneration }),
        { type: "Conflicted", status: "False" as const, reason: "NoConflicts", message: "", observedGeneration },
      ],
    })),
  };
}

export function condition(type: string, problem: Problem | undefined, { reason, message, observedGeneration }: { readonly reason: string; readonly message: string; readonly observedGeneration: number }): StatusCondition {
  return problem ? { type, status: "False", observedGeneration, ...problem } : { type, status: "True", reason, message, observedGeneration };
}
