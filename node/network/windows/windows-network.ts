/**
 * The pod network of a Windows node (hns-settings.ts):
 *
 *   Node.spec.podCIDRs ─▶ HNS network, CNI configuration ─▶ containerd: the node becomes ready
 *   ServiceCIDRs ─▶ CNI configuration: what pods made from then on reach through the network
 *   all Nodes ─▶ the ways to their pods: RemoteSubnetRoute policies (vxlan) or routes (host-gw)
 *   the overlay's router ─▶ annotation on this Node: what the others send to
 *
 * A reboot takes the HNS network with it; it is looked for, and made anew, at every look. IPv4 only: Windows' overlay knows nothing else.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import type { Node } from "../../../core/api/gen/core.v1.ts";
import { objectKey } from "../../../core/api/meta/object-meta.ts";
import type { Client } from "../../../core/client/client.ts";
import type { Informers } from "../../../core/client/informer-factory.ts";
import { NODES } from "../../../core/client/resources.ts";
import { serviceRanges } from "../../../core/client/service-ranges.ts";
import { backoffMs } from "../../../core/lifecycle/backoff.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import { cidrContains, parseCidr, parseIp } from "../../../core/net/cidr.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { Exec } from "../../os/exec.ts";
import type { Hcn, HcnNetwork } from "../../os/hcn.ts";
import type { WindowsRoutes } from "../../os/route.windows.ts";
import { CNI_FILE } from "../cni-config.ts";
import { planHostGateway } from "../host-gw.ts";
import { type Peer, peerOf, peersOf, podCidrsOf, ROUTER_MAC_ANNOTATION } from "../overlay.ts";
import { addresses, bridgeNetwork, HNS_NETWORK, isSameNetwork, managementIp, overlayNetwork, planRemoteSubnets, type RemoteSubnet, remoteSubnets, routerMac, windowsCniConfig } from "./hns-settings.ts";

export interface WindowsNetworkOptions {
  readonly informers: Informers;
  readonly client: Client;
  readonly nodeName: string;
  readonly nodeIp: string;
  /** The name of the interface with the default route. */
  readonly adapter: string | undefined;
  readonly overlay: "vxlan" | "host-gw";
  readonly clusterCidrs: readonly string[];
  /** Until the ServiceCIDRs have been heard of. */
  readonly serviceCidrs: readonly string[];
  readonly clusterDns: string;
  readonly clusterDomain: string;
  /** Where containerd looks for the CNI configuration. */
  readonly cniConfDir: string;
  readonly stateDir: string;
  readonly hcn: () => Hcn;
  readonly routes: WindowsRoutes;
  readonly exec: Exec;
  readonly clock: Clock;
  readonly log: Log;
}

/** What the service proxy must know of the network. */
export interface HnsNetworkState { readonly id: string; readonly type: "Overlay" | "L2Bridge"; readonly sourceVip: string; readonly hostMac: string; readonly remoteSubnets: readonly RemoteSubnet[] }

export interface WindowsNetwork extends Runnable {
  /** Undefined until it is there. */
  readonly state: () => HnsNetworkState | undefined;
  onChange(handler: () => void): void;
}

const LOOK_MS = 30_000;
const RETRY = { minMs: 1000, maxMs: 60_000 };
/** HNS moves the node's address to an interface of its own; the service is not done when it says so. */
const SETTLE = { everyMs: 500, withinMs: 30_000 };

