/** What /configz shows: our settings as a kubelet.config.k8s.io/v1beta1 KubeletConfiguration, upstream's names: the defaults, over them what a file said, over that what is in force. */
import { formatDurationMs } from "../../../core/api/meta/duration.ts";
import { quantityOf } from "../../../core/api/meta/quantity.ts";
import { defaultsOf } from "../configuration/fields.ts";
import type { Amount, Threshold } from "../eviction/plan.ts";
import type { KubeletSettings } from "../settings.ts";

export function kubeletConfiguration(settings: KubeletSettings): Readonly<Record<string, unknown>> {
  const { access, imageGc, eviction, shutdown } = settings;
  const hard = eviction.thresholds.filter(({ graceMs }) => graceMs === undefined);
  const soft = eviction.thresholds.filter(({ graceMs }) => graceMs !== undefined);
  return {
    kind: "KubeletConfiguration",
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    ...defaultsOf(),
    ...settings.configuration,
    port: settings.port,
    ...(settings.staticPodDir === "" ? {} : { staticPodPath: settings.staticPodDir }),
    healthzPort: settings.healthzPort,
    healthzBindAddress: settings.healthzAddress,
    readOnlyPort: access.readOnlyPort,
    enableDebuggingHandlers: access.debugging,
    authentication: { x509: {}, ...(settings.configuration["authentication"] as object | undefined), webhook: { enabled: access.tokens, cacheTTL: formatDurationMs(access.tokenTtlMs) }, anonymous: { enabled: access.anonymous } },
    authorization: { mode: access.authorizes ? "Webhook" : "AlwaysAllow", webhook: { cacheAuthorizedTTL: formatDurationMs(access.allowedTtlMs), cacheUnauthorizedTTL: formatDurationMs(access.deniedTtlMs) } },
    clusterDomain: settings.clusterDomain,
    clusterDNS: settings.clusterDns,
    cgroupRoot: settings.cgroupRoot,
    maxPods: settings.maxPods,
    podPidsLimit: settings.podPidsLimit,
    ...(settings.podsPerCore > 0 ? { podsPerCore: settings.podsPerCore } : {}),
    resolvConf: settings.resolvConf,
    serializeImagePulls: settings.serializeImagePulls,
    ...(settings.maxParallelImagePulls === undefined ? {} : { maxParallelImagePulls: settings.maxParallelImagePulls }),
    imageGCHighThresholdPercent: imageGc.highPercent,
    imageGCLowThresholdPercent: imageGc.lowPercent,
    imageMinimumGCAge: formatDurationMs(imageGc.ageMinMs),
    imageMaximumGCAge: formatDurationMs(imageGc.ageMaxMs),
    evictionHard: texts(hard, ({ value }) => amount(value)),
    ...(soft.length > 0 ? { evictionSoft: texts(soft, ({ value }) => amount(value)), evictionSoftGracePeriod: texts(soft, ({ graceMs = 0 }) => formatDurationMs(graceMs)) } : {}),
    evictionPressureTransitionPeriod: formatDurationMs(eviction.transitionMs),
    evictionMaxPodGracePeriod: eviction.maxPodGraceSeconds,
    nodeStatusUpdateFrequency: formatDurationMs(settings.statusMs),
    nodeStatusReportFrequency: formatDurationMs(settings.reportMs),
    nodeLeaseDurationSeconds: settings.leaseSeconds,
    containerLogMaxSize: quantityOf(settings.containerLogMaxBytes, "BinarySI").toString(),
    containerLogMaxFiles: settings.containerLogMaxFiles,
    failCgroupV1: settings.failCgroupV1,
    failSwapOn: settings.failSwapOn,
    podLogsDir: settings.podLogsDir,
    seccompDefault: settings.seccompDefault,
    nodeStatusMaxImages: settings.statusImagesMax,
    ...(settings.singleProcessOomKill ? { singleProcessOOMKill: true } : {}),
    memorySwap: settings.limitedSwap ? { swapBehavior: "LimitedSwap" } : (settings.configuration["memorySwap"] ?? {}),
    crashLoopBackOff: { maxContainerRestartPeriod: formatDurationMs(settings.crashBackoffMsMax) },
    shutdownGracePeriod: formatDurationMs(shutdown.graceMs),
    shutdownGracePeriodCriticalPods: formatDurationMs(shutdown.criticalMs),
    ...(settings.allowedUnsafeSysctls.length === 0 ? {} : { allowedUnsafeSysctls: settings.allowedUnsafeSysctls }),
    registerNode: settings.registers,
    ...(settings.providerId === undefined ? {} : { providerID: settings.providerId }),
    ...(settings.taints.length === 0 ? {} : { registerWithTaints: settings.taints }),
    systemReserved: settings.reserved,
    kubeReserved: undefined, // all of it stands in systemReserved
  };
}

function texts(thresholds: readonly Threshold[], of: (threshold: Threshold) => string): Record<string, string> {
  return Object.fromEntries(thresholds.map((threshold) => [threshold.signal, of(threshold)]));
}

function amount(value: Amount): string {
  return "fraction" in value ? `${Number((value.fraction * 100).toFixed(5))}%` : quantityOf(value.bytes, "BinarySI").toString();
}
