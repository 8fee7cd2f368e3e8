/**
 * The bridge of this node's pods. The CNI plugin would make it with the first pod; making it before gives the node's DNS an address to listen on, and a MAC
 * address that does not change with the pods on it.
 */
import { formatIp, ipFromBytes, nthAddress, parseCidr } from "../../core/net/cidr.ts";
import type { Netlink } from "../os/netlink.ts";
import { BRIDGE } from "../os/pod-bridge.ts";
import { macFor } from "./vxlan-plan.ts";

/** Which an interface has by itself. Source: RFC 4291 appendix A */
function linkLocal(mac: string): string {
  const [first = 0, ...rest] = mac.split(":").map((part) => Number.parseInt(part, 16));
  const bytes = [0xfe, 0x80, ...Array<number>(6).fill(0), first ^ 0x02, ...rest.slice(0, 2), 0xff, 0xfe, ...rest.slice(2)];
  return `${formatIp(ipFromBytes(Uint8Array.from(bytes))!)}/64`;
}

/** Returns its index. */
export function ensureBridge(netlink: Netlink, { podCidrs, mtu }: { readonly podCidrs: readonly string[]; readonly mtu: number }): number {
  const gateways = podCidrs.flatMap((text) => { const cidr = parseCidr(text); return cidr ? [`${formatIp(nthAddress(cidr, 1n))}/${cidr.prefix}`] : []; });
  const found = netlink.link(BRIDGE);
  const index = found?.index ?? netlink.addBridge(BRIDGE, { mtu, mac: macFor(gateways[0]!) });
  if (found && found.mtu !== mtu) netlink.setLink(index, { mtu });
  if (!found?.up) netlink.setLink(index, { up: true });
  const has = netlink.addresses(index);
  for (const gateway of gateways) if (!has.includes(gateway)) netlink.addAddress(index, gateway);
  const isV6 = gateways.some((gateway) => gateway.includes(":"));
  // with it the machine asks where a pod is when others send to it; the kernel makes it once, and not again when somebody has emptied the interface
  if (isV6 && !has.some((address) => address.startsWith("fe80:"))) netlink.addAddress(index, linkLocal((found ?? netlink.link(BRIDGE))!.mac));
  for (const address of has) if (!gateways.includes(address) && !address.startsWith("fe80:")) netlink.removeAddress(index, address); // of an earlier pod CIDR
  return index;
}
