/**
 * The pod network of this node, for containerd through CNI, and between nodes.
 *
 *   Node.spec.podCIDRs ─▶ CNI configuration (cni-config.ts) ─▶ containerd: the node becomes ready
 *                     └─▶ masquerading (masquerade.ts)
 *   all Nodes ─▶ overlay (overlay.ts): routes to their pods
 *             └─▶ who may send through it (tunnel-guard.ts)
 *   pods' host ports, their interfaces and those' places on the bridge, should they be gone (host-ports.ts, pod-links.ts)
 *   ServiceCIDRs ─▶ routes to Services (service-routes.ts)
 *
 * What is written stays when the process ends: pods keep their network while coracle is upgraded, and an agent that starts without its server has the
 * configuration of last time. Addresses given out before a reboot are forgotten, since their pods are gone. installers/linux/uninstall.sh removes
 * everything.
 */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Node } from "../../core/api/gen/core.v1.ts";
import { objectKey } from "../../core/api/meta/object-meta.ts";
import type { Informers } from "../../core/client/informer-factory.ts";
import { NODES } from "../../core/client/resources.ts";
import { serviceRanges } from "../../core/client/service-ranges.ts";
import { backoffMs } from "../../core/lifecycle/backoff.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { fileTextSync } from "../../core/lifecycle/file-text.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import { parseCidr } from "../../core/net/cidr.ts";
import type { Log } from "../../core/observe/log.ts";
import { trouble } from "../../core/observe/trouble.ts";
import { bootId } from "../os/boot-id.ts";
import { type Exec, exec } from "../os/exec.ts";
import type { Nft, NftFamily } from "../os/exec-nft.ts";
import { sysctlKeeper } from "../os/sysctl.ts";
import type { Netlink } from "../os/netlink.ts";
import type { WatchChains } from "../os/chain-watch.ts";
import type { OnTables } from "../os/table-watch.ts";
import { ensureBridge } from "./bridge.ts";
import { CNI_FILE, CNI_NETWORK, cniConfig } from "./cni-config.ts";
import { CNI_RESULTS } from "./cni-records.ts";
import { firewalldPassages } from "./firewalld.ts";
import { allowThroughFirewall, type TellFirewall } from "./forward.ts";
import { legacyPassages } from "./legacy-iptables.ts";
import { type Conntracking, type PreparedHost, prepareHost } from "./host.ts";
import { MASQUERADE_TABLE, masqueradeText } from "./masquerade.ts";
import { type Overlay, peerOf, peersOf, podCidrsOf, podMtu } from "./overlay.ts";
import { ensurePodLinks } from "./pod-links.ts";
import { ensureServiceRoutes } from "./service-routes.ts";
import type { StableAddresses } from "./stable-addresses.ts";
import { tunnelGuardText } from "./tunnel-guard.ts";
import { tunnelSegmentsText } from "./tunnel-segments.ts";

