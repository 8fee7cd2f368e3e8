/**
 * Upstream's settings that are none here, in the files and command lines of kubeadm and k3s: what says what is so anyway is taken, the rest is refused with what to do instead.
 * A setting that does nothing would be believed to do something.
 */
import { parseGoBool } from "../core/api/meta/go-bool.ts";
import { ConfigError } from "./config/config.ts";
import { durationMsOf } from "./duration-of.ts";

export interface OtherSetting {
  /** Values that say what is so, upstream's default where that comes to the same; "*": all do, there is nothing it could change. */
  readonly is?: readonly string[];
  /** After "…: ". */
  readonly instead: string;
}
export type OtherSettings = Readonly<Record<string, OtherSetting>>;

export interface Argument { readonly name: string; readonly value: string }

/** name=value, or name for "true"; with or without dashes in front. Undefined: none of these. */
export function argumentOf(text: string): Argument | undefined {
  const match = /^(?:--)?([a-z0-9-]+)(?:=([\s\S]*))?$/.exec(text);
  return match ? { name: match[1]!, value: match[2] ?? "true" } : undefined;
}

/** Throws ConfigError unless it says what is so. `known`: what there is instead. */
export function checkOther(flag: string, text: string, { others, known }: { readonly others: OtherSettings; readonly known: readonly string[] }): void {
  const { name, value } = argumentOf(text) ?? { name: "", value: "" };
  const other = Object.hasOwn(others, name) ? others[name]! : undefined;
  if (other?.is?.some((one) => one === "*" || isSame(one, value))) return;
  throw new ConfigError(`--${flag} ${text}: ${other?.instead ?? `not a setting we have; there are ${known.join(", ")}`}`);
}

/** As Go reads them: True is true, and 300s is 5m. */
function isSame(one: string, other: string): boolean {
  const [truth, ms] = [parseGoBool(one), durationMsOf(one)];
  return one === other || (truth !== undefined && truth === parseGoBool(other)) || (ms !== undefined && ms === durationMsOf(other));
}

const own = (flag: string): OtherSetting => ({ instead: `give --${flag} instead` });
const always = (...is: readonly string[]): OtherSetting => ({ is, instead: `that is how it is: only ${is.join(" or ")}` });
const nothing = (why: string, ...is: readonly string[]): OtherSetting => ({ is, instead: `there is no such thing here: ${why}` });
const several = (names: readonly string[], setting: OtherSetting): OtherSettings => Object.fromEntries(names.map((name) => [name, setting]));

const IN_PROCESS = nothing("it runs within the server, which it reaches without a file and without limits");
const LOGGING: OtherSettings = {
  ...several(["v", "vmodule", "log-level"], own("log-level")), "logging-format": { is: ["json"], instead: "logs are JSON" },
  "log-flush-frequency": nothing("logs are written at once", "*"),
  ...several(["log-json-split-stream", "log-text-split-stream"], nothing("all logs go one way", "false")), ...several(["log-json-info-buffer-size", "log-text-info-buffer-size"], nothing("logs are written at once", "0", "")),
};
const CONTENTION: OtherSettings = { "contention-profiling": nothing("no threads contend for anything", "false") };
const PROFILING: OtherSettings = { ...CONTENTION, "profiling": nothing("this part cannot be profiled over HTTP", "false") };
/** With or without upstream's name of the component, and of the minor version before, as upstream has it without the flag. Source: kubernetes v1.36 component-base/compatibility/registry.go */
const VERSIONS: OtherSettings = Object.fromEntries([["emulated-version", "1.36"], ["min-compatibility-version", "1.35"]].map(([name, version]) =>
  [name, { is: ["", version, `v${version}`, `kube=${version}`, `kube=v${version}`], instead: "this server is v1.36 and emulates no other version" } as OtherSetting]));
