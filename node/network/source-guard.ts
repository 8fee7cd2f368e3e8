/**
 * A pod sends as itself. Policies, and other pods, believe the addresses that packets come from, but whoever has CAP_NET_RAW, which runtimes give to containers that do not drop
 * it, writes what it likes: as somebody else it passed its egress policies, and others' ingress policies as whom they let in; with another pod's MAC address it had that one's
 * frames, and in frames with a VLAN tag, where no policy looks, it sent what it wanted.
 *
 *   libcni's records of pods ─▶ a chain for each pod's port of the bridge ─▶ what is not from its MAC address and its addresses, or neither IP nor ARP, is dropped there
 *
 * In force before a pod's first container starts, and left to the kernel when this process ends. A port of which no record tells is not ours to guard. Whoever lets others send
 * through a pod, or gives it more addresses, translates them to its own, as where pods of one node are routed.
 *
 * Source: calico felix/rules (reverse path filter of workloads' interfaces), cilium (source IP verification), antrea (SpoofGuard); plugins v1.7 plugins/main/bridge (macspoofchk)
 */
import { aborted } from "../../core/lifecycle/aborted.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import { parseIp } from "../../core/net/cidr.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Cri } from "../cri/client.ts";
import type { Nft } from "../os/exec-nft.ts";
import { BRIDGE } from "../os/pod-bridge.ts";
import type { OnTables } from "../os/table-watch.ts";
import { CNI_NETWORK } from "./cni-config.ts";
import { CNI_RESULTS, type CniRecord, readRecord, recordPaths } from "./cni-records.ts";

const TABLE = "coracle-sources";
const AT = `bridge ${TABLE}`;
/** A pod's interface may have been made again, or somebody may have flushed the table. */
const VERIFY_MS = 30_000;

/** Chains by their ports' names, each with its rules. */
export type PortChains = ReadonlyMap<string, readonly string[]>;

/** Pure. */
export function portChains(records: readonly CniRecord[]): PortChains {
  return new Map(records.flatMap(({ ifName, result }) => {
    const { interfaces = [], ips = [] } = result ?? {};
    const port = interfaces.find(({ name, sandbox }) => name !== undefined && name !== BRIDGE && !sandbox)?.name;
    const mac = interfaces.find(({ name, sandbox }) => name === ifName && sandbox)?.mac;
    return port && mac ? [[port, portRules(mac, ips.flatMap(({ address }) => address?.split("/")[0] ?? []))] as const] : [];
  }));
}

/** Each rule drops. An address that is being looked for is asked about without one; with one of its link a pod finds its neighbours, and policies know it as nobody. Of IPv6's routers pods hear from the plugin alone. */
function portRules(mac: string, ips: readonly string[]): string[] {
  const own = (family: 4 | 6): string[] => ips.filter((ip) => parseIp(ip)?.family === family);
  const none = (field: string, values: readonly string[]): string => values.map((value) => `${field} != ${value} `).join("");
  return [
    `ether saddr != ${mac}`, none("ether type", ["ip", "arp", "ip6"]).trimEnd(),
    `${none("ip saddr", own(4)) || "ether type ip "}`.trimEnd(), none("arp saddr ip", ["0.0.0.0", ...own(4)]).trimEnd(),
    none("ip6 saddr", ["::", "fe80::/10", ...own(6)]).trimEnd(), "icmpv6 type { nd-router-advert, nd-redirect }",
    `icmpv6 type nd-neighbor-advert @th,64,10 != 1018 ${none("@th,64,128", own(6).map((ip) => `0x${parseIp(ip)!.value.toString(16)}`))}`.trimEnd(), // whose address it tells of; 1018: fe80::/10
  ].map((rule) => `${rule} goto refused`);
}

/** Replaces whatever there is, in one transaction. Pure. */
export function wholeText(ports: PortChains): string {
  return text([
    `add table ${AT}`, `delete table ${AT}`, `add table ${AT}`, `add chain ${AT} refused`, `add rule ${AT} refused counter drop`,
    `add map ${AT} ports { typeof iifname : verdict; }`, `add chain ${AT} prerouting { type filter hook prerouting priority -300; }`, `add rule ${AT} prerouting iifname vmap @ports`,
    ...[...ports].flatMap(added),
  ]);
}

