/** What /configz shows: our settings as a kubelet.config.k8s.io/v1beta1 KubeletConfiguration, upstream's names: the defaults, over them what a file said, over that what is in force. */
import { quantityOf } from "../../../core/api/meta/quantity.ts";
import { defaultsOf } from "../configuration/fields.ts";
import { formatGoDuration } from "../configuration/go-duration.ts";
import type { Amount, Threshold } from "../eviction/plan.ts";
import type { KubeletSettings } from "../settings.ts";

export function kubeletConfiguration(settings: KubeletSettings): Readonly<Record<string, unknown>> {
  const { imageGc, eviction, shutdown, callers } = settings;
  const hard = eviction.thresholds.filter(({ graceMs }) => graceMs === undefined);
  const soft = eviction.thresholds.filter(({ graceMs }) => graceMs !== undefined);
  return {
    kind: "KubeletConfiguration",
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    ...defaultsOf(),
    ...settings.configuration,
    authentication: {
      x509: (settings.configuration["authentication"] as { readonly x509?: object } | undefined)?.x509 ?? {}, webhook: { enabled: true, cacheTTL: formatGoDuration(callers.tokenMs) }, anonymous: { enabled: false },
    },
    authorization: { mode: "Webhook", webhook: { cacheAuthorizedTTL: formatGoDuration(callers.allowedMs), cacheUnauthorizedTTL: formatGoDuration(callers.deniedMs) } },
    port: settings.port,
    ...(settings.staticPodDir === "" ? {} : { staticPodPath: settings.staticPodDir }),
    healthzPort: settings.healthzPort,
    healthzBindAddress: settings.healthzAddress,
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
    imageMinimumGCAge: formatGoDuration(imageGc.ageMinMs),
    imageMaximumGCAge: formatGoDuration(imageGc.ageMaxMs),
    evictionHard: texts(hard, ({ value }) => amount(value)),
    ...(soft.length > 0 ? { evictionSoft: texts(soft, ({ value }) => amount(value)), evictionSoftGracePeriod: texts(soft, ({ graceMs = 0 }) => formatGoDuration(graceMs)) } : {}),
    evictionPressureTransitionPeriod: formatGoDuration(eviction.transitionMs),
    evictionMaxPodGracePeriod: eviction.maxPodGraceSeconds,
    nodeStatusUpdateFrequency: formatGoDuration(settings.statusMs),
    nodeStatusReportFrequency: formatGoDuration(settings.reportMs),
    nodeLeaseDurationSeconds: settings.leaseSeconds,
    containerLogMaxSize: quantityOf(settings.containerLogMaxBytes, "BinarySI").toString(),
    containerLogMaxFiles: settings.containerLogMaxFiles,
    failCgroupV1: settings.failCgroupV1,
    failSwapOn: settings.failSwapOn,
    podLogsDir: settings.podLogsDir,
    seccompDefault: settings.seccompDefault,
    nodeStatusMaxImages: settings.statusImagesMax,
    ...(settings.singleProcessOomKill ? { singleProcessOOMKill: true } : {}),
    memorySwap: settings.limitedSwap ? { swapBehavior: "LimitedSwap" } : {},
    crashLoopBackOff: { maxContainerRestartPeriod: formatGoDuration(settings.crashBackoffMsMax) },
    shutdownGracePeriod: formatGoDuration(shutdown.graceMs),
    shutdownGracePeriodCriticalPods: formatGoDuration(shutdown.criticalMs),
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
