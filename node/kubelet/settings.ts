/** What the composition root decides about the kubelet: fixed for its life. */
import type { Taint } from "../../core/api/gen/core.v1.ts";
import type { TlsPolicy } from "../../core/net/tls-policy.ts";
import { type EvictionSettings, THRESHOLDS } from "./eviction/plan.ts";
import type { PullPolicy } from "./images/pull-verification.ts";
import type { Kept } from "./kept.ts";
import { NO_PLACEMENT, type PlacementSettings } from "./placement/settings.ts";
import { CPU_QUOTA, type CpuQuota } from "./resources/linux-resources.ts";
import type { ReservedGroup } from "./resources/reserved-groups.ts";

export interface KubeletSettings {
  readonly nodeName: string;
  /** Addresses of this node: one, or one of each family; the first one's family is preferred. */
  readonly nodeIps: readonly string[];
  readonly hostname: string;
  /** What others know as /var/lib/kubelet. */
  readonly dataDir: string;
  /** Where plugins expect it, if that is another place: well-known-directory.ts. "": nowhere. */
  readonly wellKnownDir: string;
  /** Where docker configurations are looked for, beside that directory: images/node-credentials.ts. "": not there. */
  readonly workingDir: string;
  readonly home: string;
  /** Usually /var/log/pods. */
  readonly podLogsDir: string;
  /** Flat directory of links to the newest log of each container; usually /var/log/containers. "": none. */
  readonly containerLogsDir: string;
  readonly clusterDns: readonly string[];
  readonly clusterDomain: string;
  /** The host's resolv.conf, for pods with the host's DNS. "": there is none. */
  readonly resolvConf: string;
  readonly maxPods: number;
  /** Processes and threads of one pod; -1: as many as the node may have. */
  readonly podPidsLimit: number;
  /** User ids of a pod with a namespace of its own. */
  readonly userNamespaceIds: number;
  /** The cgroup all pods live below, as a path in each hierarchy: "/" makes it /kubepods. */
  readonly cgroupRoot: string;
  /** As Go writes versions: v1.36.0. */
  readonly version: string;
  /** Where the kubelet's server listens, and the read-only one; "::": at all addresses of the machine. */
  readonly address: string;
  /** The port of the kubelet's server, for the node's status. */
  readonly port: number;
  /** Files, PEM, of what the kubelet's server shows instead of the cluster's certificate. */
  readonly servingFiles?: ServingFiles | undefined;
  /** Where anyone may ask whether the kubelet runs; port 0: nowhere. */
  readonly healthzAddress: string;
  readonly healthzPort: number;
  readonly access: AccessSettings;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  readonly unschedulable: boolean;
  /** Whether the node makes its own object; otherwise it waits until somebody has. */
  readonly registers: boolean;
  readonly providerId: string | undefined;
  /** Kept from pods, as quantities: what the operating system and we need ourselves. */
  readonly reserved: Readonly<Record<string, string>>;
  /** Pods together cannot have what is reserved; otherwise the scheduler alone keeps it free. */
  readonly enforcesAllocatable: boolean;
  /** Profiles for seccompProfile type Localhost. */
  readonly seccompDir: string;
  /** Of a container that takes too much memory only the process that wanted more ends, not all (cgroup v2; version 1 knows nothing else). */
  readonly singleProcessOomKill: boolean;
  /** How many images the node's status tells of, the largest; -1: all. */
  readonly statusImagesMax: number;
  /** RuntimeDefault where a pod says nothing. */
  readonly seccompDefault: boolean;
  /** Sysctls a pod may set beyond the safe ones; a trailing * matches. */
  readonly allowedUnsafeSysctls: readonly string[];
  /** Pulls of one image at a time, or of all at once. */
  readonly serializeImagePulls: boolean;
  readonly containerLogMaxBytes: number;
  readonly containerLogMaxFiles: number;
  /** How many logs are looked at together, and how often. */
  readonly containerLogWorkers: number;
  readonly containerLogMs: number;
  /** Without news a pod is looked at this often. */
  readonly syncMs: number;
  /** How often the directory of static pods is read where the kernel does not tell of changes. */
  readonly fileCheckMs: number;
  /** How long exec, attach and port-forward may be silent. */
  readonly streamIdleMs: number;
  /** Where images are, if not with the container runtime; "": with it. */
  readonly imageServiceEndpoint: string;
  /** ConfigMaps and Secrets are read anew each time, and nothing is watched. */
  readonly readsObjectsAnew: boolean;
  /** How long the container runtime may take to answer, where no call has a limit of its own. */
  readonly runtimeTimeoutMs: number;
  /** How often figures of volumes are read; not positive: never. */
  readonly volumeStatsMs: number;
  readonly cpuQuota: CpuQuota;
  /** Dead containers of pods that still exist. */
  readonly deadContainers: Kept;
  /** Of the kubelet's own process: -1000 is the last to be killed for want of memory. */
  readonly oomScoreAdjust: number;
  /** Groups of others that are held to what is reserved for them. */
  readonly reservedGroups: readonly ReservedGroup[];
  /** The kernel's settings are as a kubelet wants them, or it does not run; else it changes them. */
  readonly protectsKernel: boolean;
  /** Of this process, as `setPriority` takes it; undefined: what it has. Windows only. */
  readonly processPriority: number | undefined;
  /** Rather not start than run on a machine with cgroup v1. */
  readonly failCgroupV1: boolean;
  /** /logs is served. */
  readonly servesLogs: boolean;
  /** At most this many at once, where they are not serialized. */
  readonly maxParallelImagePulls?: number | undefined;
  /** An image that was pulled with credentials is only for those who have them: images/pull-records.ts. */
  readonly pullVerification: { readonly policy: PullPolicy; readonly allowlist: readonly string[] };
  readonly imageGc: { readonly highPercent: number; readonly lowPercent: number; readonly ageMinMs: number; /** 0: unused images may stay for ever. */ readonly ageMaxMs: number };
  readonly eviction: EvictionSettings;
  /** Processors, memory and devices of containers: who has which. */
  readonly placement: PlacementSettings;
  /** 0: only maxPods counts. */
  readonly podsPerCore: number;
  /** How often the node's status is looked at, and how often it is written although nothing changed. */
  readonly statusMs: number;
  readonly reportMs: number;
  readonly leaseSeconds: number;
  readonly crashBackoffMsMax: number;
  /** Burstable pods may swap, in proportion to the memory they ask for. */
  readonly limitedSwap: boolean;
  /** Rather not start than run on a machine that swaps. */
  readonly failSwapOn: boolean;
  /** Of the node's own API. */
  readonly tls?: TlsPolicy | undefined;
  readonly shutdown: ShutdownSettings;
  /** What was given as a KubeletConfiguration, for /configz. */
  readonly configuration: Readonly<Record<string, unknown>>;
  /** Manifests of pods that run without an API server. "": none. */
  readonly staticPodDir: string;
}

