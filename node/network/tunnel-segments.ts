/**
 * What a tunnel over IPv6 carries is not taken apart: a packet that is too large for the host's own network once it is wrapped is dropped, and IPv6 in pods knows none that must be smaller than
 * 1280 bytes. There connections of TCP are told of smaller segments as they begin, those that come as well as those that go. Pure: text for the tunnel guard's table.
 *
 * Source: linux net/ipv6/ip6_output.c (ip6_fragment: of packets that a device has wrapped), net/ipv6/route.c (__ip6_rt_update_pmtu)
 */
import { GUARD_TABLE } from "./tunnel-guard.ts";
import { VXLAN_DEVICE } from "./vxlan.ts";

/** Of IPv6 and of TCP. */
const HEADER_BYTES = 40 + 20;
/** Where packets are changed on their way: mangle's place. */
const PRIORITY = -150;

/** `carriedBytes`: the largest packet that arrives; undefined: all do. */
export function tunnelSegmentsText(carriedBytes: number | undefined): string {
  if (carriedBytes === undefined) return "";
  return ([["postrouting", "oifname"], ["prerouting", "iifname"]] as const).flatMap(([hook, interfaceName]) => [
    `add chain inet ${GUARD_TABLE} ${hook} { type filter hook ${hook} priority ${PRIORITY}; }`,
    `add rule inet ${GUARD_TABLE} ${hook} ${interfaceName} "${VXLAN_DEVICE}" meta nfproto ipv6 tcp flags syn tcp option maxseg size set ${carriedBytes - HEADER_BYTES}`,
  ]).map((line) => `${line}\n`).join("");
}
