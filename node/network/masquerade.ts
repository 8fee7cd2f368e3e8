/**
 * Which packets leave with this node's own address. Pure: the text of an nftables table.
 *
 *   pod → pod               never: pods see each other's addresses
 *   pod → elsewhere         masqueraded, multicast excepted
 *   elsewhere → pod here    never: externalTrafficPolicy Local keeps the client's address
 *   elsewhere → pod there   masqueraded, so that answers come back through this node
 *   marked by the proxy     by the proxy, whichever table the kernel asks first (the one that was made last): it takes the mark off, which the tunnel's packet
 *                           around this one would have too, and it would be masqueraded in its turn, whereby the kernel spoils its checksum
 *
 * Without br_netfilter the answer of one pod of this bridge to another would not pass the host, and so would not be translated back from a Service's address:
 * there such connections are masqueraded too.
 */
import { type Family, parseCidr, withoutOverlaps } from "../../core/net/cidr.ts";
import { MASQUERADE_MARK } from "../os/packet-marks.ts";

export const MASQUERADE_TABLE = "coracle-masq";

export interface MasqueradeOptions {
  readonly clusterCidrs: readonly string[];
  /** Of this node. */
  readonly podCidrs: readonly string[];
  readonly bridgeNetfilter: boolean;
}

export function masqueradeText({ clusterCidrs, podCidrs, bridgeNetfilter }: MasqueradeOptions): string {
  const of = (cidrs: readonly string[], family: Family): string[] => cidrs.filter((cidr) => parseCidr(cidr)?.family === family);
  return ([4, 6] as const).flatMap((family) => {
    const own = of(podCidrs, family);
    const cluster = [...new Set([...of(clusterCidrs, family), ...own])];
    if (own.length === 0) return [];
    const ip = family === 4 ? "ip" : "ip6";
    const at = `${ip} ${MASQUERADE_TABLE}`;
    const pods = `{ ${withoutOverlaps(cluster).join(", ")} }`, mine = `{ ${own.join(", ")} }`;
    const multicast = family === 4 ? "224.0.0.0/4" : "ff00::/8";
    return [
      `add table ${at}`, `delete table ${at}`, `add table ${at}`,
      `add chain ${at} postrouting { type nat hook postrouting priority 100; }`,
      `add rule ${at} postrouting mark and ${MASQUERADE_MARK} != 0 return`,
      ...(bridgeNetfilter ? [] : [`add rule ${at} postrouting ct status dnat ${ip} saddr ${mine} ${ip} daddr ${mine} masquerade fully-random`]),
      `add rule ${at} postrouting ${ip} saddr ${pods} ${ip} daddr ${pods} return`,
      `add rule ${at} postrouting ${ip} saddr ${pods} ${ip} daddr != ${multicast} masquerade fully-random`,
      `add rule ${at} postrouting ${ip} daddr ${mine} return`,
      `add rule ${at} postrouting ${ip} daddr ${pods} masquerade fully-random`,
    ];
  }).map((line) => `${line}\n`).join("");
}
