/** A Linux node: the bundled containerd, a bridge and an overlay by netlink, services and network policies by nftables. */
import { join } from "node:path";
import { formatDurationMs } from "../core/api/meta/duration.ts";
import { INGRESS_PORTS } from "../core/ingress/gateway-fronts.ts";
import { breather } from "../core/lifecycle/breather.ts";
import { criClient } from "../node/cri/client.ts";
import { KUBELET_DEFAULTS } from "../node/kubelet/settings.ts";
import { isOwnTable } from "../node/network/forward.ts";
import { hostGatewayOverlay } from "../node/network/host-gw.ts";
import { CNI_NETWORK } from "../node/network/cni-config.ts";
import { ensureHostPorts } from "../node/network/host-ports.ts";
import { limiting } from "../node/network/limiting.ts";
import { loopbackGuard } from "../node/network/loopback-guard.ts";
import { networkPaths, nodeNetwork } from "../node/network/network.ts";
import { addressesWithin, mtuNow } from "../node/network/node-ip.ts";
import type { Overlay } from "../node/network/overlay.ts";
import { lostPodLinks } from "../node/network/pod-links.ts";
import { noSourceGuard, sourceGuard } from "../node/network/source-guard.ts";
import { stableAddresses } from "../node/network/stable-addresses.ts";
import { vxlanOverlay } from "../node/network/vxlan.ts";
import { withoutOverlay } from "../node/network/without-overlay.ts";
import { nftProgram } from "../node/os/exec-nft.ts";
import { flowTable } from "../node/os/flow-table.ts";
import { type Link, openNetlink } from "../node/os/netlink.ts";
import { netlinkSocket } from "../node/os/netlink-socket.ts";
import { NETLINK_NETFILTER } from "../node/os/nft-batch.ts";
import { chainWatch } from "../node/os/chain-watch.ts";
import { tableWatch } from "../node/os/table-watch.ts";
import { admitting } from "../node/policy/admitting.ts";
import { networkPolicies, noNetworkPolicies } from "../node/policy/policy.ts";
import { conntrackOf } from "../node/proxy/conntrack.ts";
import { noServiceProxy, serviceProxy } from "../node/proxy/proxy.ts";
import { awaitingArchives } from "../node/runtime/awaiting-archives.ts";
import { runtimePaths } from "../node/runtime/paths.ts";
import { externalRuntime } from "../node/runtime/external.ts";
import { containerRuntime } from "../node/runtime/runtime.ts";
import { nodeBundle } from "./assets.ts";
import { ConfigError } from "./config/config.ts";
import { nodePortCidrs } from "./config/ranges.ts";
import type { NodePlatform, PlatformOptions } from "./node-platform.ts";
import { runtimeEnvironment } from "./proxy-environment.ts";
import { proxyPages, proxySettings } from "./proxy-settings.ts";
import { reliedOn } from "./relied-on.ts";
import { registriesOf } from "./registries-file.ts";
import { unpackInChild } from "./unpack.ts";

/** Where others' pod networks put their configuration, and have to be found when ours is switched off. */
const OTHERS_CNI_CONF_DIR = "/etc/cni/net.d";

