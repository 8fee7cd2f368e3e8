/**
 * Where Gateways are reached: at ports of the nodes, which they share with each other and with Ingresses, as far as their listeners go together. Pure.
 *
 *   Gateways, the oldest first ─▶ ports of the Service kube-system/coracle-ingress, of which 80 and 443 are always there
 *                              └▶ a Service of its own for each that does not go together with an older one (another protocol on a port, the same hostname there): such a Gateway is
 *                                 served at its own address alone, all of it, so that it is reached nowhere but where its status says
 *
 * Which port of the nodes leads to which of these ports is in the Services: nodes listen where those say (node/ingress).
 */
import { createHash } from "node:crypto";
import type { Service } from "../api/gen/core.v1.ts";
import { keyOf, labelsOf, type ObjectKey } from "../api/meta/object-meta.ts";
import type { Problem } from "./conditions.ts";
import type { Gateway, Listener } from "./gateway-types.ts";
import { HTTP_PORT, HTTPS_PORT, INGRESS_SERVICE } from "./ingress-class.ts";

/** TLS: what is in it is passed on by the name that is asked for, as it comes or without TLS. Of a port: by that name it may be a listener's for HTTPS as well. */
export type Protocol = "HTTP" | "HTTPS" | "TLS" | "TCP";

/** A Gateway is in one of both. */
export interface Fronts {
  readonly shared: ReadonlyMap<number, Protocol>;
  readonly own: ReadonlyMap<ObjectKey, ReadonlyMap<number, Protocol>>;
}

export interface NodePorts {
  /** Why a port of the nodes cannot be had. */
  readonly portProblem: (port: number) => string | undefined;
  /** There are Ingresses with certificates: port 443 is HTTPS, whatever a Gateway wants there. */
  readonly hasSecureIngress: boolean;
}

/** Why nothing is served on a listener; `conflicts`: with others of its Gateway. */
export interface ListenerProblem extends Problem { readonly conflicts: boolean }

/** A port that some Service leads to: `target` on the nodes. `gateway`: whose alone it is; undefined: everybody's. */
export interface Door { readonly gateway: ObjectKey | undefined; readonly port: number; readonly target: number }

/** Ports of the nodes for those of Gateways, 80 and 443 excepted. */
export const TARGET_PORTS = { first: 10_500, last: 10_999 } as const;
/** All that Services may lead to. */
export const INGRESS_PORTS: readonly string[] = [`${HTTP_PORT}`, `${HTTPS_PORT}`, `${TARGET_PORTS.first}-${TARGET_PORTS.last}`];
export const GATEWAY_SERVICE_LABELS = { "app.kubernetes.io/managed-by": "coracle-gateway" } as const;
const PROTOCOLS: ReadonlySet<string> = new Set(["HTTP", "HTTPS", "TLS", "TCP"]);
/** They can be told apart by the name that a client of TLS asks for. */
const BY_SERVER_NAME: ReadonlySet<string> = new Set(["HTTPS", "TLS"]);
const FIXED_PORTS: ReadonlySet<number> = new Set([80, 443]);

export function ageOf({ metadata }: Pick<Gateway, "metadata">): string { return `${metadata.creationTimestamp ?? ""} ${keyOf({ metadata })}`; }

export function isSupported(protocol: string): protocol is Protocol { return PROTOCOLS.has(protocol); }

/** By the listeners' names. */
export function listenerProblems({ spec }: Gateway, portProblem: NodePorts["portProblem"]): ReadonlyMap<string, ListenerProblem> {
  const problems = new Map<string, ListenerProblem>();
  const known = spec.listeners.filter(({ protocol }) => isSupported(protocol));
  for (const one of spec.listeners) {
    const problem = unsupported(one, portProblem) ?? conflict(one, known.filter((other) => other !== one && other.port === one.port));
    if (problem) problems.set(one.name, problem);
  }
  return problems;
}

