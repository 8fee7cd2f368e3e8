/**
 * What a VXLAN device needs to know of the other nodes. Pure.
 *
 *   route       10.42.1.0/24 by way of 10.42.1.0, which is the other node's device
 *   neighbour   10.42.1.0 has the MAC address 0a:58:0a:2a:01:00
 *   forwarding  that MAC address is at the node 192.168.1.11
 *
 * A device's MAC address follows from its node's pod CIDR, so nodes need not tell each other; only Windows chooses it by itself, and its nodes tell. One that is another node's is not
 * believed: packets for that one's pods would go to who says so.
 */
import { createHash } from "node:crypto";
import { type Family, formatIp, ipBytes, parseCidr, parseIp } from "../../core/net/cidr.ts";
import { ipOf, type Peer } from "./overlay.ts";

export interface VxlanPlan {
  /** Pod CIDR, and the next hop there. */
  readonly routes: ReadonlyMap<string, string>;
  /** Next hop, and its MAC address. */
  readonly neighbours: ReadonlyMap<string, string>;
  /** MAC address, and the node's address. */
  readonly forwardings: ReadonlyMap<string, string>;
  /** Nodes without an address of the family the tunnel uses. */
  readonly unreachable: readonly string[];
}

/** `others`: those who were there first come first. */
export function planVxlan(others: readonly Peer[], underlay: Family): VxlanPlan {
  const routes = new Map<string, string>(), neighbours = new Map<string, string>(), forwardings = new Map<string, string>();
  const unreachable: string[] = [];
  const named = new Map(others.toReversed().map(({ name, podCidrs }) => [macFor(podCidrs[0]!), name]));
  for (const peer of others) {
    const node = ipOf(peer, underlay);
    if (node === undefined) {
      unreachable.push(peer.name);
      continue;
    }
    const mac = peer.mac === undefined || (named.get(peer.mac) ?? peer.name) !== peer.name || forwardings.has(peer.mac) ? macFor(peer.podCidrs[0]!) : peer.mac;
    forwardings.set(mac, formatIp(parseIp(node)!));
    for (const podCidr of peer.podCidrs) {
      const hop = networkAddress(podCidr);
      routes.set(`${hop}/${parseCidr(podCidr)!.prefix}`, hop);
      neighbours.set(hop, mac);
    }
  }
  return { routes, neighbours, forwardings, unreachable };
}

/** The first address of a range: no pod has it, so the tunnel's end may. */
export function networkAddress(cidr: string): string {
  const { family, base } = parseCidr(cidr)!;
  return formatIp({ family, value: base });
}

/** Locally administered; the same for the same address. */
export function macFor(cidrOrAddress: string): string {
  const ip = parseIp(cidrOrAddress.split("/")[0]!)!;
  const tail = ip.family === 4 ? ipBytes(ip) : createHash("sha256").update(ipBytes(ip)).digest().subarray(0, 4);
  return [0x0a, 0x58, ...tail].map((byte) => byte.toString(16).padStart(2, "0")).join(":");
}
