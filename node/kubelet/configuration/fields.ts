/**
 * The fields of KubeletConfiguration v1beta1: what they hold, down to the last, and their defaults.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/kubelet/config/v1beta1/types.go, pkg/kubelet/apis/config/v1beta1/defaults.go, component-base/{logs,tracing}/api/v1/types.go
 */
import { Facts, type StructType, type Type } from "../../../core/api/schema/facts.ts";

/** As flags write them. */
export type Kind = "bool" | "int" | "float" | "string" | "duration" | "list" | "map";

/** name type default; "-" has none. Types are written as in core/api/schema/facts.ts. */
const TABLE = `
enableServer b true
staticPodPath s -
podLogsDir s "/var/log/pods"
syncFrequency m.Duration "1m0s"
fileCheckFrequency m.Duration "20s"
httpCheckFrequency m.Duration "20s"
staticPodURL s -
staticPodURLHeader {}[]s -
address s "0.0.0.0"
port i 10250
readOnlyPort i -
tlsCertFile s -
tlsPrivateKeyFile s -
tlsCipherSuites []s -
tlsMinVersion s -
tlsCurvePreferences []i -
rotateCertificates b -
serverTLSBootstrap b -
authentication KubeletAuthentication {"x509":{},"webhook":{"enabled":true,"cacheTTL":"2m0s"},"anonymous":{"enabled":false}}
authorization KubeletAuthorization {"mode":"Webhook","webhook":{"cacheAuthorizedTTL":"5m0s","cacheUnauthorizedTTL":"30s"}}
registryPullQPS i 5
registryBurst i 10
imagePullCredentialsVerificationPolicy ImagePullCredentialsVerificationPolicy "NeverVerifyPreloadedImages"
preloadedImagesVerificationAllowlist []s -
eventRecordQPS i 50
eventBurst i 100
enableDebuggingHandlers b true
enableContentionProfiling b -
healthzPort i 10248
healthzBindAddress s "127.0.0.1"
oomScoreAdj i -999
clusterDomain s -
clusterDNS []s -
streamingConnectionIdleTimeout m.Duration "4h0m0s"
nodeStatusUpdateFrequency m.Duration "10s"
nodeStatusReportFrequency m.Duration "5m0s"
nodeLeaseDurationSeconds i 40
imageMinimumGCAge m.Duration "2m0s"
imageMaximumGCAge m.Duration "0s"
imageGCHighThresholdPercent i 85
imageGCLowThresholdPercent i 80
volumeStatsAggPeriod m.Duration "1m0s"
kubeletCgroups s -
systemCgroups s -
cgroupRoot s -
cgroupsPerQOS b true
cgroupDriver s "cgroupfs"
cpuManagerPolicy s "none"
singleProcessOOMKill b -
cpuManagerPolicyOptions {}s -
cpuManagerReconcilePeriod m.Duration "10s"
memoryManagerPolicy s "None"
topologyManagerPolicy s "none"
topologyManagerScope s "container"
topologyManagerPolicyOptions {}s -
qosReserved {}s -
runtimeRequestTimeout m.Duration "2m0s"
hairpinMode s "promiscuous-bridge"
maxPods i 110
podCIDR s -
podPidsLimit l -1
resolvConf s "/etc/resolv.conf"
runOnce b -
cpuCFSQuota b true
cpuCFSQuotaPeriod m.Duration "100ms"
nodeStatusMaxImages i 50
maxOpenFiles l 1000000
contentType s "application/vnd.kubernetes.protobuf"
kubeAPIQPS i 50
kubeAPIBurst i 100
serializeImagePulls b true
maxParallelImagePulls i -
evictionHard {}s {"imagefs.available":"15%","imagefs.inodesFree":"5%","memory.available":"100Mi","nodefs.available":"10%","nodefs.inodesFree":"5%"}
evictionSoft {}s -
evictionSoftGracePeriod {}s -
evictionPressureTransitionPeriod m.Duration "5m0s"
evictionMaxPodGracePeriod i -
evictionMinimumReclaim {}s -
mergeDefaultEvictionSettings b false
podsPerCore i -
enableControllerAttachDetach b true
protectKernelDefaults b -
makeIPTablesUtilChains b true
iptablesMasqueradeBit i 14
iptablesDropBit i 15
featureGates {}b -
failSwapOn b false
memorySwap MemorySwapConfiguration {}
containerLogMaxSize s "10Mi"
containerLogMaxFiles i 5
containerLogMaxWorkers i 1
containerLogMonitorInterval m.Duration "10s"
configMapAndSecretChangeDetectionStrategy ResourceChangeDetectionStrategy "Watch"
systemReserved {}s -
kubeReserved {}s -
reservedSystemCPUs s -
showHiddenMetricsForVersion s -
systemReservedCgroup s -
kubeReservedCgroup s -
enforceNodeAllocatable []s ["pods"]
allowedUnsafeSysctls []s -
volumePluginDir s "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/"
providerID s -
kernelMemcgNotification b -
logging logs/v1.LoggingConfiguration {"format":"json","verbosity":0}
enableSystemLogHandler b true
enableSystemLogQuery b false
shutdownGracePeriod m.Duration "0s"
shutdownGracePeriodCriticalPods m.Duration "0s"
shutdownGracePeriodByPodPriority []ShutdownGracePeriodByPodPriority -
crashLoopBackOff CrashLoopBackOffConfig {}
reservedMemory []MemoryReservation -
enableProfilingHandler b true
enableDebugFlagsHandler b true
seccompDefault b false
memoryThrottlingFactor f 0.9
memoryReservationPolicy MemoryReservationPolicy "None"
registerWithTaints []core/v1.Taint -
registerNode b true
tracing tracing/v1.TracingConfiguration -
localStorageCapacityIsolation b true
containerRuntimeEndpoint s -
imageServiceEndpoint s -
failCgroupV1 b false
userNamespaces UserNamespaces -
imagePullProgressDeadline m.Duration -
`;

