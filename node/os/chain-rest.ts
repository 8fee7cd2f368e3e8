/**
 * What becomes of the packets that nothing in a chain of the packet filter is about: its policy says so, unless a rule without a condition comes first. Many firewalls accept by policy and end with one
 * that rejects the rest, be it in a chain that all is handed over to.
 *
 * Source: nft(8), VERDICT STATEMENTS; iptables(8), TARGETS
 */

/** A rule that is about every packet. */
export type Unconditional =
  | { readonly verdict: "accept" | "drop" | "return" }
  | { readonly verdict: "jump" | "goto"; readonly target: string };

export type Rest = "accept" | "drop";

/** `rulesOf`: a chain's rules without a condition, in order. */
export function restOf(chain: string, { policy, rulesOf }: { readonly policy: Rest; readonly rulesOf: (chain: string) => readonly Unconditional[] }): Rest {
  /** Undefined: it comes back to whoever handed it over. The kernel takes no chains that lead back to themselves. */
  function within(name: string): Rest | undefined {
    for (const rule of rulesOf(name)) {
      if (!("target" in rule)) return rule.verdict === "return" ? undefined : rule.verdict;
      const there = within(rule.target);
      if (there !== undefined || rule.verdict === "goto") return there;
    }
    return undefined;
  }

  return within(chain) ?? policy;
}
