/**
 * What is served at which port of this node: the routes and certificates behind each door. Pure.
 *
 *   door for everybody: Ingresses (80 and 443) and, of Gateways without a door of their own, the listeners of that port that speak what is spoken there
 *   door of one Gateway: its listeners of that port
 */
import type { ObjectKey } from "../../core/api/meta/object-meta.ts";
import type { ServedListener } from "../../core/ingress/gateway.ts";
import { type Door, FIXED_DOORS, type Fronts, isSpokenAt, type Protocol } from "../../core/ingress/gateway-fronts.ts";
import type { CertificateUse } from "../../core/ingress/ingress-routes.ts";
import { type Route, type RouteTable, routeTable } from "../../core/ingress/route-table.ts";

export interface OpenDoor {
  /** The port of this node. */
  readonly target: number;
  /** The one that leads to it from outside. */
  readonly port: number;
  readonly protocol: Protocol;
  /** Of requests. */
  readonly table: RouteTable;
  /** Of connections nobody reads, by the name that is asked for. */
  readonly names: RouteTable;
  readonly certificates: readonly CertificateUse[];
  /** Hosts of listeners for TLS that end it. */
  readonly terminated: ReadonlySet<string>;
  /** Hosts of listeners for HTTPS. */
  readonly web: ReadonlySet<string>;
}

export interface DoorWorld {
  readonly ingressRoutes: readonly Route[];
  readonly ingressCertificates: readonly CertificateUse[];
  readonly listeners: readonly ServedListener[];
  readonly fronts: Fronts;
  /** As Services say, those for 80 and 443 excepted, which are always there. */
  readonly doors: readonly Door[];
}

/** None while there is nothing to serve. */
export function openDoors({ ingressRoutes, ingressCertificates, listeners, fronts, doors }: DoorWorld): OpenDoor[] {
  if (ingressRoutes.length === 0 && listeners.length === 0) return [];
  return [...FIXED_DOORS, ...doors].flatMap(({ gateway, port, target }) => {
    const protocol = protocolAt(fronts, gateway, port);
    if (protocol === undefined) return [];
    const behind = listeners.filter((one) => one.port === port && isSpokenAt(protocol, one.protocol) && (gateway === undefined ? !fronts.own.has(one.gateway) : one.gateway === gateway));
    const isIngress = gateway === undefined && (port === 80 || port === 443) && protocol !== "TLS" && protocol !== "TCP";
    const isWeb = ({ protocol: spoken }: ServedListener): boolean => spoken === "HTTP" || spoken === "HTTPS", hosts = behind.map(({ hostname }) => hostname);
    const requests = behind.filter(isWeb), connections = behind.filter((one) => !isWeb(one)), routesOf = (some: typeof behind): Route[] => some.flatMap((one) => one.routes);
    return [{
      target, port, protocol, table: routeTable([...(isIngress ? ingressRoutes : []), ...routesOf(requests)], hosts), names: routeTable(routesOf(connections), hosts),
      certificates: [...(isIngress && protocol === "HTTPS" ? ingressCertificates : []), ...behind.flatMap((one) => one.certificates)],
      terminated: new Set(connections.flatMap((one) => (one.terminates ? [one.hostname] : []))), web: new Set(requests.map(({ hostname }) => hostname)),
    }];
  });
}

function protocolAt({ shared, own }: Fronts, gateway: ObjectKey | undefined, port: number): Protocol | undefined {
  return gateway === undefined ? shared.get(port) : own.get(gateway)?.get(port);
}
