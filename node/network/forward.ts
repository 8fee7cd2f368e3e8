/**
 * Docker, ufw and others set the policy of the host's own forward chain to drop, which no other table can overrule. Where that is so, pods' packets are
 * accepted in that very chain, by rules marked as ours: installers/linux/uninstall.sh takes them away.
 */
import { type Family, parseCidr } from "../../core/net/cidr.ts";
import type { Nft } from "../os/exec-nft.ts";

const COMMENT = "coracle pods";

export async function allowForwarding(nft: Nft, clusterCidrs: readonly string[], signal: AbortSignal): Promise<void> {
  for (const family of [4, 6] as const) {
    const cidrs = clusterCidrs.filter((cidr) => parseCidr(cidr)?.family === family);
    if (cidrs.length === 0) continue;
    const name = nameOf(family);
    const chain = await nft.chain(name, "filter", "FORWARD", { signal });
    const script = chain === undefined ? "" : forwardingText(chain, family, cidrs);
    if (script !== "") await nft.apply(script, { signal });
  }
}

/** Commands that let pods' packets through; "" if they pass already. Pure. */
export function forwardingText(chain: string, family: Family, cidrs: readonly string[]): string {
  if (!/policy drop/.test(chain) || chain.includes(COMMENT)) return "";
  const ip = nameOf(family);
  return cidrs.flatMap((cidr) => ["saddr", "daddr"].map((side) => `insert rule ${ip} filter FORWARD ${ip} ${side} ${cidr} counter accept comment "${COMMENT}"\n`)).join("");
}

function nameOf(family: Family): "ip" | "ip6" { return family === 4 ? "ip" : "ip6"; }