export function linuxPlatform(options: PlatformOptions): NodePlatform {
  const { settings, paths, node, informers, mounts, machine, kubelet, isPodHere, onBridge, events, clock, metrics, log } = options;
  const external = settings.containerRuntimeEndpoint?.replace(/^unix:\/\//, "");
  const plain = criClient({ socket: external ?? runtimePaths(paths.dataDir).socket, imageSocket: kubelet.imageServiceEndpoint || undefined, nowMs: clock.nowMs, timeoutMs: kubelet.runtimeTimeoutMs });
  const asset = nodeBundle();
  if (!external && !asset) throw new ConfigError("this build of coracle brings no container runtime for this machine: name one with --container-runtime-endpoint, or run with --disable-agent");
  const pluginDir = join(paths.agent, "network", "plugins");
  const foreign = external ? externalRuntime({ dataDir: paths.dataDir, endpoint: external, asset, unpack: unpackInChild }, { cri: plain, clock, log }) : undefined;
  const bundled = foreign ? undefined : containerRuntime({
    dataDir: paths.dataDir, asset: asset!, unpack: unpackInChild, registries: registriesOf(settings.privateRegistry),
    environment: runtimeEnvironment(process.env, settings),
    ...(kubelet.streamIdleMs === KUBELET_DEFAULTS.streamIdleMs ? {} : { streamIdleTimeout: formatDurationMs(kubelet.streamIdleMs) }),
    cniBinDirs: [pluginDir, "/opt/cni/bin"], ...(settings.disable.includes("network") ? { cniConfDir: OTHERS_CNI_CONF_DIR } : {}),
  }, { cri: plain, mounts, clock, log });
  const runtime = foreign ?? bundled!, runtimeCri = foreign?.cri ?? awaitingArchives(plain, () => bundled?.importing());

  if (!settings.disable.includes("network")) tellSharedAddresses(settings, log);
  const { binDir, cniBinDir } = runtimePaths(paths.dataDir);
  const nft = nftProgram({ path: join(binDir, "nft"), netlink: () => netlinkSocket(NETLINK_NETFILTER) });
  const tables = tableWatch({ netlink: () => netlinkSocket(NETLINK_NETFILTER), clock, log: log.with({ part: "network" }) }), { onTables } = tables;
  const chains = chainWatch({ netlink: () => netlinkSocket(NETLINK_NETFILTER), isOwn: isOwnTable, clock }), { watchChains } = chains;
  const believesSources = !settings.disable.includes("network-policy") && !settings.disable.includes("network");
  const sources = believesSources ? sourceGuard(runtimeCri, { nft, onTables, clock, log: log.with({ part: "network" }) }) : undefined;
  const keeper = sources?.keeper ?? noSourceGuard({ nft, log: log.with({ part: "network" }) }), guarded = sources?.cri ?? runtimeCri;
  const { cri, renew } = settings.disable.includes("network") ? { cri: guarded, renew: undefined } : limiting(guarded, { nft, log: log.with({ part: "network" }) });
  const proxying = proxySettings(settings.kubeProxyArg, { ipv6: node.ips[0]?.includes(":") ?? false });
  const { addresses, ipam } = networkPaths(join(paths.agent, "network"));
  const uplink = { interfaceName: node.interfaceName, get mtu() { return mtuNow(node); } };
  const remakeLinks = lostPodLinks({ network: CNI_NETWORK, links: linksNow, cniBinDirs: [cniBinDir, pluginDir], binDir, log: log.with({ part: "network" }) });
  const network = nodeNetwork({
    informers, nodeName: node.name, clusterCidrs: settings.clusterCidr.split(","), serviceCidrs: settings.serviceCidr.split(","), uplink,
    cniConfDir: runtime.cniConfDir, stateDir: join(paths.agent, "network"), nft, onTables, watchChains, netlink: openNetlink, overlay: overlayOf(options, uplink), onBridge,
    ingressPorts: settings.disable.includes("ingress") ? [] : INGRESS_PORTS, addresses: external ? undefined : stableAddresses({ pluginDir, recordDir: addresses, ipamDir: ipam, isPodHere }), onFlushed: renew,
    ensureLinks: async (signal) => { if (foreign?.hasOurs("bridge") !== false && (await remakeLinks(signal))) await sources?.renew(signal); },
    ensureHostPorts: async (signal) => {
      if (foreign?.hasOurs("portmap") !== false) await ensureHostPorts({ network: CNI_NETWORK, cniBinDir, binDir, nft, log: log.with({ part: "network" }) }, signal);
    },
    cpus: machine.cpus, conntrack: proxying.conntrack, clock, log: log.with({ part: "network" }),
  });
  const proxy = settings.disable.includes("proxy") ? noServiceProxy({ nft, log: log.with({ part: "proxy" }) }) : serviceProxy({
    informers, nodeName: node.name, nodeIps: node.ips, clusterCidrs: settings.clusterCidr.split(","), serviceCidrs: settings.serviceCidr.split(","),
    asked: reliedOn(settings), nodePortCidrs: nodePortCidrs(settings, node.ips), nft, onTables, conntrack: conntrackOf(flowTable(() => netlinkSocket(NETLINK_NETFILTER)), breather(clock)),
    events: events.reporter({ component: "kube-proxy", host: node.name }), healthz: proxying.healthz, status: proxying.status,
    pages: proxyPages("nftables", { settings, proxying, nodeName: node.name, clock }), clock, metrics, log: log.with({ part: "proxy" }),
  });
  const guard = loopbackGuard({ nft, onTables, clock, log: log.with({ part: "network" }) });
  if (!believesSources) return { cri, runtime: [runtime], network, proxy, policies: [tables, chains, guard, keeper, noNetworkPolicies({ nft, log })] };
  const policies = networkPolicies({ informers, nodeName: node.name, nft, onTables, clock, metrics, log: log.with({ part: "network policies" }) });
  return { cri: admitting(cri, policies), runtime: [runtime], network, proxy, policies: [tables, chains, guard, keeper, policies] };
}

/** What the machine has a way of its own to is not reached by pods, or its pods and Services not by the machine. */
function tellSharedAddresses({ clusterCidr, serviceCidr }: PlatformOptions["settings"], log: PlatformOptions["log"]): void {
  for (const { interfaceName, address } of addressesWithin([clusterCidr, serviceCidr].flatMap((ranges) => ranges.split(","))))
    log.warn("an address of this machine is one of those that pods and Services are given, so that either its network or they are out of reach: give a new cluster a --cluster-cidr and a --service-cidr that nobody here has", { interface: interfaceName, address, clusterCidr, serviceCidr });
}

function linksNow(): Link[] {
  using netlink = openNetlink();
  return netlink.links();
}

function overlayOf({ settings, node, log }: PlatformOptions, uplink: { readonly interfaceName: string | undefined; readonly mtu: number }): Overlay {
  const deps = { netlink: openNetlink, uplink, log: log.with({ part: "network" }) };
  switch (settings.overlay) {
    case "vxlan": return vxlanOverlay({ ...deps, nodeIps: node.ips });
    case "host-gw": return hostGatewayOverlay(deps);
    case "none": return withoutOverlay(deps);
    default: throw new ConfigError(`--overlay must be vxlan, host-gw or none, not ${JSON.stringify(settings.overlay)}`);
  }
}
