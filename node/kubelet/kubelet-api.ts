/**
 * What the kubelet offers to its HTTP server (node/kubelet/server): the pods of this node, where their logs are, and streaming URLs of the
 * runtime. Errors that a client should see are KubeletApiErrors; their message is upstream's.
 */
import type { Pod } from "../../core/api/gen/core.v1.ts";

export interface PodName {
  readonly namespace: string;
  readonly name: string;
  /** Only this incarnation. */
  readonly uid?: string | undefined;
}

/** "no-log": the container has run, but what it wrote is not there any more. Who reads logs is told so in place of one, as by upstream's, which has begun to answer by then. */
export type KubeletApiErrorCode = "pod-not-found" | "container-not-found" | "bad-request" | "no-log" | "unavailable";

export class KubeletApiError extends Error {
  readonly code: KubeletApiErrorCode;
  constructor(code: KubeletApiErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "KubeletApiError";
    this.code = code;
  }
}

export interface LogFile {
  /** The newest file of the container's log; rotated ones stand beside it as <path>.<timestamp>[.gz]. It appears once the container starts. */
  readonly path: string;
  /** False once nothing more will be appended: a follower that has read everything may end. */
  running(): boolean;
}

export interface StreamOptions {
  readonly tty?: boolean | undefined;
  readonly stdin?: boolean | undefined;
  readonly stdout?: boolean | undefined;
  readonly stderr?: boolean | undefined;
}

export interface ExecResult { readonly stdout: Uint8Array; readonly stderr: Uint8Array; readonly exitCode: number }

/** Nobody but the API server knows when it was made. */
export interface RunningPod {
  readonly apiVersion: "v1";
  readonly kind: "Pod";
  readonly metadata: { readonly name: string; readonly namespace: string; readonly uid: string; readonly creationTimestamp: null };
  readonly spec: { readonly containers: readonly { readonly name: string; readonly image: string }[] };
  readonly status: Readonly<Record<string, never>>;
}

export interface KubeletApi {
  readonly nodeName: string;
  /** The directory served as /logs/: /var/log. */
  readonly logDir: string;
  /** Every pod of this node, with the status the kubelet last computed (newer than the API server's, perhaps). */
  pods(): readonly Readonly<Pod>[];
  pod(name: PodName): Readonly<Pod> | undefined;
  /** What the runtime runs, as pods with nothing but names, uid and container names: /runningpods/. */
  runningPods(signal: AbortSignal): Promise<readonly RunningPod[]>;
  /** Where the log of `container` (default: the only one) is; `previous`: of its terminated predecessor. */
  logFile(pod: PodName, container: string, options: { readonly previous?: boolean }): LogFile;
  /** URLs at the runtime's streaming server, good for one use: whoever opens it speaks SPDY/3.1 or WebSocket v4 with the container. */
  exec(pod: PodName, container: string, command: readonly string[], options: StreamOptions, signal: AbortSignal): Promise<string>;
  attach(pod: PodName, container: string, options: StreamOptions, signal: AbortSignal): Promise<string>;
  portForward(pod: PodName, ports: readonly number[], signal: AbortSignal): Promise<string>;
  /** Runs a command to its end, as /run/ does. */
  run(pod: PodName, container: string, command: readonly string[], signal: AbortSignal): Promise<ExecResult>;
  /** Writes the container's memory and processes to an archive and says where that is; 0 seconds: as long as it takes. */
  checkpoint(pod: PodName, container: string, timeoutSeconds: number, signal: AbortSignal): Promise<string>;
  /** The body of /stats/summary (stats.k8s.io/v1alpha1 Summary). */
  statsSummary(signal: AbortSignal): Promise<StatsSummary>;
  /** The body of /metrics/cadvisor. */
  cadvisorMetrics(signal: AbortSignal): Promise<string>;
  /** Undefined when all is well, else why the node is not: /healthz, /healthz/syncloop. */
  unhealthyReason(): string | undefined;
}

export interface PsiData { readonly total: number; readonly avg10: number; readonly avg60: number; readonly avg300: number }
export interface PsiStats { readonly full: PsiData; readonly some: PsiData }
export interface CpuStats { readonly time: string; readonly usageNanoCores?: number; readonly usageCoreNanoSeconds?: number; readonly psi?: PsiStats | undefined }
export interface IoStats { readonly time: string; readonly psi?: PsiStats | undefined }
export interface SwapStats { readonly time: string; readonly swapAvailableBytes?: number; readonly swapUsageBytes?: number }
export interface MemoryStats {
  readonly time: string; readonly availableBytes?: number; readonly usageBytes?: number; readonly workingSetBytes?: number; readonly rssBytes?: number;
  readonly pageFaults?: number; readonly majorPageFaults?: number; readonly psi?: PsiStats | undefined;
}
export interface FsStats {
  readonly time: string; readonly availableBytes?: number; readonly capacityBytes?: number; readonly usedBytes?: number;
  readonly inodesFree?: number; readonly inodes?: number; readonly inodesUsed?: number;
}
export interface InterfaceStats { readonly name: string; readonly rxBytes?: number; readonly rxErrors?: number; readonly txBytes?: number; readonly txErrors?: number }
export interface NetworkStats extends InterfaceStats { readonly time: string; readonly interfaces?: readonly InterfaceStats[] }
export interface ContainerStats {
  readonly name: string; readonly startTime: string; readonly cpu?: CpuStats; readonly memory?: MemoryStats; readonly rootfs?: FsStats; readonly logs?: FsStats;
  readonly io?: IoStats; readonly swap?: SwapStats;
}
export interface PodStats {
  readonly podRef: { readonly name: string; readonly namespace: string; readonly uid: string };
  readonly startTime: string; readonly containers: readonly ContainerStats[]; readonly cpu?: CpuStats; readonly memory?: MemoryStats; readonly io?: IoStats; readonly network?: NetworkStats; readonly swap?: SwapStats;
  readonly volume?: readonly (FsStats & { readonly name: string; readonly pvcRef?: { readonly name: string; readonly namespace: string }; readonly volumeHealthStats?: { readonly abnormal: boolean } })[]; readonly "ephemeral-storage"?: FsStats; readonly process_stats?: { readonly process_count: number };
}
export interface StatsSummary {
  readonly node: {
    readonly nodeName: string; readonly startTime: string; readonly cpu?: CpuStats; readonly memory?: MemoryStats; readonly io?: IoStats; readonly swap?: SwapStats; readonly network?: NetworkStats; readonly fs?: FsStats;
    readonly systemContainers?: readonly ContainerStats[]; readonly runtime?: { readonly imageFs?: FsStats; readonly containerFs?: FsStats }; readonly rlimit?: { readonly time: string; readonly maxpid?: number; readonly curproc?: number };
  };
  readonly pods: readonly PodStats[];
}
