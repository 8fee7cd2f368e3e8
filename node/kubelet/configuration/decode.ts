/**
 * A KubeletConfiguration (kubelet.config.k8s.io/v1beta1): what a file and the files of a drop-in directory say, laid over each other, as settings.
 *
 *   base file ◀─ drop-ins, in the order of their names: maps are merged, lists are replaced
 *
 * A field nobody knows is refused, wherever it stands, and so is what is of another type: a "false" in quotes is not false. One whose value we cannot do is refused as well, rather than taken and not obeyed.
 *
 * API:    https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/
 * Source: kubernetes v1.36 pkg/kubelet/apis/config/{types,validation/validation}.go, pkg/kubelet/apis/config/v1beta1/defaults.go
 */
import { aggregate } from "../../../core/api/meta/aggregate.ts";
import { formatDurationNs, parseDurationMs, parseDurationNs } from "../../../core/api/meta/duration.ts";
import { parseQuantity } from "../../../core/api/meta/quantity.ts";
import { jsonNodeOf } from "../../../core/api/codec/json-document.ts";
import { isMap, type JsonMap } from "../../../core/api/patch/json-value.ts";
import { diagnose } from "../../../core/api/schema/diagnose.ts";
import type { Type } from "../../../core/api/schema/facts.ts";
import { tlsPolicy } from "../../../core/net/tls-policy.ts";
import type { PullPolicy } from "../images/pull-verification.ts";
import { parseCpuSet } from "../placement/cpu-set.ts";
import type { PlacementSettings } from "../placement/settings.ts";
import { reservedGroups } from "../resources/reserved-groups.ts";
import type { AccessSettings, KubeletSettings } from "../settings.ts";
import { evictionThresholds } from "./eviction-thresholds.ts";
import { configurationType, fieldsOf } from "./fields.ts";
import { validate } from "./validate.ts";

export type Configuration = Readonly<Record<string, unknown>>;
type Writable = { -readonly [K in keyof KubeletSettings]: KubeletSettings[K] };

/** Throws an Error for the user. `documents`: the file and then the drop-ins, as parsed. */
export function mergeConfigurations(documents: readonly { readonly path: string; readonly value: unknown }[]): Configuration {
  const type = configurationType();
  let merged: Record<string, unknown> = {};
  for (const { path, value } of documents) {
    if (value === null || value === undefined) continue;
    if (typeof value !== "object" || Array.isArray(value)) throw new Error(`failed to load kubelet config file, path: ${path}, error: it is no map`);
    const { apiVersion, kind, ...fields } = value as Record<string, unknown>;
    if (kind !== "KubeletConfiguration" || apiVersion !== "kubelet.config.k8s.io/v1beta1")
      throw new Error(`failed to load kubelet config file, path: ${path}, error: no kind "${String(kind ?? "")}" is registered for version "${String(apiVersion ?? "")}"`);
    const { error, strict } = diagnose(type, jsonNodeOf(fields));
    const wrong = error === undefined ? strict.length > 0 ? `strict decoding error: ${strict.join(", ")}` : undefined : `failed to decode: ${error}`;
    if (wrong !== undefined) throw new Error(`failed to load kubelet config file, path: ${path}, error: ${wrong}`);
    merged = overlay(merged, fields);
  }
  return withoutNulls(type, merged) as Configuration;
}

/** As Go reads it: a field that is null is not there, and in a list or a map null is what the type has of nothing. */
function withoutNulls(type: Type, value: unknown): unknown {
  switch (type.kind) {
    case "struct": return Object.fromEntries(Object.entries(value ?? {}).flatMap(([name, part]: [string, unknown]) => (part === null ? [] : [[name, withoutNulls(type.field(name)!.type, part)]])));
    case "list": return ((value ?? []) as readonly unknown[]).map((item) => withoutNulls(type.items, item));
    case "map": return Object.fromEntries(Object.entries(value ?? {}).map(([name, part]) => [name, withoutNulls(type.values, part)]));
    case "scalar": return value ?? (type.scalar === "string" ? "" : type.scalar === "bool" ? false : 0);
    case "special": return value ?? "0";
  }
}

function overlay(below: JsonMap, above: JsonMap): Record<string, unknown> {
  const result: Record<string, unknown> = { ...below };
  for (const [name, value] of Object.entries(above)) {
    const old = result[name];
    if (value === null) {
      delete result[name];
      continue;
    }
    result[name] = isMap(old) && isMap(value) ? overlay(old, value) : value;
  }
  return result;
}

