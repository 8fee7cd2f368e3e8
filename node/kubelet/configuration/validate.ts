/** What is wrong with a KubeletConfiguration, in upstream's words; and what it asks that we do not do. Pure. Source: kubernetes v1.36 pkg/kubelet/apis/config/validation/validation.go */
import { isIP } from "node:net";
import { isAbsolute, normalize } from "node:path";
import type { Taint } from "../../../core/api/gen/core.v1.ts";
import { parseDurationMs } from "../../../core/api/meta/duration.ts";
import { labelValue, qualifiedName } from "../../../core/api/meta/names.ts";
import { isQuantity, parseQuantity } from "../../../core/api/meta/quantity.ts";
import { allowlistProblem, PULL_POLICIES } from "../images/pull-verification.ts";
import { parseCpuSet } from "../placement/cpu-set.ts";
import { isMemory, type Reservation } from "../placement/memory-policy.ts";
import { defaultsOf, fieldsOf } from "./fields.ts";

type Values = Readonly<Record<string, unknown>>;

export function validate(given: Values, os: "linux" | "windows"): string[] {
  const defaults = defaultsOf();
  const value = <T>(name: string): T => (given[name] ?? defaults[name]) as T;
  const number = (name: string): number => value<number | undefined>(name) ?? 0;
  const isOn = (gate: string): boolean => (given["featureGates"] as Readonly<Record<string, boolean>> | undefined)?.[gate] ?? true; // those that are asked for here are by default
  const problems: string[] = [];
  const check = (good: boolean, message: string): void => { if (!good) problems.push(`invalid configuration: ${message}`); };

  for (const [name, kind] of fieldsOf()) {
    if (kind !== "duration" || given[name] === undefined) continue;
    try {
      parseDurationMs(String(given[name]));
    } catch (error) {
      problems.push(`invalid configuration: ${name}: ${(error as Error).message}`);
    }
  }
  if (problems.length > 0) return problems;
  const ms = (name: string): number => parseDurationMs(value<string>(name));

  check(number("nodeLeaseDurationSeconds") > 0, "nodeLeaseDurationSeconds must be greater than 0");
  const text = (name: string): string => value<string | undefined>(name) ?? "";
  check(text("systemCgroups") === "" || text("cgroupRoot") !== "", "systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified");
  check(number("eventBurst") >= 0, `eventBurst (--event-burst) ${number("eventBurst")} must not be a negative number`);
  check(number("healthzPort") >= 0 && number("healthzPort") <= 65_535, `healthzPort (--healthz-port) ${number("healthzPort")} must be between 1 and 65535, inclusive`);
  check(number("readOnlyPort") >= 0 && number("readOnlyPort") <= 65_535, `readOnlyPort (--read-only-port) ${number("readOnlyPort")} must be between 0 and 65535, inclusive`);
  const mode = value<{ readonly mode?: string }>("authorization").mode ?? "";
  if (!["", "Webhook", "AlwaysAllow"].includes(mode)) problems.push(`unknown authorization mode ${mode}`);
  check(number("port") > 0 && number("port") <= 65_535, `port (--port) ${number("port")} must be between 1 and 65535, inclusive`);
  const [high, low] = [number("imageGCHighThresholdPercent"), number("imageGCLowThresholdPercent")];
  check(high >= 0 && high <= 100, `imageGCHighThresholdPercent (--image-gc-high-threshold) ${high} must be between 0 and 100, inclusive`);
  check(low >= 0 && low <= 100, `imageGCLowThresholdPercent (--image-gc-low-threshold) ${low} must be between 0 and 100, inclusive`);
  check(low < high, `imageGCLowThresholdPercent (--image-gc-low-threshold) ${low} must be less than imageGCHighThresholdPercent (--image-gc-high-threshold) ${high}`);
  const [age, ageMax] = [ms("imageMinimumGCAge"), ms("imageMaximumGCAge")];
  check(age >= 0, `imageMinimumGCAge ${value<string>("imageMinimumGCAge")} must not be negative`);
  check(ageMax >= 0, `imageMaximumGCAge ${value<string>("imageMaximumGCAge")} must not be negative`);
  check(ageMax <= 0 || ageMax > age, `imageMaximumGCAge ${value<string>("imageMaximumGCAge")} must be greater than imageMinimumGCAge ${value<string>("imageMinimumGCAge")}`);
  check(number("maxPods") >= 0, `maxPods (--max-pods) ${number("maxPods")} must not be a negative number`);
  check(number("podsPerCore") >= 0, `podsPerCore (--pods-per-core) ${number("podsPerCore")} must not be a negative number`);
  check(number("maxOpenFiles") >= 0, `maxOpenFiles (--max-open-files) ${number("maxOpenFiles")} must not be a negative number`);
  for (const [name, flag] of [["iptablesDropBit", "iptables-drop-bit"], ["iptablesMasqueradeBit", "iptables-masquerade-bit"]] as const) check(
    number(name) >= 0 && number(name) <= 31, `${name} (--${flag}) ${number(name)} must be between 0 and 31, inclusive`,
  );
  const hairpin = value<string>("hairpinMode");
  check(["none", "hairpin-veth", "promiscuous-bridge"].includes(hairpin), `option "${hairpin}" specified for hairpinMode (--hairpin-mode). Valid options are "none", "hairpin-veth" or "promiscuous-bridge"`);
  const factor = value<number>("memoryThrottlingFactor");
  check(factor > 0 && factor <= 1, `memoryThrottlingFactor ${factor} must be greater than 0 and less than or equal to 1.0`);
  checkLogsDirectory(value<string>("podLogsDir"), check);
  for (const taint of value<readonly Taint[] | undefined>("registerWithTaints") ?? []) {
    if (!isTaint(taint)) problems.push(`invalid taint: ${JSON.stringify(taint)}`);
    check(taint.timeAdded === undefined, "taint.TimeAdded is not nil");
  }
  check(number("kubeAPIBurst") >= 0, `kubeAPIBurst (--kube-api-burst) ${number("kubeAPIBurst")} must not be a negative number`);
  check(number("registryBurst") >= 0, `registryBurst (--registry-burst) ${number("registryBurst")} must not be a negative number`);
  const parallel = given["maxParallelImagePulls"] as number | undefined;
  check(parallel === undefined || parallel >= 1, `maxParallelImagePulls ${parallel} must be a positive number`);
  check(!(value<boolean>("serializeImagePulls") && parallel !== undefined && parallel > 1), "maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls (--serialize-image-pulls) is set to false");
  check(number("containerLogMaxFiles") > 1, "containerLogMaxFiles must be greater than 1");
  check(isQuantity(value<string>("containerLogMaxSize")) && parseQuantity(value<string>("containerLogMaxSize")).sign !== 0, `containerLogMaxSize ${value<string>("containerLogMaxSize")} must be a quantity: negative, logs may grow`);
  check(number("containerLogMaxWorkers") >= 1, "containerLogMaxWorkers must be greater than or equal to 1");
  check(ms("containerLogMonitorInterval") >= 3000, "containerLogMonitorInterval must be a positive time duration greater than or equal to 3s");
  check(ms("cpuCFSQuotaPeriod") === 100 || isOn("CustomCPUCFSQuotaPeriod"), `cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {${value<string>("cpuCFSQuotaPeriod")}} requires feature gate CustomCPUCFSQuotaPeriod`);
  check(!isOn("CustomCPUCFSQuotaPeriod") || ms("cpuCFSQuotaPeriod") >= 1 && ms("cpuCFSQuotaPeriod") <= 1000, `cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {${value<string>("cpuCFSQuotaPeriod")}} must be between 1ms and 1sec, inclusive`);
  check(number("oomScoreAdj") >= -1000 && number("oomScoreAdj") <= 1000, `oomScoreAdj (--oom-score-adj) ${number("oomScoreAdj")} must be between -1000 and 1000, inclusive`);
  check(!value<boolean>("enableSystemLogQuery") || value<boolean>("enableSystemLogHandler"), "enableSystemLogHandler is required for enableSystemLogQuery");
  for (const [name, flag] of [["eventRecordQPS", "event-qps"], ["kubeAPIQPS", "kube-api-qps"], ["registryPullQPS", "registry-qps"]] as const) check(number(name) >= 0, `${name} (--${flag}) ${number(name)} must not be a negative number`);
  check(number("nodeStatusMaxImages") >= -1, `nodeStatusMaxImages (--node-status-max-images) ${number("nodeStatusMaxImages")} must be -1 or greater`);

  const [grace, critical] = [ms("shutdownGracePeriod"), ms("shutdownGracePeriodCriticalPods")];
  check(critical <= grace, `shutdownGracePeriodCriticalPods {${value<string>("shutdownGracePeriodCriticalPods")}} must be <= shutdownGracePeriod {${value<string>("shutdownGracePeriod")}}`);
  check(grace === 0 || grace >= 1000, `shutdownGracePeriod {${value<string>("shutdownGracePeriod")}} must be either zero or otherwise >= 1 sec`);
  check(critical === 0 || critical >= 1000, `shutdownGracePeriodCriticalPods {${value<string>("shutdownGracePeriodCriticalPods")}} must be either zero or otherwise >= 1 sec`);
  const byPriority = (value<readonly unknown[] | undefined>("shutdownGracePeriodByPodPriority") ?? []).length > 0;
  check(!(grace > 0 || critical > 0) || isOn("GracefulNodeShutdown"), "specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate GracefulNodeShutdown");
  check(!byPriority || isOn("GracefulNodeShutdownBasedOnPodPriority"), "Specifying shutdownGracePeriodByPodPriority requires feature gate GracefulNodeShutdownBasedOnPodPriority");
  check(!((grace > 0 || critical > 0) && byPriority && isOn("GracefulNodeShutdownBasedOnPodPriority")), "Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time");

  const swap = (value<{ swapBehavior?: string } | undefined>("memorySwap")?.swapBehavior) ?? "";
  check(["", "NoSwap", "LimitedSwap"].includes(swap), `memorySwap.swapBehavior "${swap}" must be one of: "", "LimitedSwap" or "NoSwap"`);
  const restart = (value<{ maxContainerRestartPeriod?: string } | undefined>("crashLoopBackOff")?.maxContainerRestartPeriod);
  if (restart !== undefined && !isOn("KubeletCrashLoopBackOffMax")) check(false, "FeatureGate KubeletCrashLoopBackOffMax not enabled, CrashLoopBackOff.MaxContainerRestartPeriod must not be set");
  else if (restart !== undefined) check(parseDurationMs(restart) >= 1000 && parseDurationMs(restart) <= 300_000, `CrashLoopBackOff.MaxContainerRestartPeriod (got: ${parseDurationMs(restart) / 1000} seconds) must be set between 1s and 300s`);
  const ids = value<{ idsPerPod?: number } | undefined>("userNamespaces")?.idsPerPod;
  check(ids === undefined || ids >= 65_536, "userNamespaces.idsPerPod must not be less than 65536");
  check(ids === undefined || ids < 65_536 || ids % 65_536 === 0, "userNamespaces.idsPerPod must be a multiple of 65536");
  check(ids === undefined || ids <= 4_294_967_295, "userNamespaces.idsPerPod must not be more than 4294967295");
  for (const name of os === "windows" ? ["singleProcessOOMKill", "userNamespaces"] : []) check(given[name] === undefined, `${name} is not supported on Windows`);
  checkVerification(value, { check, isOn: isOn("KubeletEnsureSecretPulledImages") });
  check(isIP(value<string>("address")) !== 0, `address (--address) ${JSON.stringify(value<string>("address"))} must be an IP address`);
  check((value<string | undefined>("tlsCertFile") ?? "") === "" === ((value<string | undefined>("tlsPrivateKeyFile") ?? "") === ""), "tlsCertFile (--tls-cert-file) and tlsPrivateKeyFile (--tls-private-key-file) go together");
  checkEnforced(value, check);
  const { endpoint, samplingRatePerMillion: rate } = value<{ readonly endpoint?: string; readonly samplingRatePerMillion?: number } | undefined>("tracing") ?? {};
  const checkTracing = (good: boolean, message: string): void => { if (!good) problems.push(`tracing.${message}`); };
  checkTracing(rate === undefined || rate >= 0, `samplingRatePerMillion: Invalid value: ${rate}: sampling rate must be positive`);
  checkTracing(rate === undefined || rate <= 1_000_000, `samplingRatePerMillion: Invalid value: ${rate}: sampling rate per million must be less than or equal to one million`);
  checkTracing(endpoint === undefined || /^[^\s/]+(:\d+)?$/.test(endpoint), `endpoint: Invalid value: ${JSON.stringify(endpoint)}: must be host:port`);
  checkPlacement(value, check);
  problems.push(...["systemReserved", "kubeReserved"].flatMap((name) => reservedProblems(value<Readonly<Record<string, unknown>> | undefined>(name) ?? {})));
  return [...problems, ...notDone(given, os)];
}

