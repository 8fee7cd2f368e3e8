/** The table of rules in the kernel: written as a whole at first, then what differs. */
import { type Breathe, inPieces } from "../../core/lifecycle/breather.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Nft } from "../os/exec-nft.ts";
import { differenceText, POLICY_TABLE, type PolicyRuleset, REMOVE_TEXT, wholeText } from "./ruleset.ts";

export class PolicyTable {
  readonly #nft: Nft;
  readonly #log: Log;
  #applied: PolicyRuleset | undefined; // what the kernel has; undefined: unknown, or nothing
  #exists = true; // perhaps one from before

  constructor({ nft, log }: { readonly nft: Nft; readonly log: Log }) {
    this.#nft = nft;
    this.#log = log;
  }

  /** In the kernel, as far as is known. */
  get exists(): boolean { return this.#exists; }

  async remove(signal: AbortSignal): Promise<void> {
    if (this.#exists) await this.#nft.apply(REMOVE_TEXT, { signal });
    this.#exists = false;
    this.#applied = undefined;
  }

  async apply(ruleset: PolicyRuleset, { breathe, signal }: { readonly breathe: Breathe; readonly signal: AbortSignal }): Promise<void> {
    const before = this.#applied;
    this.#applied = undefined; // until we know better
    this.#exists = true;
    if (before === undefined) await this.#nft.apply(await inPieces(wholeText(ruleset), breathe), { signal });
    else {
      const { text, cleanup } = await inPieces(differenceText(before, ruleset), breathe);
      if (text !== "") await this.#nft.apply(text, { signal });
      if (cleanup !== "") await this.#nft.apply(cleanup, { signal });
    }
    this.#applied = ruleset;
  }

  /** Whether the kernel still has it. If not, all of it is written the next time. */
  async isIntact(signal: AbortSignal): Promise<boolean> {
    if (!this.#exists) return true;
    const intact = (await this.#nft.chain("inet", POLICY_TABLE, "forward", { signal }).catch(() => undefined))?.includes("check-ingress") === true; // a failure shows in the sync
    if (!intact && !signal.aborted) {
      this.#log.warn("the network policies are gone from the kernel, writing them again", { table: POLICY_TABLE });
      this.#applied = undefined;
    }
    return intact;
  }
}
