/**
 * What the proxy shows at /configz: the settings it runs with, as a KubeProxyConfiguration of kubeproxy.config.k8s.io/v1alpha1. Settings of what there is none of here
 * (iptables, ipvs, connections, files) are not there.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/kube-proxy/config/v1alpha1/types.go
 */
import { formatDurationNs } from "../../core/api/meta/duration.ts";

interface Listening { readonly address: string; readonly port: number }

export interface ShownSettings {
  readonly mode: ProxyMode;
  readonly nodeName: string;
  readonly clusterCidr: string;
  /** As they were given; none: all. */
  readonly nodePortAddresses: readonly string[];
  readonly healthz: Listening | undefined;
  readonly status: Listening | undefined;
  readonly conntrack: { readonly perCpu: number; readonly min: number; readonly establishedSeconds: number; readonly closeWaitSeconds: number };
}

/** Upstream's names: services are rules of nftables, or on Windows load balancers of HNS. */
export type ProxyMode = "nftables" | "kernelspace";

/** When the rules are looked after. */
const SYNC_PERIOD = "30s";

export function proxyConfigz({ mode, nodeName, clusterCidr, nodePortAddresses, healthz, status, conntrack }: ShownSettings): object {
  const isIpv6 = healthz?.address.includes(":") ?? false;
  return {
    "kubeproxy.config.k8s.io": {
      kind: "KubeProxyConfiguration", apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
      hostnameOverride: nodeName, bindAddress: isIpv6 ? "::" : "0.0.0.0", healthzBindAddress: shown(healthz), metricsBindAddress: shown(status), bindAddressHardFail: false, enableProfiling: false, showHiddenMetricsForVersion: "",
      mode, nftables: { masqueradeBit: 14, masqueradeAll: false, syncPeriod: SYNC_PERIOD, minSyncPeriod: "0s" },
      detectLocalMode: "ClusterCIDR", clusterCIDR: clusterCidr, nodePortAddresses: nodePortAddresses.length === 0 ? null : nodePortAddresses,
      conntrack: {
        maxPerCore: conntrack.perCpu, min: conntrack.min, tcpEstablishedTimeout: seconds(conntrack.establishedSeconds), tcpCloseWaitTimeout: seconds(conntrack.closeWaitSeconds),
        tcpBeLiberal: false, udpTimeout: "0s", udpStreamTimeout: "0s",
      },
    },
  };
}

function shown(listening: Listening | undefined): string {
  if (!listening) return "";
  const { address, port } = listening;
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}

function seconds(count: number): string { return formatDurationNs(BigInt(count) * 1_000_000_000n); }
