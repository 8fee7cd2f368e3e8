import { expect, test } from "vitest";
import { percent } from "../eviction/plan.ts";
import { allocatableOf } from "../node/capacity.ts";
import { kubeletConfiguration } from "../server/configz.ts";
import { KUBELET_DEFAULTS, type KubeletSettings } from "../settings.ts";
import { fieldsOf } from "./fields.ts";
import { applyConfiguration, mergeConfigurations } from "./decode.ts";
import { withoutEffect } from "./without-effect.ts";

const head = { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" };
const base = { ...KUBELET_DEFAULTS, nodeName: "n", nodeIps: [], hostname: "n", version: "v1.36.0" } satisfies KubeletSettings;
const applied = (...values: object[]) => applyConfiguration(base, mergeConfigurations(values.map((value, i) => ({ path: `/etc/${i}.conf`, value: { ...head, ...value } }))), { os: "linux" });

test("drop-ins lie over the file: maps are merged, lists and scalars replaced", () => {
  const settings = applied({ maxPods: 50, evictionHard: { "memory.available": "1Gi", "nodefs.available": "5%" }, allowedUnsafeSysctls: ["a", "b"] }, { maxPods: 60, evictionHard: { "memory.available": "200Mi" }, allowedUnsafeSysctls: ["c"] });
  expect([settings.maxPods, settings.allowedUnsafeSysctls]).toEqual([60, ["c"]]);
  expect(settings.eviction.thresholds).toEqual([{ signal: "memory.available", value: { bytes: 200 * 1024 ** 2 } }, { signal: "nodefs.available", value: percent(5) }]);
  expect(kubeletConfiguration(settings)).toMatchObject({ maxPods: 60, evictionHard: { "memory.available": "200Mi", "nodefs.available": "5%" }, syncFrequency: "1m0s", imageGCHighThresholdPercent: 85 });
});

test("of a container that takes too much memory one process may end, or all", () => {
  expect([applied({}).singleProcessOomKill, applied({ singleProcessOOMKill: false }).singleProcessOomKill]).toEqual([false, false]);
  expect(kubeletConfiguration(applied({ singleProcessOOMKill: true }))).toMatchObject({ singleProcessOOMKill: true });
});

test("how often things are looked at, and for how long others may be silent", () => {
  const { syncMs, fileCheckMs, containerLogMs, containerLogWorkers, streamIdleMs, runtimeTimeoutMs, volumeStatsMs, cpuQuota, oomScoreAdjust, failCgroupV1, servesLogs } = applied({
    syncFrequency: "30s", fileCheckFrequency: "5s", containerLogMonitorInterval: "3s", containerLogMaxWorkers: 4, streamingConnectionIdleTimeout: "1m", runtimeRequestTimeout: "10m", volumeStatsAggPeriod: "-1s",
    cpuCFSQuota: false, cpuCFSQuotaPeriod: "5ms", oomScoreAdj: -500, failCgroupV1: true, enableSystemLogHandler: false, qosReserved: {},
  });
  expect([syncMs, fileCheckMs, containerLogMs, containerLogWorkers, streamIdleMs, runtimeTimeoutMs, volumeStatsMs]).toEqual([30_000, 5_000, 3_000, 4, 60_000, 600_000, -1_000]);
  expect([cpuQuota, oomScoreAdjust, failCgroupV1, servesLogs]).toEqual([{ on: false, periodUs: 5_000 }, -500, true, false]);
});

test("a zero is no wish where upstream takes it for none, as in the files that tools write", () => {
  const zeros = Object.fromEntries(["cpuManagerReconcilePeriod", "evictionPressureTransitionPeriod", "fileCheckFrequency", "httpCheckFrequency", "imageMinimumGCAge", "imageMaximumGCAge", "nodeStatusReportFrequency", "nodeStatusUpdateFrequency", "runtimeRequestTimeout", "shutdownGracePeriod", "shutdownGracePeriodCriticalPods", "streamingConnectionIdleTimeout", "syncFrequency", "volumeStatsAggPeriod"].map((name) => [name, "0s"]));
  const { configuration: _, ...plain } = applied({});
  const { configuration, ...zeroed } = applied({ ...zeros, maxPods: 0, port: 0, nodeLeaseDurationSeconds: 0, cpuManagerPolicy: "", topologyManagerPolicy: "", containerLogMaxSize: "", memorySwap: {}, containerRuntimeEndpoint: "", shutdownGracePeriodByPodPriority: [] });
  expect(zeroed).toEqual(plain);
  expect(configuration).not.toHaveProperty("syncFrequency");
  const written = ["0", "+0", "-0", "0h0m", "0.0s"].map((zero) => applied({ syncFrequency: zero, streamingConnectionIdleTimeout: zero, nodeStatusUpdateFrequency: zero }));
  for (const { syncMs, streamIdleMs, statusMs } of written) expect([syncMs, streamIdleMs, statusMs]).toEqual([60_000, 14_400_000, 10_000]);
});

test("null is no wish, wherever it stands, and in a map it is what the type has of nothing", () => {
  const { configuration: _, ...plain } = applied({ registerWithTaints: [{ key: "a", effect: "NoSchedule" }], featureGates: {} });
  const nulls = {
    authentication: { webhook: { cacheTTL: null, enabled: null }, anonymous: null, x509: null }, authorization: { mode: null, webhook: { cacheAuthorizedTTL: null } }, memorySwap: { swapBehavior: null }, userNamespaces: { idsPerPod: null }, crashLoopBackOff: null,
    logging: { flushFrequency: null, options: null }, tracing: { endpoint: null }, evictionSoft: null, registerWithTaints: [{ key: "a", effect: "NoSchedule", value: null, timeAdded: null }],
  };
  const { configuration, ...read } = applied(nulls);
  expect(read).toEqual(plain);
  expect(configuration?.["userNamespaces"]).toEqual({});
  expect(() => applied({ evictionHard: { "memory.available": null } })).toThrow("quantities must match the regular expression");
  expect(applied({ evictionSoft: { "memory.available": "1Gi" }, evictionSoftGracePeriod: { "memory.available": "1m" } }, { evictionSoft: { "memory.available": null } }).eviction.thresholds.some(({ graceMs }) => graceMs)).toBe(false);
});

test("durations are told as Go prints them", () => {
  expect(kubeletConfiguration(applied({ syncFrequency: "90m", fileCheckFrequency: "1500ms", volumeStatsAggPeriod: "-90s", httpCheckFrequency: "1.5us" }))).toMatchObject({ syncFrequency: "1h30m0s", fileCheckFrequency: "1.5s", volumeStatsAggPeriod: "-1m30s", httpCheckFrequency: "1.5µs" });
});

test("what is said of swap is told again; pods that are evicted softly may be told to end at once", () => {
  expect([{}, { swapBehavior: "NoSwap" }, { swapBehavior: "LimitedSwap" }].map((memorySwap) => kubeletConfiguration(applied({ memorySwap }))["memorySwap"])).toEqual([{}, { swapBehavior: "NoSwap" }, { swapBehavior: "LimitedSwap" }]);
  expect(applied({ evictionMaxPodGracePeriod: -1 }).eviction.maxPodGraceSeconds).toBe(-1);
});

test("patterns of images are not looked at where they may not be given", () => {
  expect(() => applied({ preloadedImagesVerificationAllowlist: ["a/b:1"] })).toThrow(/^[^[]*is not "NeverVerifyAllowlistedImages"$/);
});

test("how long what is known of callers holds", () => {
  const given = { authentication: { x509: { clientCAFile: "/ca" }, webhook: { cacheTTL: "10s" } }, authorization: { webhook: { cacheAuthorizedTTL: "1m", cacheUnauthorizedTTL: "0s" } } };
  expect(applied(given).access).toEqual({ ...base.access, tokenTtlMs: 10_000, allowedTtlMs: 60_000 });
  expect(kubeletConfiguration(applied(given))).toMatchObject({ authentication: { x509: { clientCAFile: "/ca" }, webhook: { enabled: true, cacheTTL: "10s" }, anonymous: { enabled: false } }, authorization: { mode: "Webhook", webhook: { cacheAuthorizedTTL: "1m0s", cacheUnauthorizedTTL: "30s" } } });
});

test("some defaults hang on other fields", () => {
  expect([applied({ nodeStatusUpdateFrequency: "1m" }).reportMs, applied({ nodeStatusUpdateFrequency: "1m", nodeStatusReportFrequency: "3m" }).reportMs, applied({}).reportMs]).toEqual([60_000, 180_000, 300_000]);
  expect([applied({ maxParallelImagePulls: 3 }).serializeImagePulls, applied({ maxParallelImagePulls: 1 }).serializeImagePulls]).toEqual([false, true]);
  expect(applied({ podPidsLimit: -7 }).podPidsLimit).toBe(-1);
  expect(applied({ shutdownGracePeriod: "10s", shutdownGracePeriodByPodPriority: [] }).shutdown.graceMs).toBe(10_000);
  expect(applied({ featureGates: { KubeletEnsureSecretPulledImages: false } }).pullVerification.policy).toBe("NeverVerify");
});

test("a drop-in takes back what is said below it with null", () => {
  expect(applied({ maxPods: 50, evictionHard: { "memory.available": "1Gi", "nodefs.available": "5%" } }, { maxPods: null, evictionHard: { "nodefs.available": null } })).toMatchObject({ maxPods: 110, eviction: { thresholds: [{ signal: "memory.available" }] } });
});

test("images with somebody else than the runtime, and how changes of ConfigMaps and Secrets are seen", () => {
  expect(applied({})).toMatchObject({ imageServiceEndpoint: "", readsObjectsAnew: false });
  expect(applied({ imageServiceEndpoint: "unix:///run/images.sock", configMapAndSecretChangeDetectionStrategy: "Get" })).toMatchObject({ imageServiceEndpoint: "unix:///run/images.sock", readsObjectsAnew: true });
  for (const strategy of ["Watch", "Cache"]) expect(applied({ configMapAndSecretChangeDetectionStrategy: strategy }).readsObjectsAnew).toBe(false);
  expect(() => applied({ configMapAndSecretChangeDetectionStrategy: "Guess" })).toThrow("configMapAndSecretChangeDetectionStrategy");
});

test("what changes nothing is told, unless it is as upstream has it anyway", () => {
  const fields = (given: object) => withoutEffect(applied(given).configuration).map(({ field }) => field);
  expect(fields({ rotateCertificates: true, kubeAPIQPS: 100, kubeAPIBurst: 100, hairpinMode: "hairpin-veth", staticPodURLHeader: {}, volumePluginDir: "", syncFrequency: "30s" })).toEqual(["rotateCertificates", "kubeAPIQPS", "hairpinMode"]);
  expect(fields({ authentication: { x509: { clientCAFile: "/etc/kubernetes/pki/ca.crt" } } })).toEqual(["authentication.x509.clientCAFile"]);
  expect(fields({})).toEqual([]);
});

test("each field of upstream's is obeyed, refused, or told to change nothing", async () => {
  const sources = (await Promise.all([...new Bun.Glob("*.ts").scanSync({ cwd: import.meta.dirname })].filter((name) => !/test|fields/.test(name)).map((name) => Bun.file(`${import.meta.dirname}/${name}`).text()))).join("\n");
  const elsewhere = ["enableSystemLogQuery" /* server/routes.ts */, "enableServer", "cgroupDriver", "enableProfilingHandler", "enableDebugFlagsHandler" /* neither is served */];
  expect([...fieldsOf().keys()].filter((field) => !elsewhere.includes(field) && !new RegExp(`\\b${field}\\b`).test(sources))).toEqual([]);
});

test("what is as it is with us may be said", () => {
  expect(() => applied({ authentication: { anonymous: { enabled: false }, webhook: { enabled: true, cacheTTL: "2m0s" }, x509: { clientCAFile: "/etc/kubernetes/pki/ca.crt" } }, authorization: { mode: "Webhook" }, address: "0.0.0.0", enableDebuggingHandlers: true })).not.toThrow();
});

test("who may ask the kubelet, and for what", () => {
  expect(applied({}).access).toEqual(base.access);
  expect(applied({ authentication: { anonymous: { enabled: true }, webhook: { enabled: false, cacheTTL: "1m" } }, authorization: { mode: "AlwaysAllow", webhook: { cacheAuthorizedTTL: "0s", cacheUnauthorizedTTL: "5s" } }, enableDebuggingHandlers: false, readOnlyPort: 10_255 }).access)
    .toEqual({ anonymous: true, tokens: false, authorizes: false, tokenTtlMs: 60_000, allowedTtlMs: 300_000, deniedTtlMs: 5_000, debugging: false, readOnlyPort: 10_255 });
});

test("soft thresholds, their grace, and what must be reclaimed", () => {
  const { eviction } = applied({ mergeDefaultEvictionSettings: true, evictionHard: { "memory.available": "0%" }, evictionSoft: { "memory.available": "1.5Gi" }, evictionSoftGracePeriod: { "memory.available": "1m30s" }, evictionMinimumReclaim: { "nodefs.available": "500Mi" }, evictionMaxPodGracePeriod: 30 });
  expect(eviction.thresholds.find(({ graceMs }) => graceMs !== undefined)).toEqual({ signal: "memory.available", value: { bytes: 1.5 * 1024 ** 3 }, graceMs: 90_000 });
  expect(eviction.thresholds.filter(({ signal, graceMs }) => signal === "memory.available" && graceMs === undefined)).toEqual([]);
  expect(applied({ evictionHard: { "memory.available": "1G" } }).eviction.thresholds).toEqual([{ signal: "memory.available", value: { bytes: 1e9, isDecimal: true } }]);
  expect(eviction.thresholds.find(({ signal }) => signal === "nodefs.available")).toMatchObject({ value: percent(10), minReclaim: { bytes: 500 * 1024 ** 2 } });
  expect(eviction.maxPodGraceSeconds).toBe(30);
});

test.each(["0%", "100%"])("a soft threshold of %s is none, and needs no grace", (text) => {
  expect(applied({ evictionHard: { "memory.available": text }, evictionSoft: { "memory.available": text } }).eviction.thresholds).toEqual([]);
});

test("on Windows more memory is kept free, and no inodes are, also beside other settings", () => {
  const windows = (value: object): Record<string, unknown> => Object.fromEntries(applyConfiguration(base, value as Record<string, unknown>, { os: "windows" }).eviction.thresholds.map(({ signal, value: amount }) => [signal, amount]));
  const defaults = { "memory.available": { bytes: 500 * 1024 ** 2 }, "nodefs.available": percent(10), "imagefs.available": percent(15) };
  expect(windows({ maxPods: 50 })).toEqual(defaults);
  expect(windows({ evictionHard: { "nodefs.available": "5%" }, mergeDefaultEvictionSettings: true })).toEqual({ ...defaults, "nodefs.available": percent(5) });
  const memory = (os: "linux" | "windows", memoryBytes: number) => allocatableOf({ machine: { os, cpus: 1, memoryBytes, hugepages: [] }, diskBytes: 0, maxPods: 1, reserved: {} })["memory"];
  expect([memory("linux", 1024 ** 3), memory("windows", 1024 ** 3)]).toEqual(["924Mi", "524Mi"]);
});

test.each([
  [{ imageGCHighThresholdPercent: 200 }, "invalid configuration: imageGCHighThresholdPercent (--image-gc-high-threshold) 200 must be between 0 and 100, inclusive"],
  [{ imageGCHighThresholdPercent: 50 }, "invalid configuration: imageGCLowThresholdPercent (--image-gc-low-threshold) 80 must be less than imageGCHighThresholdPercent (--image-gc-high-threshold) 50"],
  [{ serializeImagePulls: true, maxParallelImagePulls: 3 }, "invalid configuration: maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls (--serialize-image-pulls) is set to false"],
  [{ shutdownGracePeriod: "10s", shutdownGracePeriodCriticalPods: "20s" }, "invalid configuration: shutdownGracePeriodCriticalPods {20s} must be <= shutdownGracePeriod {10s}"],
  [{ imageMinimumGCAge: "90m", imageMaximumGCAge: "80m" }, "invalid configuration: imageMaximumGCAge 1h20m0s must be greater than imageMinimumGCAge 1h30m0s"],
  [{ containerLogMaxFiles: 1 }, "invalid configuration: containerLogMaxFiles must be greater than 1"],
  [{ syncFrequency: "5 minutes" }, `error: failed to decode: time: unknown unit " minutes" in duration "5 minutes"`],
  [{ shutdownGracePeriod: "10ms" }, "invalid configuration: shutdownGracePeriod {10ms} must be either zero or otherwise >= 1 sec"],
  [{ shutdownGracePeriod: "10s", shutdownGracePeriodByPodPriority: [{ priority: 0, shutdownGracePeriodSeconds: 5 }] }, "invalid configuration: Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time"],
  [{ memorySwap: { swapBehavior: "Lots" } }, `invalid configuration: memorySwap.swapBehavior "Lots" must be one of: "", "LimitedSwap" or "NoSwap"`],
  [{ maxpods: 3 }, `strict decoding error: unknown field "maxpods"`],
  [{ maxPods: "3" }, "json: cannot unmarshal string into Go struct field KubeletConfiguration.maxPods of type int32"],
  [{ maxPods: 3e9 }, "json: cannot unmarshal number 3000000000 into Go struct field KubeletConfiguration.maxPods of type int32"],
  [{ authentication: { anonymous: { enabled: "false" } } }, "error: failed to decode: json: cannot unmarshal string into Go struct field KubeletAnonymousAuthentication.authentication.anonymous.enabled of type bool"],
  [{ authentication: { anonymos: { enabled: false } } }, 'error: strict decoding error: unknown field "authentication.anonymos"'],
  [{ authentication: { webhook: { cacheTTL: 5 } } }, "json: cannot unmarshal number into Go struct field KubeletWebhookAuthentication.authentication.webhook.cacheTTL of type string"],
  [{ authentication: [] }, "json: cannot unmarshal array into Go struct field KubeletConfiguration.authentication of type v1beta1.KubeletAuthentication"],
  [{ memorySwap: { swapBehaviour: "LimitedSwap" }, logging: { verbosty: 2 } }, 'strict decoding error: unknown field "memorySwap.swapBehaviour", unknown field "logging.verbosty"'],
  [{ featureGates: { GracefulNodeShutdown: "false" } }, "json: cannot unmarshal string into Go struct field KubeletConfiguration.featureGates of type bool"],
  [{ evictionHard: { "memory.available": 100 } }, "json: cannot unmarshal number into Go struct field KubeletConfiguration.evictionHard of type string"],
  [{ clusterDNS: [10] }, "json: cannot unmarshal number into Go struct field KubeletConfiguration.clusterDNS of type string"],
  [{ shutdownGracePeriodByPodPriority: [1] }, "json: cannot unmarshal number into Go struct field KubeletConfiguration.shutdownGracePeriodByPodPriority of type v1beta1.ShutdownGracePeriodByPodPriority"],
  [{ shutdownGracePeriodByPodPriority: [{ priority: 1, shutdownGracePeriodSecond: 10 }] }, 'unknown field "shutdownGracePeriodByPodPriority[0].shutdownGracePeriodSecond"'],
  [{ reservedMemory: [{ numaNode: 0, limits: { memory: "x" } }] }, "error: failed to decode: quantities must match the regular expression"],
  [{ memoryThrottlingFactor: "0.8" }, "json: cannot unmarshal string into Go struct field KubeletConfiguration.memoryThrottlingFactor of type float64"],
  [{ evictionSoft: { "memory.available": "1Gi" } }, "grace period must be specified for the soft eviction threshold memory.available"],
  [{ evictionHard: { "memory.free": "1Gi" } }, "unsupported eviction signal memory.free"],
  [{ evictionHard: { constructor: "1Gi" } }, "unsupported eviction signal constructor"],
  [{ evictionHard: { "memory.available": "0" } }, "eviction threshold memory.available must be positive: 0"],
  [{ evictionHard: { "memory.available": "-5%" } }, "eviction percentage threshold memory.available must be >= 0%: -5%"],
  [{ evictionHard: { "memory.available": "10..5%" } }, 'strconv.ParseFloat: parsing "10..5": invalid syntax'],
  [{ evictionHard: { "memory.available": "%" } }, 'strconv.ParseFloat: parsing "": invalid syntax'],
  [{ evictionSoft: { "memory.available": "-150Mi" } }, "eviction threshold memory.available must be positive: -150Mi"],
  [{ evictionMinimumReclaim: { "memory.available": "a%" } }, 'strconv.ParseFloat: parsing "a": invalid syntax'],
  [{ evictionHard: { "memory.available": "150%" } }, "eviction percentage threshold memory.available must be <= 100%: 150%"],
  [{ evictionSoftGracePeriod: { "memory.free": "1m" } }, "unsupported eviction signal memory.free"],
  [{ evictionSoftGracePeriod: { "memory.available": "-1m" } }, "invalid eviction grace period specified: -1m, must be a positive value"],
  [{ evictionMinimumReclaim: { "memory.free": "1Gi" } }, "unsupported eviction signal memory.free"],
  [{ evictionMinimumReclaim: { "nodefs.available": "-1Gi" } }, "negative eviction minimum reclaim specified for nodefs.available"],
  [{ evictionMinimumReclaim: { "nodefs.available": "0%" } }, "eviction percentage minimum reclaim nodefs.available must be positive: 0%"],
  [{ topologyManagerPolicy: "numa" }, `invalid configuration: topologyManagerPolicy (--topology-manager-policy) "numa" must be one of: ["none" "best-effort" "restricted" "single-numa-node"]`],
  [{ userNamespaces: { idsPerPod: 70_000 } }, "invalid configuration: userNamespaces.idsPerPod must be a multiple of 65536"],
  [{ topologyManagerScope: "node" }, `invalid configuration: topologyManagerScope (--topology-manager-scope) "node" must be one of: "container", or "pod"`],
  [{ reservedSystemCPUs: "1-" }, `invalid configuration: unable to parse reservedSystemCPUs (--reserved-cpus) 1-, error: strconv.Atoi: parsing "": invalid syntax`],
  [{ reservedMemory: [{ numaNode: 0, limits: { memory: "1Gi" } }, { numaNode: 0, limits: { memory: "1Gi", cpu: "1" } }] }, `invalid configuration: the reserved memory has a duplicate value for NUMA node 0 and resource "memory", invalid configuration: the limit type "cpu" for NUMA node 0 is not supported, only [memory hugepages-<HugePageSize>] is accepted`],
  [{ enforceNodeAllocatable: ["pods", "system-reserved"] }, 'invalid configuration: systemReservedCgroup (--system-reserved-cgroup) must be specified when "system-reserved" or "system-reserved-compressible" included in enforceNodeAllocatable (--enforce-node-allocatable)'],
  [{ enforceNodeAllocatable: ["kube-reserved-compressible"] }, 'invalid configuration: kubeReservedCgroup (--kube-reserved-cgroup) must be specified when "kube-reserved" or "kube-reserved-compressible" included in enforceNodeAllocatable (--enforce-node-allocatable)'],
  [{ enforceNodeAllocatable: ["pods", "none"] }, 'invalid configuration: enforceNodeAllocatable (--enforce-node-allocatable) may not contain additional enforcements when "none" is specified'],
  [{ enforceNodeAllocatable: ["pods", "pods"] }, 'invalid configuration: duplicated enforcements "pods" in enforceNodeAllocatable (--enforce-node-allocatable)'],
  [{ enforceNodeAllocatable: ["nodes"] }, 'invalid configuration: option "nodes" specified for enforceNodeAllocatable (--enforce-node-allocatable). Valid options are "pods", "system-reserved", "system-reserved-compressible", "kube-reserved", "kube-reserved-compressible" or "none"'],
  [{ cgroupDriver: "systemd" }, `cgroupDriver "systemd" is not supported by this kubelet: it must be "cgroupfs"`],
  [{ authorization: { mode: "RBAC" } }, "unknown authorization mode RBAC"],
  [{ readOnlyPort: 70_000 }, "invalid configuration: readOnlyPort (--read-only-port) 70000 must be between 0 and 65535, inclusive"],
  [{ address: "here" }, `invalid configuration: address (--address) "here" must be an IP address`],
  [{ tlsCertFile: "/a.crt" }, "invalid configuration: tlsCertFile (--tls-cert-file) and tlsPrivateKeyFile (--tls-private-key-file) go together"],
  [{ nodeStatusMaxImages: -2 }, "invalid configuration: nodeStatusMaxImages (--node-status-max-images) -2 must be -1 or greater"],
  [{ qosReserved: { memory: "50%" } }, `invalid configuration: qosReserved {"memory":"50%"} is not supported by this kubelet`],
  [{ containerLogMaxWorkers: 0 }, "invalid configuration: containerLogMaxWorkers must be greater than or equal to 1"],
  [{ containerLogMonitorInterval: "1s" }, "invalid configuration: containerLogMonitorInterval must be a positive time duration greater than or equal to 3s"],
  [{ cpuCFSQuotaPeriod: "10ms", featureGates: { CustomCPUCFSQuotaPeriod: false } }, "invalid configuration: cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {10ms} requires feature gate CustomCPUCFSQuotaPeriod"],
  [{ shutdownGracePeriod: "10s", featureGates: { GracefulNodeShutdown: false } }, "invalid configuration: specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate GracefulNodeShutdown"],
  [{ shutdownGracePeriodByPodPriority: [{ priority: 0, shutdownGracePeriodSeconds: 5 }], featureGates: { GracefulNodeShutdownBasedOnPodPriority: false } }, "invalid configuration: Specifying shutdownGracePeriodByPodPriority requires feature gate GracefulNodeShutdownBasedOnPodPriority"],
  [{ crashLoopBackOff: { maxContainerRestartPeriod: "10s" }, featureGates: { KubeletCrashLoopBackOffMax: false } }, "invalid configuration: FeatureGate KubeletCrashLoopBackOffMax not enabled, CrashLoopBackOff.MaxContainerRestartPeriod must not be set"],
  [{ imagePullCredentialsVerificationPolicy: "AlwaysVerify", featureGates: { KubeletEnsureSecretPulledImages: false } }, "invalid configuration: `imagePullCredentialsVerificationPolicy` must not be set if KubeletEnsureSecretPulledImages feature gate is not enabled"],
  [{ preloadedImagesVerificationAllowlist: ["a/b"], featureGates: { KubeletEnsureSecretPulledImages: false } }, "invalid configuration: `preloadedImagesVerificationAllowlist` must not be set if KubeletEnsureSecretPulledImages feature gate is not enabled"],
  [{ cpuCFSQuotaPeriod: "2s" }, "invalid configuration: cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {2s} must be between 1ms and 1sec, inclusive"],
  [{ oomScoreAdj: 2000 }, "invalid configuration: oomScoreAdj (--oom-score-adj) 2000 must be between -1000 and 1000, inclusive"],
  [{ enableSystemLogQuery: true, enableSystemLogHandler: false }, "invalid configuration: enableSystemLogHandler is required for enableSystemLogQuery"],
  [{ tracing: { samplingRatePerMillion: 2_000_000 } }, "failed to validate kubelet configuration, error: tracing.samplingRatePerMillion: Invalid value: 2000000: sampling rate per million must be less than or equal to one million"],
  [{ eventRecordQPS: -1 }, "invalid configuration: eventRecordQPS (--event-qps) -1 must not be a negative number"],
  [{ preloadedImagesVerificationAllowlist: ["a/b"] }, 'invalid configuration: can\'t set `preloadedImagesVerificationAllowlist` if `imagePullCredentialsVertificationPolicy` is not "NeverVerifyAllowlistedImages"'],
  [{ imagePullCredentialsVerificationPolicy: "NeverVerifyAllowlistedImages", preloadedImagesVerificationAllowlist: ["a/b:1"] }, "invalid configuration: invalid image pattern in `preloadedImagesVerificationAllowlist`: neither tag nor digest is accepted in an image reference: a/b:1"],
  [{ imagePullCredentialsVerificationPolicy: "NeverVerifyAllowlistedImages", preloadedImagesVerificationAllowlist: ["image.repo/"] }, "invalid configuration: invalid image pattern in `preloadedImagesVerificationAllowlist`: failed to parse as an image name: invalid reference format"],
  [{ imagePullCredentialsVerificationPolicy: "NeverVerifyAllowlistedImages", preloadedImagesVerificationAllowlist: ["image.repo/Tool"] }, "failed to parse as an image name: repository name must be lowercase"],
  [{ reservedSystemCPUs: "0", kubeReservedCgroup: "/kube" }, "invalid configuration: can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup (--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)"],
  [{ systemReserved: { "hugepages-2Mi": "2Mi" } }, 'cannot reserve "hugepages-2Mi" resource'],
  [{ kubeReserved: { cpu: "much" } }, 'failed to parse quantity "much" for "cpu" resource'],
  [{ kubeReserved: { memory: "-1Gi" } }, 'resource quantity for "memory" cannot be negative: -1Gi'],
  [{ imageMinimumGCAge: "-1s" }, "invalid configuration: imageMinimumGCAge -1s must not be negative"],
  [{ hairpinMode: "hairpin" }, 'invalid configuration: option "hairpin" specified for hairpinMode (--hairpin-mode). Valid options are "none", "hairpin-veth" or "promiscuous-bridge"'],
  [{ iptablesDropBit: 32 }, "invalid configuration: iptablesDropBit (--iptables-drop-bit) 32 must be between 0 and 31, inclusive"],
  [{ systemCgroups: "/system" }, "invalid configuration: systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified"],
  [{ maxOpenFiles: -1 }, "invalid configuration: maxOpenFiles (--max-open-files) -1 must not be a negative number"],
  [{ memoryThrottlingFactor: 1.5 }, "invalid configuration: memoryThrottlingFactor 1.5 must be greater than 0 and less than or equal to 1.0"],
  [{ podLogsDir: "logs" }, 'invalid configuration: pod logs path "logs" must be absolute path'],
  [{ podLogsDir: "/var/../logs" }, 'invalid configuration: pod logs path "/var/../logs" must be normalized'],
  [{ podLogsDir: "/vår" }, 'invalid configuration: pod logs path "/vår" mut contains ASCII characters only'],
  [{ registerWithTaints: [{ key: "a b", effect: "NoSchedule" }] }, 'invalid taint: {"key":"a b","effect":"NoSchedule"}'],
  [{ registerWithTaints: [{ key: "a", effect: "NoExecute", timeAdded: "2026-01-02T03:04:05Z" }] }, "invalid configuration: taint.TimeAdded is not nil"],
  [{ enforceNodeAllocatable: ["kube-reserved", "kube-reserved-compressible"] }, 'invalid configuration: both "kube-reserved" and "kube-reserved-compressible" cannot be specified together in enforceNodeAllocatable (--enforce-node-allocatable)'],
  [{ crashLoopBackOff: { maxContainerRestartPeriod: "301s" } }, "invalid configuration: CrashLoopBackOff.MaxContainerRestartPeriod (got: 301 seconds) must be set between 1s and 300s"],
  [{ imagePullCredentialsVerificationPolicy: "Maybe" }, 'invalid configuration: option "Maybe" specified for imagePullCredentialsVerificationPolicy. Valid options are "NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages" or "AlwaysVerify"'],
  [{ kind: "Pod" }, `no kind "Pod" is registered for version "kubelet.config.k8s.io/v1beta1"`],
])("%j is refused: %s", (value, message) => {
  expect(() => applied(value)).toThrow(message);
});

test("processors that are reserved by name are those that are kept from pods", () => {
  const settings = applied({ cpuManagerPolicy: "static", cpuManagerPolicyOptions: { "full-pcpus-only": "true" }, reservedSystemCPUs: "0,2-3", systemReserved: { cpu: "250m", memory: "1Gi" }, kubeReserved: { cpu: "500m", memory: "1Gi" } });
  expect(settings.placement).toMatchObject({ cpuPolicy: "static", cpuOptions: { "full-pcpus-only": "true" }, reservedCpus: "0,2-3", cpuReconcileMs: 10_000, topologyPolicy: "none" });
  expect(settings.reserved).toEqual({ cpu: "3", memory: "2147483648000m" });
  expect(() => applyConfiguration(base, { cpuManagerPolicy: "static" }, { os: "windows" })).toThrow("are not supported by this kubelet on Windows");
  expect(() => applyConfiguration(base, { cgroupDriver: "systemd", cgroupsPerQOS: false, enforceNodeAllocatable: [""] }, { os: "windows" }), "as guides for Windows have it").not.toThrow();
  expect(() => applyConfiguration(base, { singleProcessOOMKill: false, userNamespaces: {} }, { os: "windows" })).toThrow("[invalid configuration: singleProcessOOMKill is not supported on Windows, invalid configuration: userNamespaces is not supported on Windows]");
});

test("pods share what is not reserved, unless that is not to be enforced", () => {
  const enforces = (...items: string[]): boolean => applied({ enforceNodeAllocatable: items }).enforcesAllocatable;
  expect(applied({ enforceNodeAllocatable: ["pods", "kube-reserved"], kubeReservedCgroup: "/kube", kubeReserved: { cpu: "1" } }).reservedGroups).toEqual([{ whose: "Kube", path: "/kube", reserved: { cpu: "1" }, onlyCpu: false }]);
  expect([applied({}).enforcesAllocatable, enforces("pods"), enforces("none"), enforces()]).toEqual([true, true, false, false]);
});
