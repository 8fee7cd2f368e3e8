/**
 * Who may send through the tunnel: the other nodes, and nobody else. Whoever could would be any pod that it says it is, and network policies believe that. Pure: the
 * text of an nftables table.
 *
 *   input     packets for the tunnel's port from others than nodes
 *   forward   those of our own pods to another node, which would arrive with this node's address; likewise what a Service leads there
 *
 * Source: Calico does both: https://github.com/projectcalico/calico/blob/master/felix/rules/static.go (VXLAN)
 */
import { parseIp } from "../../core/net/cidr.ts";
import { BRIDGE } from "../os/pod-bridge.ts";
import { VNI } from "./vxlan.ts";

export const GUARD_TABLE = "coracle-tunnel";

/** `udpPort`: absent where there is no tunnel. `from`: addresses of the other nodes. */
export function tunnelGuardText({ udpPort, from }: { readonly udpPort: number | undefined; readonly from: readonly string[] }): string {
  const at = `inet ${GUARD_TABLE}`;
  const none = [`add table ${at}`, `delete table ${at}`];
  if (udpPort === undefined) return `${none.join("\n")}\n`;
  const ours = `udp dport ${udpPort} @th,96,24 ${VNI} counter drop`; // whoever else uses that port (Docker's swarms do) has another VNI
  const arriving = ([4, 6] as const).map((family) => {
    const known = from.filter((address) => parseIp(address)?.family === family);
    const sent = known.length === 0 ? `meta nfproto ipv${family}` : `${family === 4 ? "ip" : "ip6"} saddr != { ${known.join(", ")} }`;
    return `add rule ${at} input ${sent} ${ours}`;
  });
  return [
    ...none, `add table ${at}`,
    `add chain ${at} input { type filter hook input priority -5; }`, ...arriving,
    `add chain ${at} forward { type filter hook forward priority -5; }`, `add rule ${at} forward iifname "${BRIDGE}" ${ours}`, `add rule ${at} forward ct status dnat ${ours}`,
  ].map((line) => `${line}\n`).join("");
}
