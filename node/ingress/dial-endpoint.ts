/**
 * A connection to an endpoint. One that is given by name (a Service of type ExternalName) is looked up in the machine's DNS, and may be neither this machine itself nor
 * what is only on its link: requests come from whoever may write an Ingress, and we are the host. The same addresses are refused in EndpointSlices.
 */
import { lookup } from "node:dns/promises";
import type { Socket } from "node:net";
import type { Endpoint } from "../../core/ingress/endpoints.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { cidrContains, type Ip, parseCidr, parseIp } from "../../core/net/cidr.ts";
import { dialTcp } from "../../core/net/dial-tcp.ts";

const DIAL_MS = 5_000;
const FORBIDDEN = ["0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "::/128", "::1/128", "fe80::/10", "ff00::/8"].map((text) => parseCidr(text)!);

export async function dialEndpoint({ address, port, isAlias }: Endpoint, { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal }): Promise<Socket> {
  const host = isAlias ? await resolveName(address) : address;
  return await dialTcp({ host, port, timeoutMs: DIAL_MS, allowHalfOpen: true }, { clock, signal });
}

async function resolveName(name: string): Promise<string> {
  const found = (await lookup(name, { all: true })).map(({ address }) => address);
  const usable = found.find(mayBeDialled);
  if (usable === undefined) throw new Error(`${name} has no address that may be used: ${found.join(", ")}`);
  return usable;
}

/** Pure. An IPv4 address in IPv6 form is what it stands for. */
export function mayBeDialled(address: string): boolean {
  const given = parseIp(address.replace(/^::ffff:(?=\d+\.)/i, ""));
  const ip: Ip | undefined = given?.family === 6 && given.value >> 32n === 0xffffn ? { family: 4, value: given.value & 0xffff_ffffn } : given;
  return ip !== undefined && !FORBIDDEN.some((range) => range.family === ip.family && cidrContains(range, ip));
}
