/**
 * A node that a server sees somewhere else than at the addresses it has, as behind NAT, a proxy or a VPN. The tunnel works all the same, and with it logs, exec and webhooks; but pods of other
 * nodes are looked for at its own address. Where that leads nowhere, Services lose what they send there, and nothing else would say so. Pure.
 */
import type { Node } from "../core/api/gen/core.v1.ts";
import { cidrContains, cidrOf, parseCidr, parseIp } from "../core/net/cidr.ts";

/** Of one network: programs dial out from temporary addresses. */
const NETWORK_PREFIX_V6 = 64;
/** Who calls from there is on the very link. */
const LINK_LOCAL = parseCidr("fe80::/10")!;

/** What to tell of it; undefined while it is where it says. */
export function seenElsewhere({ status }: Readonly<Node>, remoteAddress: string): string | undefined {
  const from = parseIp(remoteAddress), own = (status?.addresses ?? []).filter(({ type }) => type === "InternalIP" || type === "ExternalIP").map(({ address }) => address);
  if (from === undefined || own.length === 0) return undefined;
  const range = cidrOf(from, from.family === 6 ? NETWORK_PREFIX_V6 : 32);
  const alike = own.map((address) => parseIp(address)).filter((ip) => ip?.family === range.family);
  if (alike.length === 0 || alike.some((ip) => cidrContains(range, ip!)) || cidrContains(LINK_LOCAL, from)) return undefined; // a node of IPv4 may well call by IPv6
  return `The server is called from ${remoteAddress}, and the node's address is ${own.join(", ")}, as behind NAT, a proxy or a VPN: where other nodes do not reach it there (UDP 4789), their pods and its own do not reach each other, nor do Services; an address that they reach, as a VPN's, is given with --node-ip`;
}