/** What is not given is upstream's default in these also where nothing is said by a zero: files that tools write have one for each field. A flag of zero pods says none. */
const ZERO_IS_UNSET: readonly string[] = [
  "syncFrequency", "fileCheckFrequency", "httpCheckFrequency", "address", "port", "registryBurst", "eventBurst", "healthzBindAddress", "streamingConnectionIdleTimeout", "nodeStatusReportFrequency", "nodeStatusUpdateFrequency",
  "nodeLeaseDurationSeconds", "imageMinimumGCAge", "volumeStatsAggPeriod", "cgroupDriver", "cpuManagerPolicy", "cpuManagerReconcilePeriod", "memoryManagerPolicy",
  "topologyManagerPolicy", "topologyManagerScope", "runtimeRequestTimeout", "hairpinMode",
  "maxPods", "maxOpenFiles", "contentType", "kubeAPIBurst", "evictionPressureTransitionPeriod", "containerLogMaxSize", "configMapAndSecretChangeDetectionStrategy",
  "volumePluginDir", "memoryReservationPolicy", "imagePullCredentialsVerificationPolicy", "podLogsDir",
];

/** With the defaults that hang on other fields. `flags`: what they say, and no file. */
function completed(given: Configuration, flags: ReadonlySet<string>): Configuration {
  const kinds = fieldsOf();
  const values = Object.entries(given).map(([name, value]) => [name, kinds.get(name) === "duration" ? printed(value) : value] as const);
  const result: Record<string, unknown> = Object.fromEntries(values.filter(([name, value]) => !(ZERO_IS_UNSET.includes(name) && ((value === 0 && !flags.has(name)) || value === "" || (value === "0s" && kinds.get(name) === "duration")))));
  if (result["nodeStatusReportFrequency"] === undefined && result["nodeStatusUpdateFrequency"] !== undefined) result["nodeStatusReportFrequency"] = result["nodeStatusUpdateFrequency"];
  if (result["serializeImagePulls"] === undefined && Number(result["maxParallelImagePulls"] ?? 0) >= 2) result["serializeImagePulls"] = false;
  if (Number(result["podPidsLimit"] ?? 0) < 0) result["podPidsLimit"] = -1;
  return result;
}

/** As Go prints a duration: 90m is 1h30m0s. What is none stays, to be refused. */
function printed(duration: unknown): unknown {
  try {
    return formatDurationNs(parseDurationNs(String(duration)));
  } catch {
    return duration;
  }
}

export interface ConfigurationOptions {
  readonly os: "linux" | "windows";
  /** Fields that flags say. */
  readonly flags?: ReadonlySet<string> | undefined;
}