/** "" if there is none. Pure. */
export function differenceText(before: PortChains, after: PortChains): string {
  const gone = [...before].filter(([port, rules]) => after.get(port)?.join() !== rules.join()), come = [...after].filter(([port, rules]) => before.get(port)?.join() !== rules.join());
  return text([...gone.flatMap(([port]) => [`delete element ${AT} ports { "${port}" }`, `flush chain ${AT} ${port}`, `delete chain ${AT} ${port}`]), ...come.flatMap(added)]);
}

function added([port, rules]: readonly [string, readonly string[]]): string[] {
  return [`add chain ${AT} ${port}`, ...rules.map((rule) => `add rule ${AT} ${port} ${rule}`), `add element ${AT} ports { "${port}" : jump ${port} }`];
}

function text(lines: readonly string[]): string { return lines.map((line) => `${line}\n`).join(""); }

export const REMOVE_TEXT = text([`add table ${AT}`, `delete table ${AT}`]);

export interface SourceGuardOptions {
  readonly nft: Pick<Nft, "apply" | "chain">;
  /** Absent: that rules are gone is seen at the end of a period alone. */
  readonly onTables?: OnTables | undefined;
  readonly clock: Clock;
  readonly log: Log;
  /** libcni's records; absent: where they are. */
  readonly resultsDir?: string | undefined;
}

export interface SourceGuard {
  /** Its sandboxes are guarded from when they are ready. */
  readonly cri: Cri;
  /** Keeps the rules. */
  readonly keeper: Runnable;
  /** Of pods whose interfaces were made again, without waiting for the keeper: whoever may configure a pod's network can delete its own. */
  renew(signal: AbortSignal): Promise<void>;
}

export function sourceGuard(cri: Cri, { nft, onTables, clock, log, resultsDir = CNI_RESULTS }: SourceGuardOptions): SourceGuard {
  let known = new Map<string, CniRecord>(); // by path
  let inForce: PortChains | undefined; // undefined: what is in the kernel is another version's, or gone
  let failed = false; // told once
  let turn: Promise<unknown> = Promise.resolve(); // one change at a time

  /** `anew`: records that are known are read again. */
  async function sync(anew: boolean, signal: AbortSignal | undefined): Promise<void> {
    const found = await Promise.all((await recordPaths({ resultsDir, network: CNI_NETWORK })).map(async (path) => [path, (anew ? undefined : known.get(path)) ?? (await readRecord(path, { network: CNI_NETWORK, log }))] as const));
    known = new Map(found.flatMap(([path, record]) => (record ? [[path, record]] : [])));
    const wanted = portChains([...known.values()]);
    if (anew && inForce && !(await nft.chain("bridge", TABLE, "prerouting", { signal }))?.includes("vmap")) inForce = undefined;
    const script = inForce ? differenceText(inForce, wanted) : wholeText(wanted);
    inForce = undefined; // until it is known
    if (script !== "") await nft.apply(script, { signal });
    inForce = wanted;
  }

  function guard(anew: boolean, signal: AbortSignal | undefined): Promise<void> {
    const mine = turn.then(() => sync(anew, signal)).then(() => { failed = false; }, (error: unknown) => {
      if (!failed && !signal?.aborted) log.warn("pods cannot be kept from sending as others", { error });
      failed = true;
    });
    turn = mine;
    return mine;
  }

  const call: Cri["call"] = async (method, request, options) => {
    const response = await cri.call(method, request, options);
    if (method === "RuntimeService/RunPodSandbox") await guard(false, options?.signal);
    return response;
  };
  return {
    cri: { ...cri, call },
    keeper: {
      name: "source guard",
      async run(signal, ready) {
        const unwatch = onTables?.(() => guard(true, signal));
        for await (const _ of clock.every(VERIFY_MS, signal)) {
          await guard(true, signal);
          ready();
        }
        unwatch?.();
      },
    },
    renew: (signal) => guard(true, signal),
  };
}

/** Where nobody is to be kept from anything. */
export function noSourceGuard({ nft, log }: Pick<SourceGuardOptions, "nft" | "log">): Runnable {
  return {
    name: "source guard",
    async run(signal, ready) {
      await nft.apply(REMOVE_TEXT, { signal }).catch((error: unknown) => log.debug("there is no guard of before", { error }));
      ready();
      await aborted(signal);
    },
  };
}
