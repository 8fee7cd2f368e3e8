/**
 * Tells when tables of nftables come or go, or are made anew: whoever empties the kernel's packet filter (`nft flush ruleset`, a firewall that starts again) takes ours with the rest. Who has rules there
 * looks at once then, not at the end of a period of its own.
 *
 * The list of tables is asked for each second: the kernel tells it in a few microseconds. What it could tell by itself, each change of each rule and element, would be ours above all. One that is gone,
 * was made again and is gone once more when it is looked for again, as when a firewall starts twice, looks as it did: for a while what is still missing is told of each time.
 *
 * Source: linux include/uapi/linux/netfilter/nf_tables.h
 */
import { isDeepStrictEqual } from "node:util";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import type { Log } from "../../core/observe/log.ts";
import { findAttribute } from "./netlink-message.ts";
import type { NetlinkSocket } from "./netlink-socket.ts";
import { SUBSYSTEM } from "./nft-batch.ts";

/** Is given what to call when tables are others than before; returns what ends that. `look` does not throw, and is called again when it has looked, if they are others again by then. */
export type OnTables = (look: () => Promise<void> | void) => () => void;

/** Their handles, by family and name. */
type Tables = ReadonlyMap<string, string>;

export interface TableWatch extends Runnable { readonly onTables: OnTables }

const LOOK_MS = 1000;
/** Where the kernel does not say, as one without the packet filter, it is asked less often. */
const LOOKS_LEFT_OUT = 30;
/** How often a table that is missing is told of; whose it was may have taken it away for good. */
const MISSING_TELLS_MAX = 10;
const GET_TABLE = 1, TABLE = { NAME: 1, HANDLE: 4 } as const, HEADER_BYTES = 4;
const OF_ALL_FAMILIES = new Uint8Array(HEADER_BYTES);

/** `netlink`: opens the packet filter's. */
export function tableWatch({ netlink, clock, log }: { readonly netlink: () => NetlinkSocket; readonly clock: Clock; readonly log: Log }): TableWatch {
  const listeners = new Map<() => Promise<void> | void, { isLooking: boolean; isLate: boolean }>();
  let socket: NetlinkSocket | undefined;
  let before: Tables | undefined;
  const missing = new Set<string>();
  let tellsLeft = 0; // of those
  let leftOut = 0; // looks to come

  /** Undefined: the kernel does not say. */
  function tables(): Tables | undefined {
    if (leftOut > 0) {
      leftOut--;
      return undefined;
    }
    try {
      return new Map((socket ??= netlink()).dump((SUBSYSTEM << 8) | GET_TABLE, OF_ALL_FAMILIES).map(tableOf));
    } catch (error) {
      log.debug("the kernel does not tell its tables of rules", { error });
      leftOut = LOOKS_LEFT_OUT;
      return undefined;
    }
  }

  function isToldOf(now: Tables): boolean {
    const isOther = before !== undefined && !isDeepStrictEqual(now, before);
    for (const name of before?.keys() ?? []) missing.add(name);
    for (const name of now.keys()) missing.delete(name);
    before = now;
    if (isOther) tellsLeft = MISSING_TELLS_MAX;
    if (isOther || (missing.size > 0 && tellsLeft-- > 0)) return true;
    missing.clear();
    return false;
  }

  /** Once more for all that has changed meanwhile: who makes tables each second would have who looks for longer look for ever, and pods wait for that. */
  async function tell(look: () => Promise<void> | void, told: { isLooking: boolean; isLate: boolean }): Promise<void> {
    told.isLate = true;
    if (told.isLooking) return;
    told.isLooking = true;
    while (told.isLate && listeners.has(look)) {
      told.isLate = false;
      await look();
    }
    told.isLooking = false;
  }

  return {
    name: "table watch",
    onTables(look) {
      listeners.set(look, { isLooking: false, isLate: false });
      return () => void listeners.delete(look);
    },
    async run(signal, ready) {
      ready();
      for await (const _ of clock.every(LOOK_MS, signal)) {
        const now = tables();
        if (now !== undefined && isToldOf(now)) for (const [look, told] of listeners) void tell(look, told);
      }
      socket?.close();
    },
  };
}

/** Family and name; and the handle, which one of the same name that is made anew does not have. */
function tableOf(message: Uint8Array): [string, string] {
  const attributes = message.subarray(HEADER_BYTES), hex = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString("hex");
  return [`${message[0]} ${hex(findAttribute(attributes, TABLE.NAME))}`, hex(findAttribute(attributes, TABLE.HANDLE))];
}