export function windowsNetwork(options: WindowsNetworkOptions): WindowsNetwork {
  const { informers, client, nodeName, overlay, hcn: open, exec, clock, log } = options;
  const clusterCidrs = options.clusterCidrs.filter((cidr) => parseCidr(cidr)?.family === 4); // a cluster of both families has one that HNS takes here
  const nodes = informers.of(NODES);
  const ranges = serviceRanges(informers, options.serviceCidrs);
  const handlers: (() => void)[] = [];
  let state: HnsNetworkState | undefined;
  let wake: () => void = () => {};

  async function apply(signal: AbortSignal): Promise<void> {
    const own = nodes.get(objectKey("", nodeName)) as Readonly<Node> | undefined;
    const podCidr = own && podCidrsOf(own).find((cidr) => parseCidr(cidr)?.family === 4);
    if (!own || podCidr === undefined) return;
    const hcn = open();
    const network = await ensureNetwork(hcn, podCidr, signal);
    const others = peersOf(own, nodes.list());
    const subnets = overlay === "vxlan" ? syncOverlay(hcn, network, others) : await syncRoutes(hcn, network, { podCidr, others, signal });
    writeConfig(podCidr);
    if (overlay === "vxlan") await publishRouter(own, network, signal);
    const hostMac = Object.values(networkInterfaces()).flat().find((one) => one?.address === options.nodeIp)?.mac ?? "";
    const next: HnsNetworkState = { id: network.ID, type: overlay === "vxlan" ? "Overlay" : "L2Bridge", sourceVip: addresses(podCidr).sourceVip, hostMac: hostMac.replaceAll(":", "-"), remoteSubnets: subnets };
    if (JSON.stringify(next) !== JSON.stringify(state)) {
      state = next;
      for (const handler of handlers) handler();
    }
  }

  async function ensureNetwork(hcn: Hcn, podCidr: string, signal: AbortSignal): Promise<HcnNetwork> {
    const wanted = (overlay === "vxlan" ? overlayNetwork : bridgeNetwork)({ podCidr, adapter: options.adapter });
    const find = (): HcnNetwork | undefined => hcn.networks().find(({ Name }) => Name === HNS_NETWORK);
    const found = find();
    if (found && isSameNetwork(found, wanted)) return found;
    if (found) hcn.deleteNetwork(found.ID);
    hcn.createNetwork(wanted);
    const endMs = clock.uptimeMs() + SETTLE.withinMs;
    for (;;) {
      const made = find();
      const ip = made && (managementIp(made) ?? (overlay === "host-gw" ? options.nodeIp : undefined));
      if (made && ip !== undefined && hasAddress(ip)) {
        log.info("pod network made", { network: HNS_NETWORK, type: made.Type, podCidr, managementIp: ip });
        return made;
      }
      if (clock.uptimeMs() > endMs) throw new Error(`HNS network ${HNS_NETWORK} has no address of this node after ${SETTLE.withinMs / 1000} s`);
      await clock.sleep(SETTLE.everyMs, signal);
      signal.throwIfAborted();
    }
  }

  function syncOverlay(hcn: Hcn, network: HcnNetwork, others: readonly Peer[]): RemoteSubnet[] {
    const wanted = remoteSubnets(others);
    const { remove, add } = planRemoteSubnets(network, wanted);
    if (remove.length > 0) hcn.removePolicies(network.ID, remove);
    if (add.length > 0) hcn.addPolicies(network.ID, add);
    if (!(network.Policies ?? []).some(({ Type }) => Type === "HostRoute")) hcn.addPolicies(network.ID, [{ Type: "HostRoute", Settings: {} }]);
    return wanted;
  }

  /** The host is a router: its interface on the bridge is the pods' gateway. */
  async function syncRoutes(hcn: Hcn, network: HcnNetwork, { podCidr, others, signal }: { readonly podCidr: string; readonly others: readonly Peer[]; readonly signal: AbortSignal }): Promise<RemoteSubnet[]> {
    const { bridge } = addresses(podCidr);
    const name = `${HNS_NETWORK}-host`;
    const found = hcn.endpoints().find(({ Name, HostComputeNetwork }) => Name === name && HostComputeNetwork.toLowerCase() === network.ID.toLowerCase());
    const endpoint = found ?? hcn.createEndpoint(network.ID, { Name: name, IpConfigurations: [{ IpAddress: bridge }] });
    if (!hasAddress(bridge)) hcn.attachToHost(endpoint.ID);
    for (const ip of [options.nodeIp, bridge]) {
      const adapter = Object.entries(networkInterfaces()).find(([, list]) => list?.some(({ address }) => address === ip))?.[0];
      if (adapter !== undefined) await exec("netsh.exe", ["interface", "ipv4", "set", "interface", adapter, "forwarding=enabled"], { signal });
    }
    const cidrs = clusterCidrs.flatMap((cidr) => parseCidr(cidr) ?? []);
    const inCluster = (to: string): boolean => { const ip = parseIp(to.split("/")[0]!); return ip !== undefined && cidrs.some((cidr) => cidr.family === ip.family && cidrContains(cidr, ip)); };
    const ours = options.routes.list().filter(({ to, via }) => via !== undefined && inCluster(to)); // nobody else routes the cluster's addresses
    const wanted = [...planHostGateway(others)].filter(([to]) => !to.includes(":"));
    for (const route of ours) if (!wanted.some(([to, via]) => to === route.to && via === route.via)) options.routes.remove(route);
    for (const [to, via] of wanted) if (!ours.some((route) => route.to === to && route.via === via)) options.routes.add({ to, via });
    return [];
  }

  /** Whole or not at all: containerd reads the directory whenever it changes. */
  function writeConfig(podCidr: string): void {
    const text = windowsCniConfig({ ...options, clusterCidrs, serviceCidrs: ranges.of(4), type: overlay === "vxlan" ? "Overlay" : "L2Bridge", podCidr, ipamDir: join(options.stateDir, "ipam") });
    const path = join(options.cniConfDir, CNI_FILE);
    if (existsSync(path) && readFileSync(path, "utf8") === text) return;
    mkdirSync(options.cniConfDir, { recursive: true });
    writeFileSync(`${path}.new`, text);
    renameSync(`${path}.new`, path);
    log.info("pod network configured", { podCidr, file: path });
  }

  async function publishRouter(own: Readonly<Node>, network: HcnNetwork, signal: AbortSignal): Promise<void> {
    const mac = routerMac(network);
    if (mac === undefined || own.metadata.annotations?.[ROUTER_MAC_ANNOTATION] === mac) return;
    await client.resource(NODES).patch(own, "application/merge-patch+json", { metadata: { annotations: { [ROUTER_MAC_ANNOTATION]: mac } } }, { signal });
  }

  return {
    name: "network",
    state: () => state,
    onChange: (handler) => void handlers.push(handler),
    async run(signal, ready) {
      let changed = true;
      const unwatch = nodes.onChange(({ object, old, deleted }) => {
        const facts = (node: Readonly<Node> | undefined): string => (node ? JSON.stringify([podCidrsOf(node), peerOf(node)]) : "");
        if (facts(old) === facts(deleted ? undefined : object)) return; // heartbeats are no news
        changed = true;
        wake();
      });
      const unwatchRanges = ranges.onChange(() => {
        changed = true;
        wake();
      });
      ready();
      try {
        for (let failures = 0; !signal.aborted; ) {
          changed = false;
          try {
            await apply(signal);
            failures = 0;
          } catch (error) {
            if (signal.aborted) return;
            failures++;
            log.error("the pod network cannot be set up", { error, retryInMs: backoffMs(failures, RETRY) });
          }
          const pause = new AbortController();
          wake = () => pause.abort();
          if (!changed) await clock.sleep(failures > 0 ? backoffMs(failures, RETRY) : LOOK_MS, AbortSignal.any([signal, pause.signal]));
        }
      } finally {
        unwatch();
        unwatchRanges();
      }
    },
  };
}

function hasAddress(ip: string): boolean { return Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === ip)); }