const TIMES = nothing("leaders are elected with upstream's Leases and times: 15s, 10s, 2s");
const ONE_FOR_ALL = "give it as --kube-apiserver-arg: one process is asked, and counts, for all components";
/** Of what runs within the server. */
const WITHIN: OtherSettings = {
  ...LOGGING, ...CONTENTION, "profiling": { is: ["true", "false"], instead: "true or false" },
  ...several(["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig", "master", "kube-api-qps", "kube-api-burst", "kube-api-content-type"], IN_PROCESS),
  ...several(["tls-cert-file", "tls-private-key-file", "tls-cipher-suites", "tls-min-version", "cert-dir"], nothing("it shows the API server's own certificate")),
  "authorization-always-allow-paths": always("/healthz,/readyz,/livez"), "port": { is: ["0"], instead: "v1.36 knows no port without encryption: give secure-port" },
  "leader-elect": { is: ["true"], instead: "servers that share a datastore elect a leader, a server alone needs none" },
  "leader-elect-lease-duration": { ...TIMES, is: ["15s"] }, "leader-elect-renew-deadline": { ...TIMES, is: ["10s"] }, "leader-elect-retry-period": { ...TIMES, is: ["2s"] },
  "leader-elect-resource-lock": { ...TIMES, is: ["leases"] }, "leader-elect-resource-namespace": { ...TIMES, is: ["kube-system"] }, "leader-elect-resource-name": TIMES,
  ...several(["disable-http2-serving", "permit-address-sharing", "permit-port-sharing"], always("false")), "http2-max-streams-per-connection": always("0"),
  ...several(["tls-sni-cert-key", "tls-curve-preferences"], nothing("it shows the API server's own certificate", "")),
  "authentication-skip-lookup": always("false"), "authentication-tolerate-lookup-failure": nothing("whom the API server knows it knows, too", "*"), "authentication-token-webhook-cache-ttl": nothing("whom the API server knows it knows, too", "10s"),
  ...several(["authorization-webhook-cache-authorized-ttl", "authorization-webhook-cache-unauthorized-ttl"], nothing("what the API server allows it allows, without asking", "10s")),
  ...several(["client-ca-file", "requestheader-allowed-names", "requestheader-client-ca-file", "requestheader-uid-headers"], { is: [""], instead: ONE_FOR_ALL }),
  "requestheader-username-headers": { is: ["x-remote-user"], instead: ONE_FOR_ALL }, "requestheader-group-headers": { is: ["x-remote-group"], instead: ONE_FOR_ALL },
  "requestheader-extra-headers-prefix": { is: ["x-remote-extra-"], instead: ONE_FOR_ALL },
  ...several(["disabled-metrics", "show-hidden-metrics-for-version", "allow-metric-labels", "allow-metric-labels-manifest"], { is: [""], instead: ONE_FOR_ALL }),
  ...VERSIONS, "version": { is: ["false"], instead: "ask: coracle --version" },
  "feature-gates": { instead: "give --kube-apiserver-arg feature-gates=… instead: they are the same for all components" },
};

const OUR_KEYS = { instead: "the cluster's keys are in <data-dir>/server/tls; put yours there before the first start" };

export const OTHER_CONTROLLER_SETTINGS: OtherSettings = {
  ...WITHIN,
  "allocate-node-cidrs": always("true"), "cluster-cidr": own("cluster-cidr"), "service-cluster-ip-range": own("service-cidr"), "cidr-allocator-type": always("RangeAllocator"),
  "use-service-account-credentials": nothing("controllers work in the server's own name", "false"),
  "enable-garbage-collector": always("true"), "enable-dynamic-provisioning": always("true"), "enable-hostpath-provisioner": always("false"), "configure-cloud-routes": always("false"),
  "pod-eviction-timeout": { instead: "v1.36 knows no such setting: pods leave a silent node by their own tolerations; see --kube-apiserver-arg default-not-ready-toleration-seconds and default-unreachable-toleration-seconds" },
  ...several(
    ["cloud-provider", "cloud-config", "external-cloud-volume-plugin", "route-reconciliation-period", "node-sync-period", "concurrent-service-syncs", "concurrent-node-syncs"],
    nothing("there are no cloud providers in it; one of its own runs as a pod", ""),
  ),
  ...several(["root-ca-file", "service-account-private-key-file", "cluster-signing-cert-file", "cluster-signing-key-file"], OUR_KEYS),
  ...several(
    ["attach-detach-reconcile-sync-period", "pvclaimbinder-sync-period", "namespace-sync-period", "endpoint-updates-batch-period", "endpointslice-updates-batch-period", "mirroring-endpointslice-updates-batch-period"],
    nothing("it works by what changes, not by the clock"),
  ),
  ...several(["flex-volume-plugin-dir", "pv-recycler-pod-template-filepath-nfs", "pv-recycler-pod-template-filepath-hostpath"], nothing("volumes come by CSI")),
  "cluster-name": nothing("only cloud providers read it", "*"), "controller-start-interval": nothing("controllers start at once", "0s", "0"), "min-resync-period": nothing("controllers look at what has changed", "*"),
  ...several(["cluster-signing-kube-apiserver-client", "cluster-signing-kubelet-client", "cluster-signing-kubelet-serving", "cluster-signing-legacy-unknown"].flatMap((name) => [`${name}-cert-file`, `${name}-key-file`]), OUR_KEYS),
  ...several(["pv-recycler-increment-timeout-nfs", "pv-recycler-minimum-timeout-hostpath", "pv-recycler-minimum-timeout-nfs", "pv-recycler-timeout-increment-hostpath"], nothing("volumes come by CSI", "*")),
  "disable-attach-detach-reconcile-sync": always("false"), "enable-leader-migration": always("false"), "leader-migration-config": nothing("controllers have one Lease", ""), "controller-shutdown-timeout": nothing("the process ends when all has", "*"),
};

