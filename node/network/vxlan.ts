/**
 * Pods of other nodes through a VXLAN tunnel: one device, one route, one neighbour and one forwarding entry a node; nothing is learned or flooded.
 *
 * Each sync compares with what the kernel has, so whatever somebody else has removed comes back. What is there already is not touched.
 */
import { type Family, parseIp } from "../../core/net/cidr.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Netlink } from "../os/netlink.ts";
import { VXLAN_PORT } from "../os/vxlan-port.ts";
import { ipOf, type Overlay, type Peer, podMtu } from "./overlay.ts";
import { macFor, networkAddress, planVxlan, type VxlanPlan } from "./vxlan-plan.ts";

export const VXLAN_DEVICE = "coracle-vxlan";
/** The lowest that Windows takes. Whoever else uses VXLAN on this machine (flannel: 1) has another. */
export const VNI = 4096;
/** Marks our routes; no routing daemon uses this number. */
export const ROUTE_PROTOCOL = 171;
const OVERHEAD_BYTES: Readonly<Record<Family, number>> = { 4: 50, 6: 70 };

export interface VxlanOverlayOptions {
  readonly netlink: () => Netlink;
  /** This node's addresses: the tunnel uses the first one's family. */
  readonly nodeIps: readonly string[];
  readonly uplink: { readonly interfaceName: string | undefined; readonly mtu: number };
  readonly log: Log;
}

export function vxlanOverlay({ netlink: open, nodeIps, uplink, log }: VxlanOverlayOptions): Overlay {
  const underlay = parseIp(nodeIps[0] ?? "")?.family ?? 4;
  const overheadBytes = OVERHEAD_BYTES[underlay];
  let warned = "";
  let made: VxlanPlan | undefined; // by the last sync

  function ensureDevice(netlink: Netlink, own: Peer): number {
    const mac = macFor(own.podCidrs[0]!), mtu = podMtu({ uplinkMtu: uplink.mtu, overheadBytes, podCidrs: own.podCidrs });
    const fits = mtu <= uplink.mtu - overheadBytes; // tied to an interface, the device may have no larger packets than fit into that one's
    const wanted = { id: VNI, port: VXLAN_PORT, local: ipOf(own, underlay) ?? nodeIps[0]!, device: (fits && uplink.interfaceName && netlink.link(uplink.interfaceName)?.index) || 0 };
    let found = netlink.link(VXLAN_DEVICE);
    if (found && JSON.stringify(found.vxlan) !== JSON.stringify({ id: wanted.id, local: wanted.local, port: wanted.port, device: wanted.device })) {
      netlink.removeLink(found.index);
      found = made = undefined;
    }
    const index = found?.index ?? netlink.addVxlan(VXLAN_DEVICE, { ...wanted, mtu, mac });
    if (found && (found.mac !== mac || found.mtu !== mtu)) netlink.setLink(index, { mac, mtu });
    const addresses = own.podCidrs.map((cidr) => { const address = networkAddress(cidr); return `${address}/${address.includes(":") ? 128 : 32}`; });
    const has = netlink.addresses(index);
    for (const address of addresses) if (!has.includes(address)) netlink.addAddress(index, address);
    for (const address of has) if (!addresses.includes(address) && !address.startsWith("fe80:")) netlink.removeAddress(index, address);
    if (!found?.up) netlink.setLink(index, { up: true });
    return index;
  }

  /** Somebody else has taken them away. */
  function tellWhatIsGone(before: VxlanPlan | undefined, wanted: Omit<VxlanPlan, "unreachable">, there: {
    readonly routed: ReadonlyMap<string, string>;
    readonly known: ReadonlyMap<string, string>;
    readonly forwarded: ReadonlyMap<string, string>;
  }): void {
    const lost = (was: ReadonlyMap<string, string> | undefined, want: ReadonlyMap<string, string>, has: ReadonlyMap<string, string>): string[] => [...want].filter(([key, value]) => was?.get(key) === value && has.get(key) !== value).map(([key]) => key);
    const routes = lost(before?.routes, wanted.routes, there.routed), entries = [...lost(before?.neighbours, wanted.neighbours, there.known), ...lost(before?.forwardings, wanted.forwardings, there.forwarded)];
    if (routes.length > 0 || entries.length > 0) log.warn("ways to other nodes' pods are gone from the kernel, made again", { routes, entries });
  }

  return {
    overheadBytes, udpPort: VXLAN_PORT, dropsLarge: underlay === 6,
    async sync(own, others) {
      using netlink = open();
      const device = ensureDevice(netlink, own);
      const { routes, neighbours, forwardings, unreachable } = planVxlan(others, underlay);
      if (unreachable.join() !== warned) log.warn("nodes without an address the tunnel could use", { nodes: unreachable, family: underlay });
      warned = unreachable.join();

      // A route comes last and goes first: packets have nowhere to go until the rest is there
      const routed = netlink.routes(ROUTE_PROTOCOL);
      for (const route of routed) if (route.device !== device || !routes.has(route.to)) netlink.removeRoute(route);
      const known = netlink.neighbours(device), forwarded = netlink.forwardings(device);
      for (const one of known) if (!neighbours.has(one.ip)) netlink.removeNeighbour(one);
      for (const one of forwarded) if (forwardings.get(one.mac) !== one.ip) netlink.removeForwarding(one);
      tellWhatIsGone(made, { routes, neighbours, forwardings }, {
        routed: new Map(routed.filter((one) => one.device === device).map(({ to, via = "" }) => [to, via])), known: new Map(known.map(({ ip, mac }) => [ip, mac])),
        forwarded: new Map(forwarded.map(({ mac, ip }) => [mac, ip])),
      });
      for (const [mac, ip] of forwardings) if (!forwarded.some((one) => one.mac === mac && one.ip === ip)) netlink.replaceForwarding({ device, mac, ip });
      for (const [ip, mac] of neighbours) if (!known.some((one) => one.mac === mac && one.ip === ip)) netlink.replaceNeighbour({ device, mac, ip });
      for (const [to, via] of routes) if (!routed.some((one) => one.device === device && one.to === to && one.via === via)) netlink.replaceRoute({ to, via, device, onlink: true, protocol: ROUTE_PROTOCOL });
      made = { routes, neighbours, forwardings, unreachable };
    },
  };
}

/** The tunnel's device and all routes of ours, however they were made. */
export function removeTunnel(netlink: Netlink): void {
  for (const route of netlink.routes(ROUTE_PROTOCOL)) netlink.removeRoute(route);
  const found = netlink.link(VXLAN_DEVICE);
  if (found) netlink.removeLink(found.index);
}