function checkVerification(value: <T>(name: string) => T, { check, isOn }: { readonly check: (good: boolean, message: string) => void; readonly isOn: boolean }): void {
  const [policy, allowlist] = [value<string>("imagePullCredentialsVerificationPolicy"), value<string[] | undefined>("preloadedImagesVerificationAllowlist") ?? []];
  if (!isOn) {
    const unless = "must not be set if KubeletEnsureSecretPulledImages feature gate is not enabled";
    check(policy === defaultsOf()["imagePullCredentialsVerificationPolicy"], `\`imagePullCredentialsVerificationPolicy\` ${unless}`);
    check(allowlist.length === 0, `\`preloadedImagesVerificationAllowlist\` ${unless}`);
    return;
  }
  check(PULL_POLICIES.some((one) => one === policy), `option "${policy}" specified for imagePullCredentialsVerificationPolicy. Valid options are "NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages" or "AlwaysVerify"`);
  const isRead = policy === "NeverVerifyAllowlistedImages";
  check(allowlist.length === 0 || isRead, 'can\'t set `preloadedImagesVerificationAllowlist` if `imagePullCredentialsVertificationPolicy` is not "NeverVerifyAllowlistedImages"');
  const badPattern = (isRead ? allowlist : []).map(allowlistProblem).find((problem) => problem !== undefined);
  check(badPattern === undefined, `invalid image pattern in \`preloadedImagesVerificationAllowlist\`: ${badPattern}`);
}