export const OTHER_SCHEDULER_SETTINGS: OtherSettings = {
  ...WITHIN, "write-config-to": { is: [""], instead: "ask the scheduler's own port: /configz" },
  "pod-max-in-unschedulable-pods-duration": nothing("pods are looked at again after 5m, as upstream does", "5m", "5m0s"),
};

const ETCD = { instead: "give --datastore-endpoint, --datastore-cafile, --datastore-certfile and --datastore-keyfile for an etcd of yours" };
const NODES_TLS = { instead: "how nodes are reached is settled with their joining: by the tunnel they hold open, under the cluster's own CA" };

export const OTHER_API_SERVER_SETTINGS: OtherSettings = {
  ...LOGGING, ...CONTENTION,
  "secure-port": own("https-listen-port"), "bind-address": own("bind-address"), "advertise-address": own("advertise-address"), "external-hostname": own("tls-san"),
  "service-cluster-ip-range": own("service-cidr"), "service-node-port-range": own("service-node-port-range"), "cert-dir": own("data-dir"),
  ...several(["proxy-client-cert-file", "proxy-client-key-file"], { instead: "what it shows to servers behind it is its own, renewed by itself; its CA is in kube-system/extension-apiserver-authentication" }),
  ...several(["etcd-servers", "etcd-cafile", "etcd-certfile", "etcd-keyfile"], ETCD), "etcd-prefix": { ...ETCD, is: ["/registry"] }, "etcd-servers-overrides": { ...ETCD, is: [""] }, "etcd-compaction-interval": { ...ETCD, is: ["5m", "5m0s"] },
  "storage-backend": nothing("the store is built in, or --datastore-endpoint", "etcd3", ""), "storage-media-type": nothing("the store has a format of its own", "*"),
  ...several(["kubelet-certificate-authority", "kubelet-client-certificate", "kubelet-client-key", "kubelet-preferred-address-types", "kubelet-timeout", "kubelet-port"], NODES_TLS),
  "allow-privileged": always("true"), "enable-bootstrap-token-auth": always("true"), "service-account-lookup": always("true"), "enable-garbage-collector": always("true"), "enable-aggregator-routing": always("true"),
  "watch-cache": always("true"), "enable-logs-handler": nothing("/logs is the kubelet's", "false"), "endpoint-reconciler-type": always("lease"), "permit-port-sharing": always("false"), "permit-address-sharing": always("false"),
  "audit-log-version": always("audit.k8s.io/v1"), "audit-webhook-version": always("audit.k8s.io/v1"),
  ...several(["default-watch-cache-size", "watch-cache-sizes"], nothing("it sizes itself", "100", "")), "delete-collection-workers": nothing("as many go at once as the store takes", "*"),
  "apiserver-count": nothing("servers count themselves"),
  "kubernetes-service-node-port": always("0"), "insecure-port": always("0"),
  ...VERSIONS,
  "admission-control": { instead: "give enable-admission-plugins and disable-admission-plugins instead" },
  "debug-socket-path": nothing("this program cannot be profiled", ""), "disable-http2-serving": always("false"), "max-connection-bytes-per-sec": always("0"),
  "tls-curve-preferences": nothing("curves are those of the TLS library", ""),
  ...several(["emulation-forward-compatible", "runtime-config-emulation-forward-compatible"], nothing("this server is v1.36 and emulates no other version", "false")),
  ...several(["etcd-count-metric-poll-period", "etcd-db-metric-poll-interval"], nothing("what metrics tell of the store is counted when they are asked for", "*")),
  ...several(["etcd-healthcheck-timeout", "etcd-readycheck-timeout"], always("2s")), "lease-reuse-duration-seconds": nothing("events are kept without leases of etcd", "60"),
  "storage-initialization-timeout": nothing("the store is open before anything is answered", "*"),
  ...several(["peer-advertise-ip", "peer-advertise-port", "peer-ca-file"], nothing("all servers serve the same, and send nobody on to another", "")),
  ...several(["send-retry-after-while-not-ready-once", "shutdown-send-retry-after"], always("false")), "shutdown-watch-termination-grace-period": always("0s", "0"),
  "aggregator-reject-forwarding-redirect": always("true"), "version": { instead: "ask: coracle --version" },
  "cloud-provider": nothing("there are no cloud providers in it", ""), "egress-selector-config-file": { instead: "nodes and pods are reached by the tunnels nodes hold open, without a setting" },
};