/** Of what fields hold, in packages that Go's errors name. */
const TYPES = `P kubelet/config/v1beta1
T KubeletAuthentication
 x509 - KubeletX509Authentication
 webhook - KubeletWebhookAuthentication
 anonymous - KubeletAnonymousAuthentication
T KubeletX509Authentication
 clientCAFile - s
T KubeletWebhookAuthentication
 enabled - b
 cacheTTL - m.Duration
T KubeletAnonymousAuthentication
 enabled - b
T KubeletAuthorization
 mode - KubeletAuthorizationMode
 webhook - KubeletWebhookAuthorization
T KubeletWebhookAuthorization
 cacheAuthorizedTTL - m.Duration
 cacheUnauthorizedTTL - m.Duration
T MemoryReservation
 numaNode - i
 limits - {}resource.Quantity
T ShutdownGracePeriodByPodPriority
 priority - i
 shutdownGracePeriodSeconds - l
T MemorySwapConfiguration
 swapBehavior - s
T CrashLoopBackOffConfig
 maxContainerRestartPeriod - m.Duration
T UserNamespaces
 idsPerPod - l
A KubeletAuthorizationMode s
A ResourceChangeDetectionStrategy s
A ImagePullCredentialsVerificationPolicy s
A MemoryReservationPolicy s
P api/core/v1
T Taint
 key - s
 value - s
 effect - TaintEffect
 timeAdded - m.Time
A TaintEffect s
P api/tracing/v1
T TracingConfiguration
 endpoint - s
 samplingRatePerMillion - i
P api/logs/v1
T LoggingConfiguration
 format - s
 flushFrequency - any
 verbosity - VerbosityLevel
 vmodule - VModuleConfiguration
 options - FormatOptions
T FormatOptions
 text - OutputRoutingOptions
 json - OutputRoutingOptions
T OutputRoutingOptions
 splitStream - b
 infoBufferSize - resource.Quantity
A VModuleConfiguration []VModuleItem
T VModuleItem
 filePattern - s
 verbosity - VerbosityLevel
A VerbosityLevel i
`;

/** A document without its kind and version. */
export function configurationType(): StructType {
  const own = rows().map(([name, type]) => ` ${name} - ${type}`).join("\n");
  return new Facts([`${TYPES}P kubelet/config/v1beta1\nT KubeletConfiguration\n${own}`]).structNamed("io.k8s.kubelet.config.v1beta1.KubeletConfiguration")!;
}

export function fieldsOf(): ReadonlyMap<string, Kind> {
  return new Map(configurationType().fields.map(({ name, type }) => [name, kindOf(type)]));
}

function kindOf(type: Type): Kind {
  switch (type.kind) {
    case "list": return "list";
    case "map": case "struct": return "map";
    case "special": return "duration"; // there is no other of them
    case "scalar": return SCALARS[type.scalar];
  }
}

const SCALARS = { string: "string", bytes: "string", bool: "bool", int32: "int", int64: "int", float64: "float" } as const;

export function defaultsOf(): Readonly<Record<string, unknown>> {
  return Object.fromEntries(rows().flatMap(([name, , text]) => (text === "-" ? [] : [[name, JSON.parse(text) as unknown]])));
}

function rows(): [name: string, type: string, text: string][] {
  return TABLE.trim().split("\n").map((line) => {
    const [name = "", type = "", ...rest] = line.split(" ");
    return [name, type, rest.join(" ")];
  });
}
