/**
 * Tells when tables of nftables come or go, or are made anew: whoever empties the kernel's packet filter (`nft flush ruleset`, a firewall that starts again) takes ours with the rest. Who has rules there
 * looks at once then, not at the end of a period of its own.
 *
 * The list of tables is asked for each second: the kernel tells it in a few microseconds. What it could tell by itself, each change of each rule and element, would be ours above all.
 *
 * Source: linux include/uapi/linux/netfilter/nf_tables.h
 */
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import type { Log } from "../../core/observe/log.ts";
import { findAttribute } from "./netlink-message.ts";
import type { NetlinkSocket } from "./netlink-socket.ts";
import { SUBSYSTEM } from "./nft-batch.ts";

/** Is given what to call when tables are others than before; returns what ends that. */
export type OnTables = (look: () => void) => () => void;

export interface TableWatch extends Runnable { readonly onTables: OnTables }

const LOOK_MS = 1000;
/** Where the kernel does not say, as one without the packet filter, it is asked less often. */
const LOOKS_LEFT_OUT = 30;
const GET_TABLE = 1, TABLE = { NAME: 1, HANDLE: 4 } as const, HEADER_BYTES = 4;
const OF_ALL_FAMILIES = new Uint8Array(HEADER_BYTES);

/** `netlink`: opens the packet filter's. */
export function tableWatch({ netlink, clock, log }: { readonly netlink: () => NetlinkSocket; readonly clock: Clock; readonly log: Log }): TableWatch {
  const listeners = new Set<() => void>();
  let socket: NetlinkSocket | undefined;
  let before: string | undefined;
  let leftOut = 0; // looks to come

  /** Undefined: the kernel does not say. */
  function tables(): string | undefined {
    if (leftOut > 0) {
      leftOut--;
      return undefined;
    }
    try {
      return (socket ??= netlink()).dump((SUBSYSTEM << 8) | GET_TABLE, OF_ALL_FAMILIES).map(tableOf).toSorted().join(" ");
    } catch (error) {
      log.debug("the kernel does not tell its tables of rules", { error });
      leftOut = LOOKS_LEFT_OUT;
      return undefined;
    }
  }

  return {
    name: "table watch",
    onTables(look) {
      listeners.add(look);
      return () => void listeners.delete(look);
    },
    async run(signal, ready) {
      ready();
      for await (const _ of clock.every(LOOK_MS, signal)) {
        const now = tables();
        const isOther = now !== undefined && before !== undefined && now !== before;
        before = now ?? before;
        if (isOther) for (const look of listeners) look();
      }
      socket?.close();
    },
  };
}

/** Family, name and handle, which one of the same name that is made anew does not have. */
function tableOf(message: Uint8Array): string {
  const attributes = message.subarray(HEADER_BYTES), hex = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString("hex");
  return `${message[0]} ${hex(findAttribute(attributes, TABLE.NAME))} ${hex(findAttribute(attributes, TABLE.HANDLE))}`;
}
