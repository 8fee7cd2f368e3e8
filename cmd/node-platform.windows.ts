/** A Windows node: the machine's own containerd on its named pipe, the pod network and services through HNS. */
import { join } from "node:path";
import type { Runnable } from "../core/lifecycle/run-all.ts";
import { criClient } from "../node/cri/client.ts";
import { windowsNetwork } from "../node/network/windows/windows-network.ts";
import { exec } from "../node/os/exec.ts";
import { openHcn } from "../node/os/hcn.windows.ts";
import type { Hcn } from "../node/os/hcn.ts";
import { systemRoutes } from "../node/os/route.windows.ts";
import { hnsProxy } from "../node/proxy/hns/hns-proxy.ts";
import { WINDOWS_PIPE } from "../node/runtime/paths.ts";
import { ConfigError } from "./config/config.ts";
import type { NodePlatform, PlatformOptions } from "./node-platform.ts";
import { proxyPages, proxySettings } from "./proxy-settings.ts";

/** Where containerd for Windows looks for CNI configurations, unless it is told otherwise. */
const CNI_CONF_DIR = "C:\\Program Files\\containerd\\cni\\conf";

export function windowsPlatform({ settings, paths, node, client, informers, kubelet, events, clock, metrics, log }: PlatformOptions): NodePlatform {
  const cri = criClient({ socket: settings.containerRuntimeEndpoint ?? WINDOWS_PIPE, imageSocket: kubelet.imageServiceEndpoint || undefined, nowMs: clock.nowMs, timeoutMs: kubelet.runtimeTimeoutMs });
  let opened: Hcn | undefined;
  const hcn = (): Hcn => (opened ??= openHcn()); // not before the first use: where there is no Containers feature the rest of the node still says so in its status
  if (settings.overlay === "none") return { cri, runtime: [], network: nothing("network"), proxy: nothing("service-proxy"), policies: [] };
  const proxying = proxySettings(settings.kubeProxyArg, { ipv6: false, mode: "kernelspace" });
  if (settings.nodeportAddresses?.length) throw new ConfigError("--nodeport-addresses: on Windows NodePorts answer at all of the node's addresses");
  if (settings.overlay !== "vxlan" && settings.overlay !== "host-gw") throw new ConfigError(`--overlay must be vxlan, host-gw or none, not ${JSON.stringify(settings.overlay)}`);
  const nodeIp = node.ips.find((ip) => !ip.includes(":"));
  if (nodeIp === undefined) throw new ConfigError("a Windows node needs an IPv4 address: name one with --node-ip");
  const network = windowsNetwork({
    informers, client, nodeName: node.name, nodeIp, adapter: node.interfaceName, overlay: settings.overlay, clusterCidrs: settings.clusterCidr.split(","), serviceCidrs: settings.serviceCidr.split(","),
    clusterDns: settings.clusterDns, clusterDomain: settings.clusterDomain, cniConfDir: CNI_CONF_DIR, stateDir: join(paths.agent, "network"), hcn, routes: systemRoutes(), exec, clock, log: log.with({ part: "network" }),
  });
  const proxy = settings.disable.includes("proxy") ? nothing("service-proxy") : hnsProxy({
    informers, nodeName: node.name, nodeIps: node.ips, network: network.state, onNetworkChange: network.onChange, hcn, healthz: proxying.healthz, status: proxying.status,
    pages: proxyPages("kernelspace", { settings, proxying, nodeName: node.name, clock }), events: events.reporter({ component: "kube-proxy", host: node.name }), clock, log: log.with({ part: "proxy" }), metrics,
  });
  return { cri, runtime: [], network, proxy, policies: [] };
}

/** Another CNI plugin sees to it, and to services. */
function nothing(name: string): Runnable {
  return {
    name,
    async run(signal, ready) {
      ready();
      await new Promise<void>((resolve) => {
        if (signal.aborted) resolve();
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    },
  };
}