export function planFronts(gateways: readonly Gateway[], { portProblem, hasSecureIngress }: NodePorts): Fronts {
  const shared = new Map<number, Protocol>([[80, "HTTP"], ...(hasSecureIngress ? [[443, "HTTPS"] as const] : [])]), hosts = new Set<string>(), own = new Map<ObjectKey, ReadonlyMap<number, Protocol>>();
  const served = gateways.filter(({ spec }) => spec.infrastructure?.parametersRef === undefined); // the others are refused
  for (const gateway of served.toSorted((a, b) => (ageOf(a) < ageOf(b) ? -1 : 1))) {
    const problems = listenerProblems(gateway, portProblem);
    const listeners = gateway.spec.listeners.filter(({ name }) => !problems.has(name));
    const nameOf = ({ port, hostname = "" }: Listener): string => `${port} ${hostname.toLowerCase()}`;
    const ports = portsOf(listeners);
    if (listeners.some((one) => hosts.has(nameOf(one))) || [...ports].some(([port, protocol]) => !isSpokenAt(shared.get(port) ?? protocol, protocol))) {
      own.set(keyOf(gateway), ports);
      continue;
    }
    for (const [port, protocol] of ports) if (!shared.has(port)) shared.set(port, protocol);
    for (const one of listeners) hosts.add(nameOf(one));
  }
  if (!shared.has(443)) shared.set(443, "HTTPS");
  return { shared, own };
}

/** Whether a port that speaks this has listeners that speak that. */
export function isSpokenAt(port: Protocol, listener: Protocol): boolean { return port === listener || (port === "TLS" && listener === "HTTPS"); }

/** A Service in the Gateway's namespace. Names of Gateways are longer than those of Services may be, and have dots. */
export function ownServiceName(gateway: ObjectKey): string { return `coracle-gateway-${createHash("sha256").update(gateway).digest("hex").slice(0, 10)}`; }

export function isIngressService({ metadata: { name, namespace } }: Readonly<Service>): boolean { return name === INGRESS_SERVICE.name && namespace === INGRESS_SERVICE.namespace; }

export function isFrontService(service: Readonly<Service>): boolean {
  return isIngressService(service) || labelsOf(service)["app.kubernetes.io/managed-by"] === GATEWAY_SERVICE_LABELS["app.kubernetes.io/managed-by"];
}

/** Whether TLS ends here. */
export function terminates({ protocol, tls }: Pick<Listener, "protocol" | "tls">): boolean { return protocol === "HTTPS" || (protocol === "TLS" && (tls?.mode ?? "Terminate") === "Terminate"); }

export function portName(port: number): string { return `gateway-${port}`; }

/** `gateway`: whose Service it is, if not everybody's. Only ports that are ours to give: what else somebody wrote into the Service leads nowhere. */
export function doorsOf(service: Readonly<Service> | undefined, gateway: ObjectKey | undefined): Door[] {
  return (service?.spec?.ports ?? []).flatMap(({ name = "", targetPort }) => {
    const port = Number(/^gateway-(\d+)$/.exec(name)?.[1]);
    return port > 0 && typeof targetPort === "number" && targetPort >= TARGET_PORTS.first && targetPort <= TARGET_PORTS.last ? [{ gateway, port, target: targetPort }] : [];
  });
}

export const FIXED_DOORS: readonly Door[] = [{ gateway: undefined, port: 80, target: HTTP_PORT }, { gateway: undefined, port: 443, target: HTTPS_PORT }];

function portsOf(listeners: readonly Listener[]): ReadonlyMap<number, Protocol> {
  const ports = new Map<number, Protocol>();
  for (const { port, protocol } of listeners) if (ports.get(port) !== "TLS") ports.set(port, protocol as Protocol);
  return ports;
}

function unsupported({ protocol, port, tls }: Listener, portProblem: NodePorts["portProblem"]): ListenerProblem | undefined {
  if (!isSupported(protocol)) return { reason: "UnsupportedProtocol", message: `protocol ${protocol} is not supported`, conflicts: false };
  if (protocol === "HTTPS" && (tls?.mode ?? "Terminate") !== "Terminate") return { reason: "UnsupportedProtocol", message: `TLS mode ${tls?.mode} is not supported`, conflicts: false };
  const taken = FIXED_PORTS.has(port) ? undefined : portProblem(port);
  return taken === undefined ? undefined : { reason: "PortUnavailable", message: taken, conflicts: false };
}

function conflict({ protocol, hostname = "", port }: Listener, others: readonly Listener[]): ListenerProblem | undefined {
  const hasSameHost = (one: Listener): boolean => (one.hostname ?? "").toLowerCase() === hostname.toLowerCase();
  const other = others.find((one) => one.protocol !== protocol && !(BY_SERVER_NAME.has(one.protocol) && BY_SERVER_NAME.has(protocol) && !hasSameHost(one)));
  if (other) return { reason: "ProtocolConflict", message: `listener ${other.name} speaks ${other.protocol} on port ${port}`, conflicts: true };
  const same = others.find(hasSameHost);
  return same && { reason: "HostnameConflict", message: `listener ${same.name} has the same hostname on port ${port}`, conflicts: true };
}
