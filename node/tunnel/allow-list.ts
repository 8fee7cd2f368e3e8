/**
 * What a node's agent dials on the server's behalf: the kubelet, pods of this node, and ports that pods of this node have on its own addresses.
 * Whoever takes over a server must not get, through the tunnel, at all else the node can reach.
 */
import { cidrContains, parseCidr, parseIp } from "../../core/net/cidr.ts";

export interface AllowList {
  /** Names and addresses of this node. */
  readonly nodeHosts: () => readonly string[];
  /** Where the kubelet listens. */
  readonly kubelet: Address;
  readonly podCidrs: () => readonly string[];
  /** TCP ports that pods on the host's network say they have. */
  readonly hostPorts: () => ReadonlySet<number>;
}

export interface Address { readonly host: string; readonly port: number }

/** What to dial for "host:port"; undefined: nothing. */
export function allowedAddress(address: string, { nodeHosts, kubelet, podCidrs, hostPorts }: AllowList): Address | undefined {
  const asked = parseAddress(address);
  if (!asked) return undefined;
  const { host, port } = asked;
  if (nodeHosts().includes(host) || LOOPBACK.has(host)) {
    if (port === kubelet.port) return kubelet; // however the server calls us: the address it knows may be one that only others have
    return hostPorts().has(port) ? asked : undefined;
  }
  const ip = parseIp(host);
  if (!ip) return undefined; // no names: what they mean is not ours to say
  return podCidrs().some((text) => { const range = parseCidr(text); return range !== undefined && cidrContains(range, ip); }) ? asked : undefined;
}

const LOOPBACK: ReadonlySet<string> = new Set(["127.0.0.1", "::1", "localhost"]);

/** "10.0.0.1:80", "[fd00::1]:80" or "name:80". */
function parseAddress(text: string): Address | undefined {
  const found = /^(?:\[([^[\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text);
  const port = Number(found?.[3]);
  return found && port >= 1 && port <= 65535 ? { host: (found[1] ?? found[2])!, port } : undefined;
}
