/**
 * How packets for pods of other nodes get there: one interface, several ways.
 *
 *   vxlan     wrapped in UDP between the nodes: works wherever nodes reach each other (the default)
 *   host-gw   routes by way of the other nodes: faster, if all are in one segment
 *   none      somebody else's business: a cloud's routes, another CNI plugin
 */
import type { Node } from "../../core/api/gen/core.v1.ts";
import { compareText } from "../../core/api/meta/compare-text.ts";
import { type Cidr, cidrContains, cidrSize, cidrsOverlap, type Family, parseCidr, parseIp } from "../../core/net/cidr.ts";

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
  /** What is too large once it is wrapped does not arrive; absent: the kernel takes it apart. */
  readonly dropsLarge?: boolean | undefined;
  /** Where packets of other nodes arrive; absent: they come as they are. */
  readonly udpPort?: number | undefined;
  /** Makes routes to exactly these peers; those to peers that stay are not touched. May be called again with the same. */
  sync(own: Peer, others: readonly Peer[], signal: AbortSignal): Promise<void>;
}

/** Every link that carries IPv6 must take this (RFC 8200); without it the kernel gives a device no address of that family. */
const IPV6_MTU_MIN = 1280;

/** How large packets of pods may be. Some may be too large for the host's own network once they are wrapped. */
export function podMtu({ uplinkMtu, overheadBytes, podCidrs }: { readonly uplinkMtu: number; readonly overheadBytes: number; readonly podCidrs: readonly string[] }): number {
  return Math.max(uplinkMtu - overheadBytes, podCidrs.some((cidr) => parseCidr(cidr)?.family === 6) ? IPV6_MTU_MIN : 0);
}

export const noOverlay: Overlay = { overheadBytes: 0, async sync() {} };

/** Undefined as long as the node has no pod CIDR or address. */
export function peerOf(node: Readonly<Node>): Peer | undefined {
  const podCidrs = podCidrsOf(node);
  const ips = (node.status?.addresses ?? []).filter(({ type, address }) => type === "InternalIP" && parseIp(address)).map(({ address }) => address);
  const mac = node.metadata.annotations?.[ROUTER_MAC_ANNOTATION];
  return podCidrs.length === 0 || ips.length === 0 ? undefined : { name: node.metadata.name, ips, podCidrs, ...(/^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/.test(mac ?? "") ? { mac } : {}) };
}

/**
 * Of what the other nodes say of themselves, what can be true, the oldest first. A node may register with any range and call itself as it likes: it does not get packets that are for pods of this
 * node, for pods of a node that was there before, or for this machine.
 */
export function peersOf(own: Readonly<Node>, nodes: Iterable<Readonly<Node>>): Peer[] {
  const others = [...nodes].filter(({ metadata }) => metadata.name !== own.metadata.name).toSorted(byAge);
  const told = others.flatMap((node) => peerOf(node) ?? []);
  const claims = [own, ...told].flatMap((one) => ("podCidrs" in one ? one.podCidrs : podCidrsOf(one)).map((text) => ({ by: one, text, range: parseCidr(text)! })));
  const refused = new Set(overlapping(claims));
  const ips = (peerOf(own)?.ips ?? []).map((text) => parseIp(text)!);
  for (const claim of claims) if (claim.by !== own && ips.some((ip) => cidrContains(claim.range, ip))) refused.add(claim);
  if (refused.size === 0) return told;
  return told.map((peer) => ({ ...peer, podCidrs: claims.filter((claim) => claim.by === peer && !refused.has(claim)).map(({ text }) => text) })).filter(({ podCidrs }) => podCidrs.length > 0);
}

function byAge(a: Readonly<Node>, b: Readonly<Node>): number {
  const order = ({ metadata: { creationTimestamp = "", name } }: Readonly<Node>): string => `${creationTimestamp} ${name}`;
  return compareText(order(a), order(b));
}

/** Those that overlap one before them. Mostly there is none: who lies side by side is not compared with everybody. */
function overlapping<T extends { readonly range: Cidr }>(claims: readonly T[]): T[] {
  const sorted = claims.map((claim, order) => ({ claim, order, from: claim.range.base, until: claim.range.base + cidrSize(claim.range) })).toSorted((a, b) => a.claim.range.family - b.claim.range.family || (a.from < b.from ? -1 : a.from > b.from ? 1 : a.order - b.order));
  const refused: T[] = [];
  for (let at = 0, end: number; at < sorted.length; at = end) {
    let { until } = sorted[at]!;
    const { family } = sorted[at]!.claim.range;
    for (end = at + 1; end < sorted.length && sorted[end]!.claim.range.family === family && sorted[end]!.from < until; end++) if (sorted[end]!.until > until) ({ until } = sorted[end]!);
    const taken: Cidr[] = [];
    for (const { claim } of sorted.slice(at, end).toSorted((a, b) => a.order - b.order)) {
      if (taken.some((range) => cidrsOverlap(range, claim.range))) refused.push(claim);
      else taken.push(claim.range);
    }
  }
  return refused;
}

export function podCidrsOf({ spec = {} }: Readonly<Node>): readonly string[] {
  return (spec.podCIDRs?.length ? spec.podCIDRs : spec.podCIDR ? [spec.podCIDR] : []).filter((cidr) => parseCidr(cidr));
}

/** The address to use for a pod CIDR's family, or else the other one: a tunnel carries both. */
export function ipOf({ ips }: Peer, family: Family): string | undefined {
  return ips.find((ip) => parseIp(ip)?.family === family);
}
