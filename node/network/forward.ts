/**
 * Packets that the host's own firewall would drop: where ufw, Docker or a file of nftables has set the policy of a chain to drop, no other table can overrule it. There, in that very
 * chain, what the cluster needs is accepted, by rules marked as ours: installers/linux/uninstall.sh takes them away.
 *
 *   forward   from and to pods
 *   input     from pods; to the ingress, whose ports Services lead to; the tunnel, from other nodes
 *
 * Nothing but addresses and ports is looked at: programs for iptables show no table that has anything else in it. firewalld, which ends with a rule of its own that rejects the rest, is told
 * in its own words (firewalld.ts); another such firewall has to be by whoever runs it.
 */
import { createHash } from "node:crypto";
import { type Family, parseCidr, parseIp } from "../../core/net/cidr.ts";
import type { FilterChain, Nft } from "../os/exec-nft.ts";

export interface Passage {
  readonly clusterCidrs: readonly string[];
  /** Ports of this machine that are the ingress's: "10080", "10500-10999". */
  readonly ingressPorts: readonly string[];
  /** Where other nodes' packets arrive, and from whom. */
  readonly tunnel: { readonly udpPort: number; readonly from: readonly string[] } | undefined;
}

const COMMENT = "coracle pods";
/** Ours, and what CNI plugins have made for us. */
const OWN = /^(coracle|cni_)/;

/** Tells a firewall whose tables nobody else may write: those chains it has, too. */
export type TellFirewall = (chains: readonly FilterChain[], passage: Passage, signal: AbortSignal) => Promise<void>;

export async function allowThroughFirewall(nft: Pick<Nft, "apply" | "filters">, passage: Passage, tell: TellFirewall, signal: AbortSignal): Promise<void> {
  const chains = (await nft.filters?.((table) => OWN.test(table), { signal })) ?? [];
  const script = chains.map((chain) => passageText(chain, passage)).join("");
  if (script !== "") await nft.apply(script, { signal });
  await tell(chains, passage, signal);
}

/** Commands that let through what is the cluster's; "" if it passes already. Pure. */
export function passageText({ family, table, name, hook, policy, commented }: FilterChain, { clusterCidrs, ingressPorts, tunnel }: Passage): string {
  const at = `${family} ${table} ${name}`, ours = commented.filter(({ comment }) => comment.startsWith(COMMENT));
  const isHere = (of: Family | undefined): boolean => of !== undefined && (family === "inet" || family === nameOf(of));
  const cidrs = clusterCidrs.flatMap((cidr) => { const of = parseCidr(cidr)?.family; return isHere(of) ? [{ ip: nameOf(of!), cidr }] : []; });
  const from = cidrs.map(({ ip, cidr }) => `${ip} saddr ${cidr}`);
  const peers = (tunnel?.from ?? []).flatMap((address) => { const of = parseIp(address)?.family; return isHere(of) ? [`${nameOf(of!)} saddr ${address} udp dport ${tunnel!.udpPort}`] : []; });
  const wanted = policy !== "drop" ? [] : hook === "forward" ? [...from, ...cidrs.map(({ ip, cidr }) => `${ip} daddr ${cidr}`)] : hook === "input" ? [...from, ...ingressPorts.map((port) => `tcp dport ${port}`), ...peers] : [];
  const comment = `${COMMENT} ${createHash("sha256").update(wanted.join("\n")).digest("hex").slice(0, 8)}`;
  if (ours.length === wanted.length && ours.every((one) => one.comment === comment)) return "";
  return [...ours.map(({ handle }) => `delete rule ${at} handle ${handle}\n`), ...wanted.map((match) => `insert rule ${at} ${match} counter accept comment "${comment}"\n`)].join("");
}

function nameOf(family: Family): "ip" | "ip6" { return family === 4 ? "ip" : "ip6"; }
