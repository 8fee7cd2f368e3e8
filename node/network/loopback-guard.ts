/**
 * What listens on this machine's loopback is for this machine alone. The portmap plug-in lets pods' bridge carry 127.0.0.0/8 (`route_localnet`), so that host ports answer there, too; a pod that may
 * write frames of its own reached everything else there as well: databases without a password, the kubelet's and the proxy's own ports.
 *
 * A table of its own, whoever makes the pods' network: others use portmap, too.
 *
 * Source: kubernetes v1.36 pkg/kubelet/kubelet_network_linux.go (KUBE-FIREWALL)
 */
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Nft } from "../os/exec-nft.ts";
import type { OnTables } from "../os/table-watch.ts";

const TABLE = "coracle-loopback";
/** Somebody may have flushed it. */
const VERIFY_MS = 30_000;

/** Answers pass, and what was addressed to another port of the host before. IPv6 lets no other machine's packets to ::1. Pure. */
export function loopbackGuardText(): string {
  const at = `ip ${TABLE}`;
  return [
    `add table ${at}`, `delete table ${at}`, `add table ${at}`, `add chain ${at} input { type filter hook input priority -5; }`,
    `add rule ${at} input iifname "lo" accept`, `add rule ${at} input ip daddr != 127.0.0.0/8 accept`,
    `add rule ${at} input ct state established,related accept`, `add rule ${at} input ct status dnat accept`, `add rule ${at} input counter drop`,
  ].map((line) => `${line}\n`).join("");
}

interface Options {
  readonly nft: Pick<Nft, "apply" | "chain">;
  /** Absent: that it is gone is seen at the end of a period alone. */
  readonly onTables?: OnTables | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

export function loopbackGuard({ nft, onTables, clock, log }: Options): Runnable {
  let written = false; // what is there at the start may be another version's
  let failed = false; // told once
  let turn: Promise<void> = Promise.resolve(); // one look at a time

  async function ensure(signal: AbortSignal): Promise<void> {
    try {
      if (!written || !(await nft.chain("ip", TABLE, "input", { signal }))?.includes("drop")) await nft.apply(loopbackGuardText(), { signal });
      written = true;
      failed = false;
    } catch (error) {
      if (!failed && !signal.aborted) log.warn("this machine's loopback cannot be kept from pods", { error });
      failed = true;
    }
  }

  return {
    name: "loopback guard",
    async run(signal, ready) {
      const look = (): Promise<void> => (turn = turn.then(() => ensure(signal)));
      const unwatch = onTables?.(look);
      for await (const _ of clock.every(VERIFY_MS, signal)) {
        await look();
        ready();
      }
      unwatch?.();
    },
  };
}
