/**
 * Upstream's flags of the kubelet as fields of its configuration: --kubelet-arg eviction-hard=memory.available<200Mi is evictionHard. Names follow the field's unless
 * upstream's flag is called otherwise.
 *
 * API: https://kubernetes.io/docs/reference/command-line-tools-reference/kubelet/
 */
import { parseGoBool } from "../core/api/meta/go-bool.ts";
import { fieldsOf, type Kind } from "../node/kubelet/configuration/fields.ts";
import { ConfigError } from "./config/config.ts";
import { nodeTaint } from "./node-taint.ts";

/** Fields whose flag has another name. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  "image-gc-high-threshold": "imageGCHighThresholdPercent", "image-gc-low-threshold": "imageGCLowThresholdPercent", "minimum-image-ttl-duration": "imageMinimumGCAge", "registry-qps": "registryPullQPS",
  "event-qps": "eventRecordQPS", "pod-max-pids": "podPidsLimit", "pod-manifest-path": "staticPodPath", "manifest-url": "staticPodURL", "reserved-cpus": "reservedSystemCPUs", "rotate-server-certificates": "serverTLSBootstrap",
  "kube-api-qps": "kubeAPIQPS", "kube-api-burst": "kubeAPIBurst", "cpu-cfs-quota": "cpuCFSQuota", "cpu-cfs-quota-period": "cpuCFSQuotaPeriod",
  "tls-cipher-suites": "tlsCipherSuites", "tls-min-version": "tlsMinVersion", "fail-cgroupv1": "failCgroupV1",
};

/** What stands between name and value in maps: thresholds are comparisons. */
const COMPARED: ReadonlySet<string> = new Set(["evictionHard", "evictionSoft"]);

/** The fields these flags say; undefined if no flag is one of them. Throws ConfigError. */
export function kubeletFlags(given: readonly (readonly [name: string, value: string])[]): Readonly<Record<string, unknown>> | undefined {
  const kinds = fieldsOf();
  const fields = new Map<string, unknown>();
  for (const [flag, text] of given) {
    const field = fieldOfFlag(flag);
    const kind = field === undefined ? undefined : kinds.get(field);
    if (field === undefined || kind === undefined) continue;
    const value = valueOf(flag, field, kind, text);
    fields.set(field, ADDED.has(kind) && field !== "registerWithTaints" ? added(fields.get(field), value) : value);
  }
  return fields.size === 0 ? undefined : Object.fromEntries(fields);
}

/** What flags of these kinds that are given several times say stands beside each other. */
const ADDED: ReadonlySet<Kind> = new Set(["list", "map"]);

function added(before: unknown, more: unknown): unknown {
  return Array.isArray(more) ? [...(before as readonly unknown[] | undefined) ?? [], ...(more as readonly unknown[])] : { ...(before as object | undefined), ...(more as object) };
}

export function isConfigurationFlag(flag: string): boolean {
  return kubeletFlagNames().has(flag);
}

function fieldOfFlag(flag: string): string | undefined {
  return OTHER_NAMES[flag] ?? kubeletFlagNames().get(flag);
}

/** flag → field */
function kubeletFlagNames(): ReadonlyMap<string, string> {
  return new Map([...[...fieldsOf().keys()].map((field) => [flagOf(field), field] as const), ...Object.entries(OTHER_NAMES)]);
}

/** clusterDNS is cluster-dns. */
function flagOf(field: string): string { return field.replace(/([a-z0-9])([A-Z])/g, "$1-$2").replace(/([A-Z])([A-Z][a-z])/g, "$1-$2").toLowerCase(); }

/** Throws ConfigError. */
export function truth(flag: string, text: string): boolean {
  const value = parseGoBool(text);
  if (value === undefined) throw new ConfigError(`--kubelet-arg ${flag} must be true or false, not ${JSON.stringify(text)}`);
  return value;
}

/** 0:memory=1Gi,hugepages-2Mi=64Mi;1:memory=1Gi */
function reservedMemory(flag: string, text: string): { readonly numaNode: number; readonly limits: Readonly<Record<string, string>> }[] {
  return text.split(";").filter(Boolean).map((part) => {
    const match = /^(\d+):(.+)$/.exec(part);
    const limits = (match?.[2] ?? "").split(",").map((limit) => limit.split("="));
    if (!match || limits.some(([name, value]) => !name || !value)) throw new ConfigError(`--kubelet-arg ${flag} ${JSON.stringify(part)}: must be node:resource=quantity,resource=quantity`);
    return { numaNode: Number(match[1]), limits: Object.fromEntries(limits) as Record<string, string> };
  });
}

function valueOf(flag: string, field: string, kind: Kind, text: string): unknown {
  switch (kind) {
    case "bool":
      return truth(flag, text);
    case "int":
      if (!/^-?\d+$/.test(text)) throw new ConfigError(`--kubelet-arg ${flag} must be a whole number, not ${JSON.stringify(text)}`);
      return Number(text);
    case "float":
      if (!/^-?\d*\.?\d+$/.test(text)) throw new ConfigError(`--kubelet-arg ${flag} must be a number, not ${JSON.stringify(text)}`);
      return Number(text);
    case "list":
      if (field === "registerWithTaints") return text.split(",").map((taint) => nodeTaint(taint, `--kubelet-arg ${flag}`));
      return field === "reservedMemory" ? reservedMemory(flag, text) : text.split(",");
    case "map": {
      const between = COMPARED.has(field) ? "<" : "=";
      return Object.fromEntries(text.split(",").filter((part) => part !== "").map((part) => {
        const at = part.indexOf(between);
        if (at <= 0) throw new ConfigError(`--kubelet-arg ${flag} ${JSON.stringify(part)}: must be name${between}value`);
        const [name, value] = [part.slice(0, at).trim(), part.slice(at + 1).trim()];
        return [name, field === "featureGates" ? truth(`${flag} ${name}`, value) : value];
      }));
    }
    default: return text;
  }
}
