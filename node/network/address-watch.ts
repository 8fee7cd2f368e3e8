/**
 * A node whose address has become another one (another lease, another network, a cable that was put in after the start), or which has got one of a family that it had none of, ends the
 * process, to be started again with it: the address is in certificates, in the tunnel to other nodes, in what the packet filter says. Containers go on meanwhile.
 * So does, after a minute, one that is where its second way out leads and has its first again; and one that has no address any more while pods beside it need the API server: it is started again with
 * that of another network that it is on, or is given one on its loopback (lone-address.ts). It comes back when its network does: from which it went is noted.
 *
 * Source: kubernetes v1.36 pkg/proxy/node.go (kube-proxy ends when its node's addresses change)
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { fileTextSync } from "../../core/lifecycle/file-text.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import type { Family } from "../../core/net/cidr.ts";
import type { Log } from "../../core/observe/log.ts";
import { isAtHome, movedTo, type NodeAddresses, settledAt } from "./node-ip.ts";

interface AddressWatchOptions {
  /** With which it was started. */
  readonly own: NodeAddresses;
  /** Of the cluster's pods: the node wants an address of each. */
  readonly families: readonly Family[];
  readonly clock: Clock;
  readonly log: Log;
  /** It is to be started again elsewhere, or with an address of its loopback, when its network is gone; there it is noted from which interface. Absent: it waits. */
  readonly homeFile?: string | undefined;
  readonly look?: (own: NodeAddresses, families: readonly Family[]) => NodeAddresses | undefined;
  readonly lookLong?: typeof settledAt;
}

const LOOK_MS = 10_000;
/** How often it has to look the same, one look after another: machines get their addresses one by one, and cables are put in again. */
const LOOKS_MIN = 2, LONG_LOOKS_MIN = 6;

interface Looked { readonly is: string; readonly looksMin: number }

/** Fails with what has changed, once it has looked the same for long enough. */
export function addressWatch({ own, families, clock, log, homeFile, look = movedTo, lookLong = settledAt }: AddressWatchOptions): Runnable {
  /** Undefined: it is where it was, or nobody can tell now. */
  function looked(home: string | undefined): Looked | undefined {
    try {
      const moved = look(own, families);
      if (moved) return { is: `is ${moved.ips.join(", ")} now`, looksMin: LOOKS_MIN };
      const settled = lookLong(own, families, { mayBeAlone: homeFile !== undefined, home });
      return settled && { is: settled.interfaceName === undefined ? "is on no network now" : `is ${settled.ips.join(", ")} now`, looksMin: LONG_LOOKS_MIN };
    } catch {
      return undefined; // too many open files, for one: no reason to end
    }
  }

  /** Undefined: it has not left. */
  function readHome(file: string): string | undefined {
    if (isAtHome(own)) rmSync(file, { force: true });
    return fileTextSync(file) || undefined;
  }

  function noteHome(file: string, interfaceName: string): void {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, interfaceName);
  }

  /** A disk that is full is no reason to stay where nobody is reached. */
  function unlessDiskFails<T>(work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      log.warn("from which network this node went cannot be noted: it will not come back there by itself", { file: homeFile, error });
      return undefined;
    }
  }

  return {
    name: "node address",
    async run(signal, ready) {
      ready();
      const home = homeFile === undefined ? undefined : unlessDiskFails(() => readHome(homeFile));
      let before: string | undefined;
      let looks = 0;
      for await (const _ of clock.every(LOOK_MS, signal)) {
        const now = looked(home);
        looks = now?.is === before ? looks + 1 : 1;
        if (now !== undefined && looks >= now.looksMin) {
          if (homeFile !== undefined && home === undefined && own.interfaceName !== undefined) unlessDiskFails(() => noteHome(homeFile, own.interfaceName!));
          throw new Error(`this machine was ${own.ips.join(", ")} and ${now.is}: Coracle ends, to be started again with that`);
        }
        before = now?.is;
      }
    },
  };
}