export interface NodeNetworkOptions {
  readonly informers: Informers;
  readonly nodeName: string;
  readonly clusterCidrs: readonly string[];
  /** Until the ServiceCIDRs have been heard of. */
  readonly serviceCidrs: readonly string[];
  /** Where containerd looks for the CNI configuration. */
  readonly cniConfDir: string;
  /** For our records; `networkDir` of the data directory. */
  readonly stateDir: string;
  /** The interface with the default route and how large its packets may be, now: node-ip.ts. */
  readonly uplink: { readonly interfaceName: string | undefined; readonly mtu: number };
  readonly nft: Nft;
  /** Somebody may have emptied the packet filter, or a firewall has started. Absent: that is seen at the end of a period alone. */
  readonly onTables?: OnTables | undefined;
  /** Of the host's own firewall. */
  readonly watchChains?: WatchChains | undefined;
  /** Ports of this machine that are the ingress's. */
  readonly ingressPorts?: readonly string[] | undefined;
  /** openNetlink; absent: the CNI plugin makes the bridge with the first pod. */
  readonly netlink?: (() => Netlink) | undefined;
  readonly overlay: Overlay;
  /** The bridge has its addresses. No pod is made before that is done. */
  readonly onBridge?: (() => Promise<void>) | undefined;
  /** Absent: pods that are made anew get new addresses. */
  readonly addresses?: StableAddresses | undefined;
  /** Somebody has emptied the kernel's packet filter: what is there besides our rules is gone as well. */
  readonly onFlushed?: (() => Promise<void>) | undefined;
  /** libcni's records; absent: where they are. */
  readonly resultsDir?: string | undefined;
  /** Makes pods' interfaces again (pod-links.ts), if they are gone. */
  readonly ensureLinks?: ((signal: AbortSignal) => Promise<void>) | undefined;
  /** Puts back pods' ports on this machine (host-ports.ts), if they are gone. */
  readonly ensureHostPorts?: ((signal: AbortSignal) => Promise<void>) | undefined;
  /** firewall-cmd's; absent: the machine's. */
  readonly exec?: Exec | undefined;
  readonly cpus: number;
  readonly conntrack?: Conntracking | undefined;
  /** Makes the kernel ready: host.ts. Tests leave the machine as it is. */
  readonly prepare?: typeof prepareHost | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/** How often the tables are looked after: somebody may have flushed them. */
const VERIFY_MS = 30_000;
/** Between two looks at pods' interfaces, however often tables or nodes change: as long as a pod that is going takes at most between its interface's end and its record's. */
const LINKS_MS_MIN = 20_000;
const RETRY = { minMs: 1000, maxMs: 60_000 };

export function networkPaths(stateDir: string) {
  return { ipam: join(stateDir, "ipam"), addresses: join(stateDir, "addresses"), boot: join(stateDir, "boot-id"), sysctls: join(stateDir, "sysctls.json"), firewalld: join(stateDir, "firewalld") } as const;
}

export interface NodeNetwork extends Runnable {
  /** Why there is none yet. */
  problem(): string | undefined;
}

export function nodeNetwork(options: NodeNetworkOptions): NodeNetwork {
  let problem: string | undefined;
  const { informers, nodeName, clusterCidrs, nft, overlay, clock, log, uplink } = options;
  const nodes = informers.of(NODES);
  const ranges = serviceRanges(informers, options.serviceCidrs);
  const paths = networkPaths(options.stateDir);
  const usesV6 = clusterCidrs.some((cidr) => parseCidr(cidr)?.family === 6);
  const sysctl = sysctlKeeper({ recordFile: paths.sysctls, log });
  const firewalld = firewalldPassages({ exec: options.exec ?? exec, noteFile: paths.firewalld, log });
  const legacy = legacyPassages({ exec: options.exec ?? exec });
  const watchIts: TellFirewall = async (chains) => options.watchChains?.(chains, () => wake());
  let host: PreparedHost = { bridgeNetfilter: false };
  let masquerade = "", guard = ""; // as applied
  let warned: number | undefined; // of datagrams larger than that
  let bridge: number | undefined; // its index
  let wake: () => void = () => {};
  let isSuspect = false; // rules may be gone

  async function apply(signal: AbortSignal): Promise<void> {
    const own = nodes.get(objectKey("", nodeName)) as Readonly<Node> | undefined;
    const podCidrs = own ? podCidrsOf(own) : [];
    if (!own || podCidrs.length === 0) return;
    const text = masqueradeText({ clusterCidrs, podCidrs, bridgeNetfilter: host.bridgeNetfilter });
    if (text !== masquerade) {
      await nft.apply(text, { signal });
      masquerade = text;
    }
    const mtu = podMtu({ uplinkMtu: uplink.mtu, overheadBytes: overlay.overheadBytes, podCidrs });
    await makeBridge(podCidrs, mtu);
    await options.onBridge?.();
    writeConfig(cniConfig({ podCidrs, mtu, ipamDir: paths.ipam, ipam: options.addresses?.plugin }), podCidrs);
    const self = peerOf(own), others = peersOf(own, nodes.list());
    const { udpPort } = overlay;
    const passage = { clusterCidrs, ingressPorts: options.ingressPorts ?? [], tunnel: udpPort === undefined ? undefined : { udpPort, peers: others.flatMap(({ ips }) => ips).toSorted() } };
    const carriedBytes = uplink.mtu - overlay.overheadBytes, dropped = overlay.dropsLarge && carriedBytes < mtu ? carriedBytes : undefined;
    const guarding = tunnelGuardText({ udpPort, from: [...new Set(passage.tunnel?.peers)] }) + tunnelSegmentsText(dropped);
    if (guarding !== guard) {
      await nft.apply(guarding, { signal }); // before there is a tunnel
      guard = guarding;
    }
    if (dropped !== warned) {
      if (dropped !== undefined) log.warn("this machine's network is too small for a tunnel over IPv6: datagrams of pods' IPv6 that are larger than what it carries do not reach other nodes", { mtu: uplink.mtu, carriedBytes });
      warned = dropped;
    }
    await allowThroughFirewall(nft, passage, [firewalld, legacy, watchIts], signal).catch((error: unknown) => { if (!signal.aborted) log.warn("the host's own firewall cannot be looked at, or told what is the cluster's", { error }); });
    if (!self) return;
    await overlay.sync(self, others, signal);
  }

  async function makeBridge(podCidrs: readonly string[], mtu: number): Promise<void> {
    if (!options.netlink) return;
    using netlink = options.netlink();
    const device = ensureBridge(netlink, { podCidrs, mtu });
    if (bridge !== undefined && device !== bridge) log.warn("the pods' bridge was gone, made again");
    bridge = device;
    await ensurePodLinks(netlink, { bridge, network: CNI_NETWORK, resultsDir: options.resultsDir ?? CNI_RESULTS, log });
    const families = new Set(podCidrs.flatMap((cidr) => parseCidr(cidr)?.family ?? []));
    ensureServiceRoutes(netlink, { serviceCidrs: [...families].flatMap((family) => ranges.of(family)), device });
  }

  /** Whole or not at all: containerd reads the directory whenever it changes. */
  function writeConfig(text: string, podCidrs: readonly string[]): void {
    const path = join(options.cniConfDir, CNI_FILE);
    if (fileTextSync(path) === text) return;
    mkdirSync(options.cniConfDir, { recursive: true });
    writeFileSync(`${path}.new`, text);
    renameSync(`${path}.new`, path);
    log.info("pod network configured", { podCidrs, file: path });
  }

  /** After a reboot no pod of before has its address any more, but host-local would keep them all. */
  function forgetOldBoot(): void {
    const now = bootId();
    if (fileTextSync(paths.boot) === now) return;
    for (const path of heldAddresses(paths.ipam)) rmSync(path, { force: true });
    mkdirSync(options.stateDir, { recursive: true });
    rmSync(paths.boot, { force: true }); // its sectors may be bad
    writeFileSync(paths.boot, now);
  }

  /** Each table of what was written: who empties one family of them leaves the others. */
  async function isIntact(signal: AbortSignal): Promise<boolean> {
    const first = new Map([...`${masquerade}${guard}`.matchAll(/^add chain (\S+ \S+) (\S+)/gm)].toReversed().map(([, table = "", chain = ""]) => [table, chain]));
    for (const [at, chain] of first) {
      const [family, table = ""] = at.split(" ");
      if ((await nft.chain(family as NftFamily, table, chain, { signal })) === undefined) return false;
    }
    return true;
  }

  async function keep(signal: AbortSignal): Promise<void> {
    let failures = 0, linksAtMs = 0, looksAtMs = clock.uptimeMs() + VERIFY_MS; // next
    const ill = trouble("the pod network cannot be set up", { log, clock });
    let changed = true;
    wake = () => { changed = true; }; // until it is waited for
    const untilWoken = (ms: number): Promise<void> => new Promise((resolve) => {
      const done = (): void => {
        alarm.cancel();
        signal.removeEventListener("abort", done);
        resolve();
      };
      const alarm = clock.after(ms, done);
      wake = () => { changed = true; done(); };
      signal.addEventListener("abort", done, { once: true });
      if (signal.aborted) done();
    });
    while (!signal.aborted) {
      try {
        const isDue = !changed || clock.uptimeMs() >= looksAtMs; // who changes the firewall all the time puts nothing off
        if (isDue) {
          host.keep?.();
          looksAtMs = clock.uptimeMs() + VERIFY_MS;
        }
        const looks = isDue || isSuspect;
        isSuspect = false;
        if (looks && !(await isIntact(signal))) {
          log.warn("the pod network's rules are gone from the kernel, writing them again", { table: MASQUERADE_TABLE });
          masquerade = guard = "";
          await options.onFlushed?.();
        }
        await options.addresses?.install();
        await options.addresses?.sweep();
        changed = false;
        await apply(signal);
        if (clock.uptimeMs() >= linksAtMs) {
          await options.ensureLinks?.(signal); // one that is missing at two looks is made again: a second apart they find one whose pod is just going
          linksAtMs = clock.uptimeMs() + LINKS_MS_MIN;
        }
        await options.ensureHostPorts?.(signal).catch((error: unknown) => { if (!signal.aborted) log.warn("host ports cannot be written", { error }); });
        failures = 0;
        problem = undefined;
        ill.over();
        if (!changed) await untilWoken(VERIFY_MS);
      } catch (error) {
        if (signal.aborted) return;
        isSuspect = true; // it may have been the look that failed
        const retryInMs = backoffMs(++failures, RETRY);
        problem = (error as Error).message;
        ill.tell(error, { retryInMs });
        await untilWoken(retryInMs);
      }
    }
  }

  return {
    name: "network",
    problem: () => problem,
    async run(signal, ready) {
      forgetOldBoot();
      await options.addresses?.install();
      host = await (options.prepare ?? prepareHost)({ sysctl, usesV6, interfaceName: uplink.interfaceName, cpus: options.cpus, conntrack: options.conntrack, log }, signal);
      const unwatch = nodes.onChange(({ object, old, deleted }) => {
        const facts = (node: Readonly<Node> | undefined): string => (node ? JSON.stringify([podCidrsOf(node), peerOf(node)]) : "");
        if (facts(old) !== facts(deleted ? undefined : object)) wake(); // heartbeats are no news
      });
      const unwatchRanges = ranges.onChange(() => wake());
      const unwatchTables = options.onTables?.(() => {
        isSuspect = true;
        wake();
      });
      ready(); // containerd waits for the configuration; nothing else has to
      try {
        await keep(signal);
      } finally {
        unwatch();
        unwatchRanges();
        unwatchTables?.();
      }
    },
  };
}

/** host-local's files, one an address; those with the last one given out stay, so that new pods do not take the addresses of those that come back. */
function heldAddresses(ipamDir: string): string[] {
  if (!existsSync(ipamDir)) return [];
  return readdirSync(ipamDir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile() && !entry.name.startsWith("last_reserved_ip")).map(({ parentPath, name }) => join(parentPath, name));
}
