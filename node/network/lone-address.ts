/**
 * An address for a machine that is on no network, on its loopback interface: by it pods reach the API server, the kubelet and NodePorts, as they would by that of a network
 * card. 127.0.0.1 is themselves to them, and may stand in no Endpoints.
 *
 * The addresses are of documentation's ranges, which no network has (RFC 5737, RFC 3849). They go once the machine is on a network that pods' first family of addresses has, too:
 * address-watch.ts ends the process then.
 * installers/linux/uninstall.sh removes them.
 */
import type { Netlink } from "../os/netlink.ts";
import { nodeAddresses, type NetworkFacts } from "./node-ip.ts";

const LONE = { 4: "192.0.2.1/32", 6: "2001:db8::1/128" } as const;
const LOOPBACK = "lo";

/** Before the node's addresses are asked for. `families`: of the pods' addresses. */
export function ensureLoneAddress(netlink: Pick<Netlink, "link" | "addresses" | "addAddress" | "removeAddress">, families: readonly (4 | 6)[], facts?: NetworkFacts): void {
  const device = netlink.link(LOOPBACK)?.index;
  if (device === undefined) return;
  const isLone = nodeAddresses([], facts).interfaceName === undefined;
  const has = netlink.addresses(device);
  for (const [family, address] of Object.entries(LONE)) {
    const wanted = isLone && (family === "4" || families.includes(6));
    if (wanted && !has.includes(address)) netlink.addAddress(device, address);
    else if (!wanted && has.includes(address)) netlink.removeAddress(device, address);
  }
}
