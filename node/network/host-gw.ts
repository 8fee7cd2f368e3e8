/**
 * Pods of other nodes by plain routes: each node is the gateway to its own pods. Nothing is wrapped, but all nodes must be in one segment; a node that is not
 * cannot be routed to, and is named in the log.
 */
import { parseCidr } from "../../core/net/cidr.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Netlink, Route } from "../os/netlink.ts";
import { NetlinkError } from "../os/netlink-socket.ts";
import { ipOf, type Overlay, type Peer } from "./overlay.ts";
import { ROUTE_PROTOCOL, VXLAN_DEVICE } from "./vxlan.ts";
import { networkAddress } from "./vxlan-plan.ts";

export interface HostGatewayOptions {
  readonly netlink: () => Netlink;
  readonly uplink: { readonly interfaceName: string | undefined };
  readonly log: Log;
}

/** Pod CIDR, and the node's address. Pure. */
export function planHostGateway(others: readonly Peer[]): ReadonlyMap<string, string> {
  const routes = new Map<string, string>();
  for (const peer of others) {
    for (const podCidr of peer.podCidrs) {
      const { family, prefix } = parseCidr(podCidr)!;
      const via = ipOf(peer, family);
      if (via !== undefined) routes.set(`${networkAddress(podCidr)}/${prefix}`, via);
    }
  }
  return routes;
}

export function hostGatewayOverlay({ netlink: open, uplink, log }: HostGatewayOptions): Overlay {
  const refused = new Set<string>();

  return {
    overheadBytes: 0,
    async sync(_own, others) {
      using netlink = open();
      const device = uplink.interfaceName === undefined ? undefined : netlink.link(uplink.interfaceName);
      if (!device) throw new Error("host-gw needs the interface of the node's address, and there is none");
      const tunnel = netlink.link(VXLAN_DEVICE); // of before the overlay was changed
      if (tunnel) netlink.removeLink(tunnel.index);
      const routes = planHostGateway(others);
      const has = netlink.routes(ROUTE_PROTOCOL);
      for (const route of has) if (routes.get(route.to) !== route.via || route.device !== device.index) netlink.removeRoute(route);
      for (const [to, via] of routes) {
        if (has.some((route) => route.to === to && route.via === via && route.device === device.index)) continue;
        const route: Route = { to, via, device: device.index, protocol: ROUTE_PROTOCOL };
        try {
          netlink.replaceRoute(route);
          refused.delete(to);
        } catch (error) {
          if (!(error instanceof NetlinkError)) throw error;
          if (!refused.has(to)) log.warn("a node's pods cannot be routed to: is it in this segment?", { to, via, error });
          refused.add(to);
        }
      }
    },
  };
}
