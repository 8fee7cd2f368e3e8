/**
 * How packets for pods of other nodes get there: one interface, several ways.
 *
 *   vxlan     wrapped in UDP between the nodes: works wherever nodes reach each other (the default)
 *   host-gw   routes by way of the other nodes: faster, if all are in one segment
 *   none      somebody else's business: a cloud's routes, another CNI plugin
 */
import type { Node } from "../../core/api/gen/core.v1.ts";
import { type Family, parseCidr, parseIp } from "../../core/net/cidr.ts";

export interface Peer {
  readonly name: string;
  /** Where its packets go, by family. */
  readonly ips: readonly string[];
  readonly podCidrs: readonly string[];
  /** Where its end of the tunnel is not ours to name: of a Windows node's router. */
  readonly mac?: string | undefined;
}

/** On Nodes whose end of the tunnel has an address of its own choice. */
export const ROUTER_MAC_ANNOTATION = "coracle.local/vxlan-router-mac";

export interface Overlay {
  /** Bytes by which pods' packets must be smaller than the host's. */
  readonly overheadBytes: number;
  /** Where packets of other nodes arrive; absent: they come as they are. */
  readonly udpPort?: number | undefined;
  /** Makes routes to exactly these peers; those to peers that stay are not touched. May be called again with the same. */
  sync(own: Peer, others: readonly Peer[], signal: AbortSignal): Promise<void>;
  /** Removes all it has made, on this machine. */
  remove(signal: AbortSignal): Promise<void>;
}

export const noOverlay: Overlay = { overheadBytes: 0, async sync() {}, async remove() {} };

/** Undefined as long as the node has no pod CIDR or address. */
export function peerOf(node: Readonly<Node>): Peer | undefined {
  const podCidrs = podCidrsOf(node);
  const ips = (node.status?.addresses ?? []).filter(({ type, address }) => type === "InternalIP" && parseIp(address)).map(({ address }) => address);
  const mac = node.metadata.annotations?.[ROUTER_MAC_ANNOTATION];
  return podCidrs.length === 0 || ips.length === 0 ? undefined : { name: node.metadata.name, ips, podCidrs, ...(/^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/.test(mac ?? "") ? { mac } : {}) };
}

export function podCidrsOf({ spec = {} }: Readonly<Node>): readonly string[] {
  return (spec.podCIDRs?.length ? spec.podCIDRs : spec.podCIDR ? [spec.podCIDR] : []).filter((cidr) => parseCidr(cidr));
}

/** The address to use for a pod CIDR's family, or else the other one: a tunnel carries both. */
export function ipOf({ ips }: Peer, family: Family): string | undefined {
  return ips.find((ip) => parseIp(ip)?.family === family);
}
