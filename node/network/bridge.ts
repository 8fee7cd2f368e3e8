/**
 * The bridge of this node's pods. The CNI plugin would make it with the first pod; making it before gives the node's DNS an address to listen on, and a MAC
 * address that does not change with the pods on it.
 */
import { formatIp, nthAddress, parseCidr } from "../../core/net/cidr.ts";
import type { Netlink } from "../os/netlink.ts";
import { BRIDGE } from "../os/pod-bridge.ts";
import { macFor } from "./vxlan-plan.ts";

/** Returns its index. */
export function ensureBridge(netlink: Netlink, { podCidrs, mtu }: { readonly podCidrs: readonly string[]; readonly mtu: number }): number {
  const gateways = podCidrs.flatMap((text) => { const cidr = parseCidr(text); return cidr ? [`${formatIp(nthAddress(cidr, 1n))}/${cidr.prefix}`] : []; });
  const found = netlink.link(BRIDGE);
  const index = found?.index ?? netlink.addBridge(BRIDGE, { mtu, mac: macFor(gateways[0]!) });
  if (found && found.mtu !== mtu) netlink.setLink(index, { mtu });
  if (!found?.up) netlink.setLink(index, { up: true });
  const has = netlink.addresses(index);
  for (const gateway of gateways) if (!has.includes(gateway)) netlink.addAddress(index, gateway);
  for (const address of has) if (!gateways.includes(address) && !address.startsWith("fe80:")) netlink.removeAddress(index, address); // of an earlier pod CIDR
  return index;
}