/** Settings with the configuration's in their place. Throws an Error for the user, with everything that is wrong. */
export function applyConfiguration(base: KubeletSettings, given: Configuration, { os, flags = new Set() }: ConfigurationOptions): KubeletSettings {
  const configuration = completed(given, flags);
  const problems = validate(configuration, os);
  if (problems.length > 0) throw new Error(`failed to validate kubelet configuration, error: ${aggregate(problems)}`);
  const result: Writable = { ...base };
  const has = (name: string): boolean => configuration[name] !== undefined;
  const read = <T>(name: string, set: (value: T) => void): void => { if (has(name)) set(configuration[name] as T); };
  const ms = (name: string, set: (value: number) => void): void => read<string>(name, (text) => set(parseDurationMs(text)));
  read<string>("address", (value) => { result.address = value === "0.0.0.0" ? "::" : value; }); // as Go listens: where one family is meant, both are
  const { tlsCertFile: certFile = "", tlsPrivateKeyFile: keyFile = "", serverTLSBootstrap: asks } = configuration as { readonly tlsCertFile?: string; readonly tlsPrivateKeyFile?: string; readonly serverTLSBootstrap?: boolean };
  if (certFile !== "" && asks !== true) result.servingFiles = { certFile, keyFile };
  read<number>("port", (value) => { result.port = value; });
  read<string>("healthzBindAddress", (value) => { result.healthzAddress = value; });
  read<number>("healthzPort", (value) => { result.healthzPort = value; });
  result.access = accessSettings(configuration, base.access);
  read<number>("maxPods", (value) => { result.maxPods = value; });
  read<number>("podsPerCore", (value) => { result.podsPerCore = value; });
  read<string[]>("enforceNodeAllocatable", (items) => {
    result.enforcesAllocatable = items.includes("pods");
    result.reservedGroups = reservedGroups(items, configuration);
  });
  read<number>("podPidsLimit", (value) => { result.podPidsLimit = value; });
  read<string>("resolvConf", (value) => { result.resolvConf = value; });
  read<string>("staticPodPath", (value) => { result.staticPodDir = value; });
  read<string>("podLogsDir", (value) => { result.podLogsDir = value; });
  read<string>("cgroupRoot", (value) => { result.cgroupRoot = value || "/"; });
  read<string>("providerID", (value) => { result.providerId = value; });
  read<string>("clusterDomain", (value) => { result.clusterDomain = value; });
  read<string[]>("clusterDNS", (value) => { result.clusterDns = value; });
  read<number>("nodeStatusMaxImages", (value) => { result.statusImagesMax = value; });
  read<boolean>("singleProcessOOMKill", (value) => { result.singleProcessOomKill = value; });
  read<boolean>("seccompDefault", (value) => { result.seccompDefault = value; });
  read<string[]>("allowedUnsafeSysctls", (value) => { result.allowedUnsafeSysctls = value; });
  read<boolean>("registerNode", (value) => { result.registers = value; });
  read<KubeletSettings["taints"]>("registerWithTaints", (value) => { result.taints = value; });
  read<boolean>("serializeImagePulls", (value) => { result.serializeImagePulls = value; });
  read<number>("maxParallelImagePulls", (value) => { result.maxParallelImagePulls = value; });
  read<string>("containerLogMaxSize", (value) => { result.containerLogMaxBytes = parseQuantity(value).number(); });
  read<number>("containerLogMaxFiles", (value) => { result.containerLogMaxFiles = value; });
  read<number>("containerLogMaxWorkers", (value) => { result.containerLogWorkers = value; });
  ms("containerLogMonitorInterval", (value) => { result.containerLogMs = value; });
  ms("syncFrequency", (value) => { result.syncMs = value; });
  ms("fileCheckFrequency", (value) => { result.fileCheckMs = value; });
  ms("streamingConnectionIdleTimeout", (value) => { result.streamIdleMs = value; });
  read<string>("imageServiceEndpoint", (value) => { result.imageServiceEndpoint = value; });
  read<string>("configMapAndSecretChangeDetectionStrategy", (value) => { result.readsObjectsAnew = value === "Get"; });
  ms("runtimeRequestTimeout", (value) => { result.runtimeTimeoutMs = value; });
  ms("volumeStatsAggPeriod", (value) => { result.volumeStatsMs = value; });
  read<number>("oomScoreAdj", (value) => { result.oomScoreAdjust = value; });
  read<boolean>("protectKernelDefaults", (value) => { result.protectsKernel = value; });
  read<boolean>("failCgroupV1", (value) => { result.failCgroupV1 = value; });
  read<boolean>("enableSystemLogHandler", (value) => { result.servesLogs = value; });
  read<boolean>("cpuCFSQuota", (value) => { result.cpuQuota = { ...result.cpuQuota, on: value }; });
  ms("cpuCFSQuotaPeriod", (value) => { result.cpuQuota = { ...result.cpuQuota, periodUs: value * 1000 }; });
  for (const name of ["systemReserved", "kubeReserved"]) read<Record<string, string>>(name, (value) => { result.reserved = addReserved(result.reserved, value); });
  result.placement = placementSettings(configuration, base.placement);
  const { cpuPolicy, memoryPolicy, topologyPolicy } = result.placement;
  if (os === "windows" && !(cpuPolicy === "none" && memoryPolicy === "None" && topologyPolicy === "none"))
    throw new Error("invalid configuration: cpuManagerPolicy, memoryManagerPolicy and topologyManagerPolicy are not supported by this kubelet on Windows");
  const reservedCpus = parseCpuSet(result.placement.reservedCpus).size;
  if (reservedCpus > 0) result.reserved = { ...result.reserved, cpu: String(reservedCpus) };
  read<PullPolicy>("imagePullCredentialsVerificationPolicy", (policy) => { result.pullVerification = { ...result.pullVerification, policy }; });
  read<string[]>("preloadedImagesVerificationAllowlist", (allowlist) => { result.pullVerification = { ...result.pullVerification, allowlist }; });
  if (result.placement.gates["KubeletEnsureSecretPulledImages"] === false) result.pullVerification = { ...result.pullVerification, policy: "NeverVerify" };
  read<number>("imageGCHighThresholdPercent", (value) => { result.imageGc = { ...result.imageGc, highPercent: value }; });
  read<number>("imageGCLowThresholdPercent", (value) => { result.imageGc = { ...result.imageGc, lowPercent: value }; });
  ms("imageMinimumGCAge", (value) => { result.imageGc = { ...result.imageGc, ageMinMs: value }; });
  ms("imageMaximumGCAge", (value) => { result.imageGc = { ...result.imageGc, ageMaxMs: value }; });
  ms("nodeStatusUpdateFrequency", (value) => { result.statusMs = value; });
  ms("nodeStatusReportFrequency", (value) => { result.reportMs = value; });
  read<number>("nodeLeaseDurationSeconds", (value) => { result.leaseSeconds = value; });
  ms("shutdownGracePeriod", (value) => { result.shutdown = { ...result.shutdown, graceMs: value }; });
  ms("shutdownGracePeriodCriticalPods", (value) => { result.shutdown = { ...result.shutdown, criticalMs: value }; });
  read<{ priority: number; shutdownGracePeriodSeconds: number }[]>("shutdownGracePeriodByPodPriority", (value) => { if (value.length > 0) result.shutdown = {
    ...result.shutdown, byPriority: value.map(({ priority, shutdownGracePeriodSeconds }) => ({ priority, graceMs: shutdownGracePeriodSeconds * 1000 })),
  }; });
  const tls = tlsPolicy({ minVersion: configuration["tlsMinVersion"] as string | undefined, cipherSuites: configuration["tlsCipherSuites"] as string[] | undefined });
  if (tls) result.tls = tls;
  read<boolean>("failSwapOn", (value) => { result.failSwapOn = value; });
  read<{ swapBehavior?: string }>("memorySwap", ({ swapBehavior }) => { result.limitedSwap = swapBehavior === "LimitedSwap"; });
  read<{ idsPerPod?: number }>("userNamespaces", ({ idsPerPod }) => { if (idsPerPod !== undefined) result.userNamespaceIds = idsPerPod; });
  read<{ maxContainerRestartPeriod?: string }>("crashLoopBackOff", ({ maxContainerRestartPeriod }) => { if (maxContainerRestartPeriod) result.crashBackoffMsMax = parseDurationMs(maxContainerRestartPeriod); });
  result.eviction = evictionThresholds(configuration, { os, before: base.eviction });
  result.configuration = configuration;
  return result;
}

