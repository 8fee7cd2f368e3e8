/**
 * Keeps our table in the kernel equal to a Ruleset: one transaction a sync, with only what differs from what was applied last.
 *
 * All of it is written anew at the start, after a failure, and when the table has lost its frame (somebody ran `nft flush ruleset`). Even then nothing is
 * missing for a moment, since a transaction is atomic, and clients keep their affinity, since those sets are left alone. If the kernel refuses, or the table is
 * one of another version, it is replaced as a whole.
 */
import type { Log } from "../../../core/observe/log.ts";
import type { Nft } from "../../os/exec-nft.ts";
import { elementBytes } from "./elements.ts";
import { FRAME_CHAINS, frameText, type FrameOptions } from "./frame.ts";
import { CONTAINERS, deletion, difference, EMPTY_RULESET, NO_LEFTOVERS, type Ruleset, type Transaction } from "./ruleset.ts";

/** What fits into the socket's buffer, whatever the kernel's settings; more is seldom, and then nft is no matter. */
const ELEMENTS_MAX = 200;

export type SyncOutcome = "unchanged" | "partial" | "full";

export class NftTable {
  readonly #nft: Nft;
  #frame: FrameOptions;
  readonly #log: Log;
  readonly #onLeftover: () => void;
  #applied: Ruleset | undefined; // undefined: what the kernel has is not known
  #garbage = NO_LEFTOVERS;

  /** `onLeftover`: what was emptied could not be deleted. */
  constructor({ nft, frame, log, onLeftover = () => undefined }: { readonly nft: Nft; readonly frame: FrameOptions; readonly log: Log; readonly onLeftover?: () => void }) {
    this.#nft = nft;
    this.#frame = frame;
    this.#log = log;
    this.#onLeftover = onLeftover;
  }

  /** The next sync writes everything, with this frame. */
  reframe(change: Partial<Pick<FrameOptions, "serviceCidrs">>): void {
    this.#frame = { ...this.#frame, ...change };
    this.#applied = undefined;
  }

  get #family(): "ip" | "ip6" { return this.#frame.family === 4 ? "ip" : "ip6"; }

  /**
   * Throws if the kernel or nft refuses; the next call then writes everything. `delta`: what differs from the last call that did not throw, for callers who know.
   */
  async sync(ruleset: Ruleset, signal: AbortSignal, delta?: { readonly before: Ruleset; readonly after: Ruleset }): Promise<SyncOutcome> {
    const { table, family } = this.#frame;
    const before = this.#applied;
    if (before === undefined) {
      await this.#syncAll(ruleset, signal);
      this.#applied = ruleset;
      await this.#collect(ruleset, signal);
      return "full";
    }
    const { text, elements, garbage } = difference(table, family, delta?.before ?? before, delta?.after ?? ruleset);
    if (text === "" && garbage.chains.length + garbage.sets.size === 0) {
      this.#applied = ruleset;
      return "unchanged";
    }
    this.#applied = undefined;
    if (text !== "" && !this.#change(elements)) await this.#nft.apply(text, { signal });
    this.#applied = ruleset;
    this.#garbage = { chains: [...this.#garbage.chains, ...garbage.chains], sets: new Map([...this.#garbage.sets, ...garbage.sets]) };
    await this.#collect(ruleset, signal);
    return "partial";
  }

  /** Without the nft program, if that is possible; true if it was. */
  #change(elements: Transaction["elements"]): boolean {
    if (!elements || !this.#nft.elements || elements.remove.length + elements.add.length > ELEMENTS_MAX) return false;
    const remove = elements.remove.map(elementBytes), add = elements.add.map(elementBytes);
    if (!remove.every((one) => one !== undefined) || !add.every((one) => one !== undefined)) return false;
    try {
      this.#nft.elements({ family: this.#family, table: this.#frame.table, remove, add });
      return true;
    } catch (error) {
      this.#log.debug("the kernel refuses elements, nft is asked", { family: this.#family, error });
      return false;
    }
  }

  /** Looks whether the table is still there; if it is not, the next sync writes everything. True if it is. */
  async verify(signal: AbortSignal): Promise<boolean> {
    if (this.#applied === undefined) return false;
    const chain = await this.#nft.chain(this.#family, this.#frame.table, "nat-prerouting", { signal });
    if (chain?.includes("jump services") === true) return true;
    this.#applied = undefined;
    this.#garbage = NO_LEFTOVERS;
    return false;
  }

  async #syncAll(ruleset: Ruleset, signal: AbortSignal): Promise<void> {
    const { table } = this.#frame;
    const at = `${this.#family} ${table}`;
    const content = frameText(this.#frame) + difference(table, this.#frame.family, EMPTY_RULESET, ruleset).text;
    try {
      const found = (await this.#nft.names(this.#family, table, { signal })) ?? { chains: [], sets: [], maps: [] };
      const kinds = new Map([...found.sets.map((name) => [name, "set"] as const), ...found.maps.map((name) => [name, "map"] as const)]);
      if (kinds.size > 0 && !CONTAINERS.every((name) => kinds.has(name))) throw new Error("a table of another version");
      const chains = found.chains.filter((name) => !FRAME_CHAINS.has(name) && !ruleset.chains.has(name));
      const sets = new Map([...kinds].filter(([name]) => name.includes("/") && !ruleset.sets.has(name)));
      const emptied = [...chains.map((name) => `flush chain ${at} ${name}\n`), ...[...sets].map(([name, kind]) => `flush ${kind} ${at} ${name}\n`)];
      await this.#nft.apply(content + emptied.join(""), { signal });
      this.#garbage = { chains, sets };
    } catch (error) {
      if (signal.aborted) throw error;
      await this.#nft.apply(`add table ${at}\ndelete table ${at}\n${content}`, { signal });
      this.#log.warn("the service rules could not be brought up to date, all were replaced", { family: this.#family, error });
      this.#garbage = NO_LEFTOVERS;
    }
  }

  /** Deletes what earlier transactions have emptied. What is refused waits for the next sync. */
  async #collect(ruleset: Ruleset, signal: AbortSignal): Promise<void> {
    const chains = [...new Set(this.#garbage.chains)].filter((name) => !ruleset.chains.has(name));
    const sets = new Map([...this.#garbage.sets].filter(([name]) => !ruleset.sets.has(name)));
    this.#garbage = { chains, sets };
    if (chains.length + sets.size === 0) return;
    try {
      await this.#nft.apply(deletion(this.#frame.table, this.#frame.family, this.#garbage), { signal });
      this.#garbage = NO_LEFTOVERS;
    } catch (error) {
      if (!signal.aborted) this.#onLeftover();
      this.#log.debug("unused chains cannot be deleted yet", { chains: chains.length, sets: sets.size, error });
    }
  }
}
