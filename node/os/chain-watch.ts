/**
 * Tells when one of some chains of the packet filter gets another policy, or more or fewer rules, and when there are more or fewer chains in a table, as by `iptables -P FORWARD DROP`, `iptables -F`, or
 * rules that are loaded anew: the tables are those of before then, and table-watch.ts sees nothing. The kernel is asked for each of them every second; they are those of other programs, which are few.
 *
 * Source: linux include/uapi/linux/netfilter/nf_tables.h
 */
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import type { NftFamily } from "./exec-nft.ts";
import { attribute, findAttribute, joined, text } from "./netlink-message.ts";
import type { NetlinkSocket } from "./netlink-socket.ts";
import { SUBSYSTEM } from "./nft-batch.ts";

export interface ChainName { readonly family: NftFamily; readonly table: string; readonly name: string }

/** From now on `look` is called when these, or the tables, are others than before, and once for each that was not watched: it may have changed since it was found. `look` does not throw. */
export type WatchChains = (chains: readonly ChainName[], look: () => void) => void;

export interface ChainWatch extends Runnable { readonly watchChains: WatchChains }

const LOOK_MS = 1000;
/** After a tell so many looks tell nothing, but later: whoever changes rules all the time costs no more than that. */
const QUIET_LOOKS = 5;
const GET_TABLE = 1, TABLE = { NAME: 1, CHAINS: 3 } as const, GET_CHAIN = 4, CHAIN = { TABLE: 1, HANDLE: 2, NAME: 3, POLICY: 5, RULES: 6 } as const, HEADER_BYTES = 4;
const FAMILIES: Readonly<Record<NftFamily, number>> = { inet: 1, ip: 2, bridge: 7, ip6: 10 };

interface Options {
  /** Opens the packet filter's. */
  readonly netlink: () => NetlinkSocket;
  /** Tables that are not looked at, by their names. */
  readonly isOwn: (table: string) => boolean;
  readonly clock: Clock;
}

export function chainWatch({ netlink, isOwn, clock }: Options): ChainWatch {
  let watched: readonly ChainName[] = [], tell: (() => void) | undefined;
  let before: ReadonlyMap<string, string> = new Map();
  let socket: NetlinkSocket | undefined;

  /** What of a chain or table counts; the same for all that the kernel does not tell of, as one that is gone. */
  function stateOf({ family, table, name }: ChainName): string {
    try {
      const [found = new Uint8Array(HEADER_BYTES)] = (socket ??= netlink()).get((SUBSYSTEM << 8) | GET_CHAIN, joined([Uint8Array.of(FAMILIES[family], 0, 0, 0), attribute(CHAIN.TABLE, text(table)), attribute(CHAIN.NAME, text(name))]));
      return [CHAIN.HANDLE, CHAIN.POLICY, CHAIN.RULES].map((type) => hexOf(found, type)).join();
    } catch {
      return "";
    }
  }

  /** By family and name. */
  function statesOfTables(): [string, string][] {
    try {
      const tables = (socket ??= netlink()).dump((SUBSYSTEM << 8) | GET_TABLE, new Uint8Array(HEADER_BYTES));
      return tables.flatMap((one) => (isOwn(nameOf(one)) ? [] : [[`${one[0]} ${nameOf(one)}`, hexOf(one, TABLE.CHAINS)]]));
    } catch {
      return [];
    }
  }

  function isOther(): boolean {
    const now = new Map([...statesOfTables(), ...watched.map((chain): [string, string] => [`${chain.family} ${chain.table} ${chain.name}`, stateOf(chain)])]);
    const changed = [...now].some(([name, state]) => before.get(name) !== state);
    before = now;
    return changed;
  }

  return {
    name: "chain watch",
    watchChains(chains, look) {
      watched = chains;
      tell = look;
    },
    async run(signal, ready) {
      ready();
      let isDue = false, quiet = 0; // looks to come
      for await (const _ of clock.every(LOOK_MS, signal)) {
        if (tell === undefined) continue;
        if (isOther()) isDue = true;
        if (quiet > 0) quiet--;
        if (!isDue || quiet > 0) continue;
        isDue = false;
        quiet = QUIET_LOOKS;
        tell();
      }
      socket?.close();
    },
  };
}

function hexOf(message: Uint8Array, type: number): string { return Buffer.from(findAttribute(message.subarray(HEADER_BYTES), type) ?? []).toString("hex"); }
function nameOf(table: Uint8Array): string { return Buffer.from(findAttribute(table.subarray(HEADER_BYTES), TABLE.NAME) ?? []).toString().replace("\0", ""); }
