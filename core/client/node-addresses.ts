/**
 * The addresses of a node that others may be sent to. A node writes them itself, and the API takes any text: one that the API would refuse in an EndpointSlice or in a Service's status
 * is left out, or whatever the other nodes are to have with it would not be written, either. Pure.
 */
import type { Node } from "../api/gen/core.v1.ts";
import { parseIp } from "../net/cidr.ts";

export function nodeAddresses({ status }: { readonly status?: Node["status"] | undefined }, type: "InternalIP" | "ExternalIP"): string[] {
  return (status?.addresses ?? []).filter((one) => one.type === type && isReachable(one.address)).map(({ address }) => address);
}

/** Neither nobody's nor this machine's, its link's or many's, and not an address of IPv4 in the form of one of IPv6. */
function isReachable(text: string): boolean {
  const ip = parseIp(text);
  if (!ip || (ip.family === 4 && text.includes(":"))) return false;
  const { family, value } = ip;
  if (family === 4) return value !== 0n && value >> 24n !== 127n && value >> 16n !== 0xa9fen && value >> 28n !== 0xen;
  return value > 1n && value >> 118n !== 0x3fan && value >> 120n !== 0xffn;
}