const RESERVABLE: readonly string[] = ["cpu", "memory", "ephemeral-storage", "pid"];

/** Source: kubernetes v1.36 cmd/kubelet/app/server.go parseResourceList */
function reservedProblems(reserved: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(reserved).flatMap(([name, value]) => {
    const text = String(value);
    if (!RESERVABLE.includes(name)) return [`cannot reserve ${JSON.stringify(name)} resource`];
    if (!isQuantity(text)) return [`failed to parse quantity ${JSON.stringify(text)} for ${JSON.stringify(name)} resource: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`];
    return parseQuantity(text).sign < 0 ? [`resource quantity for ${JSON.stringify(name)} cannot be negative: ${text}`] : [];
  });
}

const ENFORCEMENTS: readonly string[] = ["pods", "system-reserved", "system-reserved-compressible", "kube-reserved", "kube-reserved-compressible"];

function checkEnforced(value: <T>(name: string) => T, check: (good: boolean, message: string) => void): void {
  const where = "enforceNodeAllocatable (--enforce-node-allocatable)";
  const items = value<string[]>("enforceNodeAllocatable").filter((item) => item !== ""); // a flag without a value
  for (const reserved of ["system-reserved", "kube-reserved"]) check(!(items.includes(reserved) && items.includes(`${reserved}-compressible`)), `both "${reserved}" and "${reserved}-compressible" cannot be specified together in ${where}`);
  for (const item of new Set(items)) {
    check(items.indexOf(item) === items.lastIndexOf(item), `duplicated enforcements ${JSON.stringify(item)} in ${where}`);
    const reserved = /^(system|kube)-reserved/.exec(item)?.[1];
    if (item === "none") check(items.length === 1, `${where} may not contain additional enforcements when "none" is specified`);
    else if (!ENFORCEMENTS.includes(item)) check(false, `option ${JSON.stringify(item)} specified for ${where}. Valid options are ${ENFORCEMENTS.map((one) => JSON.stringify(one)).join(", ")} or "none"`);
    else if (reserved !== undefined) check(
      (value<string | undefined>(`${reserved}ReservedCgroup`) ?? "") !== "",
      `${reserved}ReservedCgroup (--${reserved}-reserved-cgroup) must be specified when "${reserved}-reserved" or "${reserved}-reserved-compressible" included in ${where}`,
    );
  }
}

