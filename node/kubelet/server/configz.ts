/** What /configz shows: our settings as a kubelet.config.k8s.io/v1beta1 KubeletConfiguration, upstream's names. */
import type { KubeletSettings } from "../settings.ts";

export function kubeletConfiguration(settings: KubeletSettings): Readonly<Record<string, unknown>> {
  return {
    port: settings.port,
    ...(settings.staticPodDir === "" ? {} : { staticPodPath: settings.staticPodDir }),
    authentication: { x509: {}, webhook: { enabled: true, cacheTTL: "2m0s" }, anonymous: { enabled: false } },
    authorization: { mode: "Webhook", webhook: { cacheAuthorizedTTL: "5m0s", cacheUnauthorizedTTL: "30s" } },
    healthzPort: settings.healthzPort,
    healthzBindAddress: settings.healthzAddress,
    clusterDomain: settings.clusterDomain,
    clusterDNS: settings.clusterDns,
    cgroupRoot: settings.cgroupRoot,
    cgroupDriver: "cgroupfs",
    maxPods: settings.maxPods,
    podPidsLimit: settings.podPidsLimit,
    resolvConf: settings.resolvConf,
    serializeImagePulls: settings.serializeImagePulls,
    containerLogMaxSize: String(settings.containerLogMaxBytes),
    containerLogMaxFiles: settings.containerLogMaxFiles,
    podLogsDir: settings.podLogsDir,
    seccompDefault: settings.seccompDefault,
    ...(settings.allowedUnsafeSysctls.length === 0 ? {} : { allowedUnsafeSysctls: settings.allowedUnsafeSysctls }),
    ...(settings.providerId === undefined ? {} : { providerID: settings.providerId }),
    ...(settings.taints.length === 0 ? {} : { registerWithTaints: settings.taints }),
    systemReserved: settings.reserved,
    registerNode: true,
    enableServer: true,
    enableDebuggingHandlers: true,
    enableSystemLogHandler: true,
    enableSystemLogQuery: false,
  };
}