export const OTHER_PROXY_SETTINGS: OtherSettings = {
  ...LOGGING, ...PROFILING, ...several(["kubeconfig", "master", "kube-api-qps", "kube-api-burst", "kube-api-content-type"], IN_PROCESS),
  "proxy-mode": { is: ["nftables", ""], instead: "services are rules of nftables here; there is no iptables and no ipvs" },
  "cluster-cidr": own("cluster-cidr"), "nodeport-addresses": own("nodeport-addresses"), "hostname-override": own("node-name"), "bind-address": own("node-ip"),
  "detect-local-mode": always("ClusterCIDR"), "masquerade-all": always("false"), "iptables-localhost-nodeports": always("true"), "oom-score-adj": nothing("it lives in this process"),
  ...several([
    "iptables-masquerade-bit", "iptables-sync-period", "iptables-min-sync-period", "ipvs-scheduler", "ipvs-strict-arp", "ipvs-sync-period", "ipvs-min-sync-period",
    "ipvs-exclude-cidrs", "ipvs-tcp-timeout", "ipvs-tcpfin-timeout", "ipvs-udp-timeout",
  ], { instead: "services are rules of nftables here; there is no iptables and no ipvs" }),
  ...several(["nftables-sync-period", "nftables-min-sync-period", "config-sync-period"], nothing("it works by what changes, not by the clock")),
  ...several(["conntrack-tcp-be-liberal", "conntrack-udp-timeout", "conntrack-udp-timeout-stream"], nothing("set the machine's own net.netfilter.nf_conntrack_*")),
  ...several(["detect-local-bridge-interface", "detect-local-interface-prefix", "pod-bridge-interface", "pod-interface-name-prefix"], nothing("what is local is told by --cluster-cidr", "")),
  ...several(["bind-address-hard-fail", "cleanup", "init-only"], always("false")), "write-config-to": { is: [""], instead: "ask its own port: /configz" }, "version": { is: ["false"], instead: "ask: coracle --version" },
  ...several(["boot-id-file", "machine-id-file"], nothing("the kubelet tells which machine it is", "*")), "show-hidden-metrics-for-version": nothing("there are no hidden metrics", ""),
  "feature-gates": { instead: "give --kube-apiserver-arg feature-gates=… on the server instead: they are the same for all components" },
};

export const OTHER_WINDOWS_PROXY_SETTINGS: OtherSettings = { ...OTHER_PROXY_SETTINGS, "proxy-mode": { is: ["kernelspace", ""], instead: "services are load balancers of HNS here" } };

export const OTHER_KUBELET_SETTINGS: OtherSettings = {
  ...LOGGING,
  "make-iptables-util-chains": nothing("there is no iptables; the node keeps its rules of nftables by itself", "true"),
  "container-runtime": always("remote"), "container-runtime-endpoint": own("container-runtime-endpoint"), "hostname-override": own("node-name"), "node-ip": own("node-ip"), "cert-dir": own("data-dir"),
  "cloud-provider": { is: [""], instead: "give --node-taint node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule instead, which a cloud's controller manager takes away" },
  ...several(["kubeconfig", "bootstrap-kubeconfig"], { instead: "how the node reaches its server is settled with its joining: --server, --token" }), "client-ca-file": OUR_KEYS,
  "maximum-dead-containers": { is: ["-1"], instead: "give --kubelet-arg maximum-dead-containers-per-container=… and minimum-container-ttl-duration=… instead: each container keeps its own" },
  "pod-infra-container-image": { instead: "the image of sandboxes is the container runtime's to choose" },
  ...CONTENTION, "runonce": { is: ["false"], instead: "v1.36 knows no such setting" }, "kube-api-content-type": nothing("nodes speak JSON with their server"),
  "authentication-token-webhook-cache-ttl": nothing("tokens are asked about again after upstream's time", "2m", "2m0s"), "authorization-webhook-cache-authorized-ttl": nothing("what is allowed is asked again after upstream's time", "5m", "5m0s"),
  "authorization-webhook-cache-unauthorized-ttl": nothing("what is not allowed is asked again after upstream's time", "30s"),
  "experimental-allocatable-ignore-eviction": always("false"), "experimental-mounter-path": nothing("volumes are mounted by the system's own means", ""), "windows-service": { instead: "installers/windows/install.ps1 makes a service of it" },
  ...several(["housekeeping-interval", "global-housekeeping-interval"], nothing("control groups are read when somebody asks")),
  ...several(["runtime-cgroups", "containerd", "containerd-namespace", "lock-file", "exit-on-lock-contention", "docker-endpoint"], nothing("it is none of the kubelet's here")),
};