function checkLogsDirectory(path: string, check: (good: boolean, message: string) => void): void {
  check(isAbsolute(path), `pod logs path "${path}" must be absolute path`);
  const slashed = (text: string): string => text.replaceAll("\\", "/");
  check(slashed(normalize(path)).replace(/(.)\/$/, "$1") === slashed(path), `pod logs path "${path}" must be normalized`);
  check(/^\p{ASCII}*$/u.test(path), `pod logs path "${path}" mut contains ASCII characters only`);
}

/** Source: kubernetes v1.36 pkg/util/taints (CheckTaintValidation) */
function isTaint({ key = "", value = "", effect }: { readonly [K in keyof Taint]: string | undefined }): boolean {
  return qualifiedName(key).length === 0 && (value === "" || labelValue(value).length === 0) && ["", "NoSchedule", "PreferNoSchedule", "NoExecute"].includes(effect ?? "");
}

const TOPOLOGY_POLICIES: readonly string[] = ["none", "best-effort", "restricted", "single-numa-node"];

function checkPlacement(value: <T>(name: string) => T, check: (good: boolean, message: string) => void): void {
  const quoted = (names: readonly string[]): string => `[${names.map((name) => JSON.stringify(name)).join(" ")}]`;
  const policy = value<string>("topologyManagerPolicy");
  check(TOPOLOGY_POLICIES.includes(policy), `topologyManagerPolicy (--topology-manager-policy) "${policy}" must be one of: ${quoted(TOPOLOGY_POLICIES)}`);
  const scope = value<string>("topologyManagerScope");
  check(["container", "pod"].includes(scope), `topologyManagerScope (--topology-manager-scope) "${scope}" must be one of: "container", or "pod"`);
  const cpus = value<string>("cpuManagerPolicy");
  check(["none", "static"].includes(cpus), `unknown policy: "${cpus}"`);
  const memory = value<string>("memoryManagerPolicy");
  check(["None", "Static"].includes(memory), memory === "BestEffort" ? `policy "BestEffort" is not available for platform "linux"` : `unknown policy: "${memory}"`);
  const named = ["systemReservedCgroup", "kubeReservedCgroup"].some((name) => (value<string | undefined>(name) ?? "") !== "");
  check(!named || (value<string | undefined>("reservedSystemCPUs") ?? "") === "", "can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup (--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)");
  try {
    parseCpuSet(value<string | undefined>("reservedSystemCPUs") ?? "");
  } catch (error) {
    check(false, `unable to parse reservedSystemCPUs (--reserved-cpus) ${value<string>("reservedSystemCPUs")}, error: ${(error as Error).message}`);
  }
  const seen = new Set<string>();
  for (const { numaNode = 0, limits = {} } of value<readonly Reservation[] | undefined>("reservedMemory") ?? []) {
    for (const [name, text] of Object.entries(limits)) {
      check(isMemory(name), `the limit type "${name}" for NUMA node ${numaNode} is not supported, only [memory hugepages-<HugePageSize>] is accepted`);
      check(isQuantity(String(text)) && !parseQuantity(String(text)).isZero, `reserved memory may not be zero for NUMA node ${numaNode} and resource "${name}"`);
      check(!seen.has(`${numaNode}/${name}`), `the reserved memory has a duplicate value for NUMA node ${numaNode} and resource "${name}"`);
      seen.add(`${numaNode}/${name}`);
    }
  }
}

