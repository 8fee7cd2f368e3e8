/**
 * A node whose address has become another one (another lease, another network, a cable that was put in after the start), or which has got one of a family that it had none of, ends the
 * process, to be started again with it: the address is in certificates, in the tunnel to other nodes, in what the packet filter says. Containers go on meanwhile.
 *
 * Source: kubernetes v1.36 pkg/proxy/node.go (kube-proxy ends when its node's addresses change)
 */
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import type { Family } from "../../core/net/cidr.ts";
import { movedTo, type NodeAddresses } from "./node-ip.ts";

interface AddressWatchOptions {
  /** With which it was started. */
  readonly own: NodeAddresses;
  /** Of the cluster's pods: the node wants an address of each. */
  readonly families: readonly Family[];
  readonly clock: Clock;
  readonly look?: (own: NodeAddresses, families: readonly Family[]) => NodeAddresses | undefined;
}

const LOOK_MS = 10_000;

/** Fails with what has changed, once it has looked the same twice: machines get their addresses one by one. */
export function addressWatch({ own, families, clock, look = movedTo }: AddressWatchOptions): Runnable {
  /** Undefined: it is where it was, or nobody can tell now. */
  function looked(): string | undefined {
    try {
      return look(own, families)?.ips.join(", ");
    } catch {
      return undefined; // too many open files, for one: no reason to end
    }
  }

  return {
    name: "node address",
    async run(signal, ready) {
      ready();
      let before: string | undefined;
      for await (const _ of clock.every(LOOK_MS, signal)) {
        const now = looked();
        if (now !== undefined && now === before) throw new Error(`this machine was ${own.ips.join(", ")} and is ${now} now: Coracle ends, to be started again with that`);
        before = now;
      }
    },
  };
}
