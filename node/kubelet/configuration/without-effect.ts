/**
 * Fields of a KubeletConfiguration that are taken and change nothing, as files of other clusters have them: told at the start, with why, where the value is another than upstream's default.
 * What would be believed to do something that matters is refused instead: validate.ts.
 */
import { defaultsOf } from "./fields.ts";

const OWN_PACE = "nothing limits how much this kubelet asks of its own server, which serves in turn";
const OWN_TLS = "the node's certificates are the cluster's, and renewed by themselves";
const NO_HTTP = "static pods come from a directory";
const NO_IPTABLES = "the node's rules are nftables'";

const WHY: Readonly<Record<string, string>> = {
  httpCheckFrequency: NO_HTTP, staticPodURLHeader: NO_HTTP, rotateCertificates: OWN_TLS, serverTLSBootstrap: OWN_TLS, kubeAPIQPS: OWN_PACE, kubeAPIBurst: OWN_PACE, eventRecordQPS: OWN_PACE, eventBurst: OWN_PACE,
  registryPullQPS: "pulls are limited by maxParallelImagePulls and serializeImagePulls", registryBurst: "pulls are limited by maxParallelImagePulls and serializeImagePulls",
  enableContentionProfiling: "this program cannot be profiled over HTTP", kubeletCgroups: "the kubelet stays in the group its supervisor gave it", systemCgroups: "other processes of the machine stay in their groups",
  hairpinMode: "the pod network decides, and pods reach themselves through their Services", podCIDR: "the Node says which addresses its pods have", maxOpenFiles: "the supervisor's limit holds (LimitNOFILE)",
  contentType: "the kubelet speaks JSON", makeIPTablesUtilChains: NO_IPTABLES, iptablesMasqueradeBit: NO_IPTABLES, iptablesDropBit: NO_IPTABLES, showHiddenMetricsForVersion: "there are no hidden metrics",
  volumePluginDir: "volumes come by CSI", kernelMemcgNotification: "memory is looked at often enough without",
  logging: "logs are JSON; how much is said is --log-level's", memoryThrottlingFactor: "memory is not throttled before its limit (upstream's gate MemoryQoS is off)",
  "authentication.x509.clientCAFile": "whose certificates are taken the cluster says", tlsCurvePreferences: "the curves are the TLS library's", imagePullProgressDeadline: "the container runtime decides when a pull has stalled",
};

export interface WithoutEffect { readonly field: string; readonly why: string }

/** `given`: as applyConfiguration took it. */
export function withoutEffect(given: Readonly<Record<string, unknown>>): WithoutEffect[] {
  const defaults = defaultsOf();
  return Object.entries(WHY).flatMap(([field, why]) => {
    const value = valueAt(given, field);
    return value === undefined || isEmpty(value) || JSON.stringify(value) === JSON.stringify(valueAt(defaults, field)) ? [] : [{ field, why }];
  });
}

function valueAt(values: Readonly<Record<string, unknown>>, field: string): unknown {
  return field.split(".").reduce<unknown>((within, name) => (within as Readonly<Record<string, unknown>> | null | undefined)?.[name], values);
}

function isEmpty(value: unknown): boolean {
  return value === "" || value === false || (typeof value === "object" && value !== null && Object.keys(value).length === 0);
}