export interface ServingFiles { readonly certFile: string; readonly keyFile: string }

/** Who may ask the kubelet's server, and for what. */
export interface AccessSettings {
  /** Who says nothing of themselves is system:anonymous; otherwise they are refused. */
  readonly anonymous: boolean;
  /** The API server is asked whose a bearer token is; otherwise tokens say nothing. */
  readonly tokens: boolean;
  /** The API server is asked whether they may; otherwise everybody may do everything. */
  readonly authorizes: boolean;
  /** How long the API server's answers hold. */
  readonly tokenTtlMs: number;
  readonly allowedTtlMs: number;
  readonly deniedTtlMs: number;
  /** Whether there are logs, exec, attach, port-forward, configz and the like. */
  readonly debugging: boolean;
  /** Where anyone may read health, pods, statistics and metrics without TLS; 0: nowhere. */
  readonly readOnlyPort: number;
}

const ACCESS: AccessSettings = { anonymous: false, tokens: true, authorizes: true, tokenTtlMs: 120_000, allowedTtlMs: 300_000, deniedTtlMs: 30_000, debugging: true, readOnlyPort: 0 };

/** How long pods have when the machine goes down. 0: they are not waited for. */
export interface ShutdownSettings {
  readonly graceMs: number;
  /** Of it, for critical pods. */
  readonly criticalMs: number;
  /** Instead of the two: pods of at least this priority, and below the next. */
  readonly byPriority?: readonly { readonly priority: number; readonly graceMs: number }[] | undefined;
}

export const KUBELET_DEFAULTS: Omit<KubeletSettings, "nodeName" | "nodeIps" | "hostname" | "version"> = {
  dataDir: "/var/lib/kubelet", wellKnownDir: "", workingDir: "", home: "", podLogsDir: "/var/log/pods", containerLogsDir: "/var/log/containers", clusterDns: [], clusterDomain: "cluster.local",
  resolvConf: "/etc/resolv.conf", maxPods: 110, podPidsLimit: -1, userNamespaceIds: 65_536, cgroupRoot: "/", address: "::", port: 10250, healthzAddress: "127.0.0.1",
  healthzPort: 10248, access: ACCESS, labels: {}, annotations: {}, taints: [], unschedulable: false, registers: true, providerId: undefined, reserved: {},
  enforcesAllocatable: true,
  seccompDir: "/var/lib/kubelet/seccomp", seccompDefault: false, singleProcessOomKill: false, statusImagesMax: 50, allowedUnsafeSysctls: [], serializeImagePulls: true, containerLogMaxBytes: 10 * 1024 * 1024, containerLogMaxFiles: 5,
  staticPodDir: "", pullVerification: { policy: "NeverVerifyPreloadedImages", allowlist: [] },
  imageGc: { highPercent: 85, lowPercent: 80, ageMinMs: 2 * 60_000, ageMaxMs: 0 },
  eviction: { thresholds: THRESHOLDS, transitionMs: 5 * 60_000, maxPodGraceSeconds: 0 }, podsPerCore: 0,
  placement: NO_PLACEMENT, containerLogWorkers: 1, containerLogMs: 10_000, syncMs: 60_000, fileCheckMs: 20_000, streamIdleMs: 4 * 3_600_000, imageServiceEndpoint: "",
  readsObjectsAnew: false, runtimeTimeoutMs: 120_000, volumeStatsMs: 60_000, cpuQuota: CPU_QUOTA, deadContainers: { perContainer: 1, ageMinMs: 0 },
  oomScoreAdjust: -999, reservedGroups: [], protectsKernel: false, processPriority: undefined, failCgroupV1: false, servesLogs: true,
  statusMs: 10_000, reportMs: 300_000, leaseSeconds: 40, crashBackoffMsMax: 300_000, limitedSwap: false, failSwapOn: false, shutdown: { graceMs: 0, criticalMs: 0 }, configuration: {},
};
