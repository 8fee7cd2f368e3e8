/**
 * Packets that the host's own firewall would drop: where ufw, Docker, a file of nftables or a cloud's image of a system has a chain drop what it is not about, by its policy or by its last rule, no other
 * table can overrule it. There, in that very chain, what the cluster needs is accepted, by rules marked as ours: installers/linux/uninstall.sh takes them away.
 *
 *   forward   from and to pods
 *   input     from pods; to the ingress, whose ports Services lead to; the tunnel, from other nodes
 *   output    to pods; the tunnel, to other nodes
 *
 * Nothing but addresses and ports is looked at: programs for iptables show no table that has anything else in it. firewalld is told in its own words (firewalld.ts), and so is iptables of the time
 * before nftables (legacy-iptables.ts). What a rule with a condition of its own drops stays dropped where the rest is accepted: somebody has meant it.
 */
import { createHash } from "node:crypto";
import { settleAll } from "../../core/lifecycle/settle-all.ts";
import { type Family, parseCidr, parseIp } from "../../core/net/cidr.ts";
import type { FilterChain, Nft } from "../os/exec-nft.ts";

export interface Passage {
  readonly clusterCidrs: readonly string[];
  /** Ports of this machine that are the ingress's: "10080", "10500-10999". */
  readonly ingressPorts: readonly string[];
  /** Where nodes' packets for each other arrive, and where the other nodes are. */
  readonly tunnel: { readonly udpPort: number; readonly peers: readonly string[] } | undefined;
}

export const COMMENT = "coracle pods";
/** Ours, and what CNI plugins have made for us. */
const OWN = /^(coracle|cni_)/;
export function isOwnTable(table: string): boolean { return OWN.test(table); }

/** Nobody but firewalld may write it. */
export const FIREWALLD_TABLE = "firewalld";

/** Tells a firewall whose tables nobody else may write: those chains it has, too. */
export type TellFirewall = (chains: readonly FilterChain[], passage: Passage, signal: AbortSignal) => Promise<void>;

export async function allowThroughFirewall(nft: Pick<Nft, "apply" | "filters">, passage: Passage, tell: readonly TellFirewall[], signal: AbortSignal): Promise<void> {
  const chains = (await nft.filters?.(isOwnTable, { signal })) ?? [];
  const scripts = chains.map((chain) => (chain.table === FIREWALLD_TABLE ? "" : passageText(chain, passage))).filter((script) => script !== "");
  await settleAll([...scripts.map((script) => nft.apply(script, { signal })), ...tell.map((one) => one(chains, passage, signal))]); // each for itself: a table may be one that nobody else may write
}

/** What packets are like that pass. */
export interface Match {
  readonly from?: string;
  readonly to?: string;
  readonly protocol?: "tcp" | "udp";
  /** Or ports, "10500-10999". */
  readonly port?: string;
}

/** What must pass a chain of packets of these families. */
export function matchesOf(hook: string, families: readonly Family[], { clusterCidrs, ingressPorts, tunnel }: Passage): Match[] {
  const isHere = (of: Family | undefined): boolean => of !== undefined && families.includes(of);
  const cidrs = clusterCidrs.filter((cidr) => isHere(parseCidr(cidr)?.family));
  const fromPods = cidrs.map((from) => ({ from }));
  if (hook === "forward") return [...fromPods, ...cidrs.map((to) => ({ to }))];
  const others = (tunnel?.peers ?? []).filter((address) => isHere(parseIp(address)?.family)), udp = { protocol: "udp", port: String(tunnel?.udpPort) } as const;
  if (hook === "output") return [...cidrs.map((to) => ({ to })), ...others.map((to) => ({ to, ...udp }))];
  if (hook !== "input") return [];
  const peers = others.map((from) => ({ from, ...udp }));
  return [...fromPods, ...ingressPorts.map((port) => ({ protocol: "tcp", port }) as const), ...peers];
}

/** What our rules say of themselves: another text when they are others. */
export function commentOf(rules: readonly string[]): string { return `${COMMENT} ${createHash("sha256").update(rules.join("\n")).digest("hex").slice(0, 8)}`; }

/** Commands that let through what is the cluster's; "" if it passes already. Pure. */
export function passageText({ family, table, name, hook, rest, commented }: FilterChain, passage: Passage): string {
  const at = `${family} ${table} ${name}`, ours = commented.filter(({ comment }) => comment.startsWith(COMMENT));
  const families = ([4, 6] as const).filter((of) => family === "inet" || family === nameOf(of));
  const wanted = rest !== "drop" ? [] : matchesOf(hook, families, passage).map(nftText);
  const comment = commentOf(wanted);
  if (ours.length === wanted.length && ours.every((one) => one.comment === comment)) return "";
  return [...ours.map(({ handle }) => `delete rule ${at} handle ${handle}\n`), ...wanted.map((match) => `insert rule ${at} ${match} counter accept comment "${comment}"\n`)].join("");
}

function nftText({ from, to, protocol, port }: Match): string {
  const address = (how: string, text: string | undefined): string[] => (text === undefined ? [] : [`${text.includes(":") ? "ip6" : "ip"} ${how} ${text}`]);
  return [...address("saddr", from), ...address("daddr", to), ...(protocol === undefined ? [] : [`${protocol} dport ${port}`])].join(" ");
}

function nameOf(family: Family): "ip" | "ip6" { return family === 4 ? "ip" : "ip6"; }