interface Authentication { readonly anonymous?: { readonly enabled?: boolean }; readonly webhook?: { readonly enabled?: boolean; readonly cacheTTL?: string } }
interface Authorization { readonly mode?: string; readonly webhook?: { readonly cacheAuthorizedTTL?: string; readonly cacheUnauthorizedTTL?: string } }

function accessSettings(given: Configuration, base: AccessSettings): AccessSettings {
  const { anonymous, webhook } = (given["authentication"] ?? {}) as Authentication;
  const { mode, webhook: answers } = (given["authorization"] ?? {}) as Authorization;
  const ms = (text: string | undefined, usual: number): number => (text === undefined || parseDurationMs(text) === 0 ? usual : parseDurationMs(text));
  return {
    anonymous: anonymous?.enabled ?? base.anonymous, tokens: webhook?.enabled ?? base.tokens, authorizes: mode === undefined || mode === "" ? base.authorizes : mode === "Webhook",
    tokenTtlMs: ms(webhook?.cacheTTL, base.tokenTtlMs), allowedTtlMs: ms(answers?.cacheAuthorizedTTL, base.allowedTtlMs), deniedTtlMs: ms(answers?.cacheUnauthorizedTTL, base.deniedTtlMs),
    debugging: (given["enableDebuggingHandlers"] as boolean | undefined) ?? base.debugging, readOnlyPort: (given["readOnlyPort"] as number | undefined) ?? base.readOnlyPort,
  };
}

/** What is not said keeps upstream's default. */
function placementSettings(given: Configuration, base: PlacementSettings): PlacementSettings {
  const read = <T>(name: string, usual: T): T => (given[name] === undefined ? usual : (given[name] as T));
  return {
    cpuPolicy: read("cpuManagerPolicy", base.cpuPolicy), cpuOptions: read("cpuManagerPolicyOptions", base.cpuOptions),
    cpuReconcileMs: given["cpuManagerReconcilePeriod"] === undefined ? base.cpuReconcileMs : parseDurationMs(given["cpuManagerReconcilePeriod"] as string),
    reservedCpus: read("reservedSystemCPUs", base.reservedCpus), memoryPolicy: read("memoryManagerPolicy", base.memoryPolicy), reservedMemory: read("reservedMemory", base.reservedMemory),
    topologyPolicy: read("topologyManagerPolicy", base.topologyPolicy), topologyScope: read("topologyManagerScope", base.topologyScope),
    topologyOptions: read("topologyManagerPolicyOptions", base.topologyOptions), gates: read("featureGates", base.gates),
  };
}

function addReserved(before: KubeletSettings["reserved"], more: Readonly<Record<string, string>>): Record<string, string> {
  const sum: Record<string, string> = { ...before };
  for (const [name, text] of Object.entries(more)) {
    const old = sum[name];
    sum[name] = old === undefined ? text : String(parseQuantity(old).milliNumber() + parseQuantity(text).milliNumber()).concat("m");
  }
  return sum;
}
