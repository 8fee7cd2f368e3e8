/** Gives each pod of a hollow node its addresses, one out of each of the node's ranges, as host-local does: the first one is the gateway's. */
import { cidrContains, cidrSize, formatIp, nthAddress, parseCidr, parseIp } from "../../core/net/cidr.ts";

export class PodAddresses {
  readonly #byPod = new Map<string, readonly string[]>();
  readonly #used = new Set<string>();
  #next = 0n;

  /** Undefined: there is no range, or no address left. `had`: what the pod was reported with, which it keeps. */
  of(podUid: string, ranges: readonly string[], had: readonly string[]): readonly string[] | undefined {
    const known = this.#byPod.get(podUid);
    if (known) return known;
    const cidrs = ranges.flatMap((range) => parseCidr(range) ?? []);
    if (cidrs.length === 0) return undefined;
    const kept = had.filter((ip) => { const parsed = parseIp(ip); return parsed && cidrs.some((cidr) => cidrContains(cidr, parsed)) && !this.#used.has(ip); });
    const ips = kept.length === cidrs.length ? kept : cidrs.map((cidr) => this.#free(cidr));
    if (ips.some((ip) => ip === undefined)) return undefined;
    for (const ip of ips) this.#used.add(ip!);
    this.#byPod.set(podUid, ips as readonly string[]);
    return ips as readonly string[];
  }

  release(podUid: string): void {
    for (const ip of this.#byPod.get(podUid) ?? []) this.#used.delete(ip);
    this.#byPod.delete(podUid);
  }

  /** Goes round, so that an address is not given again at once. Without the network, the gateway and the broadcast address. */
  #free(cidr: NonNullable<ReturnType<typeof parseCidr>>): string | undefined {
    const count = cidrSize(cidr) - 3n;
    const tries = BigInt(this.#used.size) + 1n;
    for (let i = 0n; i < count && i <= tries; i++) {
      const ip = formatIp(nthAddress(cidr, 2n + (this.#next++ % count)));
      if (!this.#used.has(ip)) return ip;
    }
    return undefined;
  }
}
