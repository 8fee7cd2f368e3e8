/** The fields of KubeletConfiguration v1beta1, with what they hold and their defaults. Source: kubernetes v1.36 staging/src/k8s.io/kubelet/config/v1beta1/types.go, pkg/kubelet/apis/config/v1beta1/defaults.go */

export type Kind = "bool" | "int" | "string" | "duration" | "quantity" | "list" | "map";

/** name kind default; "-" has none. */
const TABLE = `
enableServer bool true
staticPodPath string -
podLogsDir string "/var/log/pods"
syncFrequency duration "1m0s"
fileCheckFrequency duration "20s"
httpCheckFrequency duration "20s"
staticPodURL string -
staticPodURLHeader map -
address string "0.0.0.0"
port int 10250
readOnlyPort int -
tlsCertFile string -
tlsPrivateKeyFile string -
tlsCipherSuites list -
tlsMinVersion string -
tlsCurvePreferences list -
rotateCertificates bool -
serverTLSBootstrap bool -
authentication map {"x509":{},"webhook":{"enabled":true,"cacheTTL":"2m0s"},"anonymous":{"enabled":false}}
authorization map {"mode":"Webhook","webhook":{"cacheAuthorizedTTL":"5m0s","cacheUnauthorizedTTL":"30s"}}
registryPullQPS int 5
registryBurst int 10
imagePullCredentialsVerificationPolicy string "NeverVerifyPreloadedImages"
preloadedImagesVerificationAllowlist list -
eventRecordQPS int 50
eventBurst int 100
enableDebuggingHandlers bool true
enableContentionProfiling bool -
healthzPort int 10248
healthzBindAddress string "127.0.0.1"
oomScoreAdj int -999
clusterDomain string -
clusterDNS list -
streamingConnectionIdleTimeout duration "4h0m0s"
nodeStatusUpdateFrequency duration "10s"
nodeStatusReportFrequency duration "5m0s"
nodeLeaseDurationSeconds int 40
imageMinimumGCAge duration "2m0s"
imageMaximumGCAge duration "0s"
imageGCHighThresholdPercent int 85
imageGCLowThresholdPercent int 80
volumeStatsAggPeriod duration "1m0s"
kubeletCgroups string -
systemCgroups string -
cgroupRoot string -
cgroupsPerQOS bool true
cgroupDriver string "cgroupfs"
cpuManagerPolicy string "none"
singleProcessOOMKill bool -
cpuManagerPolicyOptions map -
cpuManagerReconcilePeriod duration "10s"
memoryManagerPolicy string "None"
topologyManagerPolicy string "none"
topologyManagerScope string "container"
topologyManagerPolicyOptions map -
qosReserved map -
runtimeRequestTimeout duration "2m0s"
hairpinMode string "promiscuous-bridge"
maxPods int 110
podCIDR string -
podPidsLimit int -1
resolvConf string "/etc/resolv.conf"
runOnce bool -
cpuCFSQuota bool true
cpuCFSQuotaPeriod duration "100ms"
nodeStatusMaxImages int 50
maxOpenFiles int 1000000
contentType string "application/vnd.kubernetes.protobuf"
kubeAPIQPS int 50
kubeAPIBurst int 100
serializeImagePulls bool true
maxParallelImagePulls int -
evictionHard map {"imagefs.available":"15%","imagefs.inodesFree":"5%","memory.available":"100Mi","nodefs.available":"10%","nodefs.inodesFree":"5%"}
evictionSoft map -
evictionSoftGracePeriod map -
evictionPressureTransitionPeriod duration "5m0s"
evictionMaxPodGracePeriod int -
evictionMinimumReclaim map -
mergeDefaultEvictionSettings bool false
podsPerCore int -
enableControllerAttachDetach bool true
protectKernelDefaults bool -
makeIPTablesUtilChains bool true
iptablesMasqueradeBit int 14
iptablesDropBit int 15
featureGates map -
failSwapOn bool false
memorySwap map {}
containerLogMaxSize string "10Mi"
containerLogMaxFiles int 5
containerLogMaxWorkers int 1
containerLogMonitorInterval duration "10s"
configMapAndSecretChangeDetectionStrategy string "Watch"
systemReserved map -
kubeReserved map -
reservedSystemCPUs string -
showHiddenMetricsForVersion string -
systemReservedCgroup string -
kubeReservedCgroup string -
enforceNodeAllocatable list ["pods"]
allowedUnsafeSysctls list -
volumePluginDir string "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/"
providerID string -
kernelMemcgNotification bool -
logging map {"format":"json","verbosity":0}
enableSystemLogHandler bool true
enableSystemLogQuery bool false
shutdownGracePeriod duration "0s"
shutdownGracePeriodCriticalPods duration "0s"
shutdownGracePeriodByPodPriority list -
crashLoopBackOff map {}
reservedMemory list -
enableProfilingHandler bool true
enableDebugFlagsHandler bool true
seccompDefault bool false
memoryThrottlingFactor quantity 0.9
memoryReservationPolicy string "None"
registerWithTaints list -
registerNode bool true
tracing map -
localStorageCapacityIsolation bool true
containerRuntimeEndpoint string -
imageServiceEndpoint string -
failCgroupV1 bool false
userNamespaces map -
imagePullProgressDeadline duration -
`;

export function fieldsOf(): ReadonlyMap<string, Kind> {
  return new Map(rows().map(([name, kind]) => [name, kind]));
}

export function defaultsOf(): Readonly<Record<string, unknown>> {
  return Object.fromEntries(rows().flatMap(([name, , text]) => (text === "-" ? [] : [[name, JSON.parse(text) as unknown]])));
}

function rows(): [name: string, kind: Kind, text: string][] {
  return TABLE.trim().split("\n").map((line) => {
    const [name = "", kind = "", ...rest] = line.split(" ");
    return [name, kind as Kind, rest.join(" ")];
  });
}