/** Values we have no part for: better refused than not obeyed. */
const ONLY: Readonly<Record<string, readonly unknown[]>> = {
  qosReserved: [], // upstream's gate QOSReserved is off
  memoryReservationPolicy: ["None"], cgroupDriver: ["cgroupfs"], cgroupsPerQOS: [true], enableServer: [true], enableControllerAttachDetach: [true],
  staticPodURL: [""], runOnce: [false],
  configMapAndSecretChangeDetectionStrategy: ["Watch", "Cache" /* a watch is never older than what a cache may hold */, "Get"],
  containerRuntimeEndpoint: [""],
  localStorageCapacityIsolation: [true],
};

/** Where there are no control groups nobody is told how they are kept. */
const OF_LINUX: readonly string[] = ["cgroupDriver", "cgroupsPerQOS"];

function notDone(given: Values, os: "linux" | "windows"): string[] {
  const at = (path: string): unknown => path.split(".").reduce<unknown>((found, name) => (found as Values | null | undefined)?.[name], given);
  return Object.entries(ONLY).flatMap(([name, allowed]) => ((os === "windows" && OF_LINUX.includes(name)) || at(name) === undefined || allowed.includes(at(name)) || JSON.stringify(at(name)) === "{}" ? [] : [`invalid configuration: ${name} ${JSON.stringify(at(name))} is not supported by this kubelet${allowed.length > 0 ? `: it must be ${allowed.map((one) => JSON.stringify(one)).join(" or ")}` : ""}`]));
}
