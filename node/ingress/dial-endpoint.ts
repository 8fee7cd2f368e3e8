/**
 * A connection to an endpoint. One that is given by name (a Service of type ExternalName) is looked up in the machine's DNS, and may be neither this machine itself nor
 * what is only on its link: requests come from whoever may write an Ingress, and we are the host. The same addresses are refused in EndpointSlices. Nor may it be a pod or a Service
 * of the cluster, named by its address: what a NetworkPolicy keeps from that namespace it does not keep from the node.
 */
import { lookup } from "node:dns/promises";
import type { Socket } from "node:net";
import type { Endpoint } from "../../core/ingress/endpoints.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { addressBits, type Cidr, cidrContains, type Ip, parseCidr, parseIp } from "../../core/net/cidr.ts";
import { dialTcp } from "../../core/net/dial-tcp.ts";

const DIAL_MS = 5_000;
const FORBIDDEN = ["0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "::/128", "::1/128", "fe80::/10", "ff00::/8"].map((text) => parseCidr(text)!);

/** Besides the above: this machine's addresses, and the cluster's ranges. */
export type Withheld = () => readonly Cidr[];

export async function dialEndpoint({ address, port, isAlias }: Endpoint, { withheld, clock, signal }: { readonly withheld: Withheld; readonly clock: Clock; readonly signal: AbortSignal }): Promise<Socket> {
  const host = isAlias ? await resolveName(address, withheld()) : address;
  return await dialTcp({ host, port, timeoutMs: DIAL_MS, allowHalfOpen: true }, { clock, signal });
}

async function resolveName(name: string, withheld: readonly Cidr[]): Promise<string> {
  const found = (await lookup(name, { all: true })).map(({ address }) => address);
  const usable = found.find((one) => mayBeDialled(one, withheld));
  if (usable === undefined) throw new Error(`${name} has no address that may be used: ${found.join(", ")}`);
  return usable;
}

/** Of ranges and addresses; an address is a range of one. Pure. */
export function withheldRanges(texts: readonly string[]): Cidr[] {
  return texts.flatMap((text) => {
    const ip = parseIp(text);
    return ip ? { family: ip.family, base: ip.value, prefix: addressBits(ip.family) } : parseCidr(text) ?? [];
  });
}

/** Pure. An IPv4 address in IPv6 form is what it stands for. */
export function mayBeDialled(address: string, withheld: readonly Cidr[]): boolean {
  const given = parseIp(address.replace(/^::ffff:(?=\d+\.)/i, ""));
  const ip: Ip | undefined = given?.family === 6 && given.value >> 32n === 0xffffn ? { family: 4, value: given.value & 0xffff_ffffn } : given;
  return ip !== undefined && ![...FORBIDDEN, ...withheld].some((range) => range.family === ip.family && cidrContains(range, ip));
}
