/**
 * A KubeProxyConfiguration, as kubeadm and others keep it: what its fields say is read as the arguments of the same meaning (proxy-settings.ts), so that what cannot be set is refused alike.
 * Fields that are empty, null, false, 0s or, but for those that count connections, 0 say nothing, and so do addresses that mean all of them.
 *
 * API: https://kubernetes.io/docs/reference/config-api/kube-proxy-config.v1alpha1/; source: kubernetes v1.36 kube-proxy/config/v1alpha1/types.go
 */
import { isMap } from "../core/api/patch/json-value.ts";
import { readYamlSettings } from "./config/yaml-settings.ts";

const API_VERSION = "kubeproxy.config.k8s.io/v1alpha1";

/** Field to argument; "": there is nothing like it here that it could change. */
const ARGUMENTS: Readonly<Record<string, string>> = {
  mode: "proxy-mode", clusterCIDR: "cluster-cidr", hostnameOverride: "hostname-override", bindAddress: "bind-address", healthzBindAddress: "healthz-bind-address", metricsBindAddress: "metrics-bind-address",
  nodePortAddresses: "nodeport-addresses", oomScoreAdj: "oom-score-adj", configSyncPeriod: "config-sync-period", detectLocalMode: "detect-local-mode", enableProfiling: "profiling", featureGates: "feature-gates",
  "clientConnection.kubeconfig": "kubeconfig", "clientConnection.qps": "kube-api-qps", "clientConnection.burst": "kube-api-burst", "clientConnection.contentType": "kube-api-content-type", "clientConnection.acceptContentTypes": "",
  "conntrack.maxPerCore": "conntrack-max-per-core", "conntrack.min": "conntrack-min", "conntrack.tcpEstablishedTimeout": "conntrack-tcp-timeout-established", "conntrack.tcpCloseWaitTimeout": "conntrack-tcp-timeout-close-wait",
  "conntrack.tcpBeLiberal": "conntrack-tcp-be-liberal", "conntrack.udpTimeout": "conntrack-udp-timeout", "conntrack.udpStreamTimeout": "conntrack-udp-timeout-stream",
  "nftables.masqueradeAll": "masquerade-all", "nftables.masqueradeBit": "iptables-masquerade-bit", "nftables.syncPeriod": "nftables-sync-period", "nftables.minSyncPeriod": "nftables-min-sync-period",
  "iptables.masqueradeAll": "", "iptables.masqueradeBit": "", "iptables.localhostNodePorts": "", "iptables.syncPeriod": "", "iptables.minSyncPeriod": "",
  "ipvs.scheduler": "", "ipvs.excludeCIDRs": "", "ipvs.strictARP": "", "ipvs.syncPeriod": "", "ipvs.minSyncPeriod": "", "ipvs.tcpTimeout": "", "ipvs.tcpFinTimeout": "", "ipvs.udpTimeout": "",
  "winkernel.networkName": "", "winkernel.sourceVip": "", "winkernel.enableDSR": "", "winkernel.rootHnsEndpointName": "", "winkernel.forwardHealthCheckVip": "",
  "detectLocal.bridgeInterface": "detect-local-bridge-interface", "detectLocal.interfaceNamePrefix": "detect-local-interface-prefix",
  "logging.format": "logging-format", "logging.flushFrequency": "", "logging.verbosity": "v", "logging.vmodule": "vmodule", "logging.options": "",
  bindAddressHardFail: "", showHiddenMetricsForVersion: "", portRange: "", windowsRunAsService: "", apiVersion: "", kind: "",
};
const ALL_ADDRESSES: readonly unknown[] = ["0.0.0.0", "::"];

/** name=value, as --kube-proxy-arg takes them. Throws an Error for the user. */
export function proxyArguments(text: string): string[] {
  const document: unknown = readYamlSettings(text);
  if (!isMap(document)) throw new Error("must be a KubeProxyConfiguration");
  const { apiVersion, kind } = document;
  if (apiVersion !== API_VERSION || kind !== "KubeProxyConfiguration") throw new Error(`no kind ${JSON.stringify(kind ?? "")} is registered for version ${JSON.stringify(apiVersion ?? "")}: must be KubeProxyConfiguration of ${API_VERSION}`);
  return [...fields(document)].flatMap(([path, value]) => {
    const name = Object.hasOwn(ARGUMENTS, path) ? ARGUMENTS[path] : undefined;
    if (name === undefined) throw new Error(`strict decoding error: unknown field ${JSON.stringify(path)}`);
    if (name === "" || (path === "bindAddress" && ALL_ADDRESSES.includes(value))) return [];
    return [`${name}=${isMap(value) ? Object.entries(value).map((pair) => pair.join("=")).join(",") : String(value)}`];
  });
}

/** Those that say something, by their paths. */
function* fields(map: Readonly<Record<string, unknown>>, prefix = ""): Iterable<readonly [path: string, value: unknown]> {
  for (const [key, value] of Object.entries(map)) {
    const path = `${prefix}${key}`;
    if (value === null || value === "" || value === false || value === "0s" || (value === 0 && prefix !== "conntrack.") || (Array.isArray(value) && value.length === 0)) continue;
    if (!isMap(value) || Object.hasOwn(ARGUMENTS, path)) {
      if (!isMap(value) || Object.keys(value).length > 0) yield [path, value];
    } else yield* fields(value, `${path}.`);
  }
}
