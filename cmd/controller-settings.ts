/**
 * --kube-controller-manager-arg name=value: settings of the controllers under upstream's names.
 *
 * Names of upstream's that are not here: other-settings.ts.
 */
import { parseGoBool } from "../core/api/meta/go-bool.ts";
import type { AllControllersDeps } from "../core/controllers/all.ts";
import type { NodeIpamConfig } from "../core/controllers/nodeipam/nodeipam.ts";
import { selectControllers } from "../core/controllers/selection.ts";
import { parseCidr } from "../core/net/cidr.ts";
import { CONTROLLERS_LISTENING, type Listening, LISTENING_NAMES, listeningWith } from "./component-listening.ts";
import { ConfigError } from "./config/config.ts";
import { durationMsOf } from "./duration-of.ts";
import { argumentOf, checkOther, OTHER_CONTROLLER_SETTINGS } from "./other-settings.ts";

export interface ControllerSettings extends Pick<AllControllersDeps, "nodeLifecycle" | "autoscaling" | "terminatedPodsMax" | "legacyTokenCleanUpMs" | "mirroredPerSubsetMax" | "forceDetach" | "signingMs" | "perSliceMax" | "quotaResyncMs" | "workers" | "runs"> {
  readonly nodeMasks?: Pick<NodeIpamConfig, "maskSizeIpv4" | "maskSizeIpv6"> | undefined;
  /** Absent: where upstream's listens. */
  readonly listening?: Listening | undefined;
}

/** What each makes of its value; undefined: not a value of its kind. */
interface Setting { readonly wanted: string; readonly read: (text: string) => ControllerSettings | undefined }

function setting<T>(wanted: string, parse: (text: string) => T | undefined): (make: (value: T) => ControllerSettings) => Setting {
  return (make) => ({
    wanted,
    read(text) {
      const value = parse(text);
      return value === undefined ? undefined : make(value);
    },
  });
}

const duration = setting("a duration such as 50s", (text) => { const ms = durationMsOf(text); return ms === 0 ? undefined : ms; });
const delay = setting("a duration such as 50s, or 0s", durationMsOf);
const count = setting("a whole number above 0", (text) => (/^[1-9]\d{0,8}$/.test(text) ? Number(text) : undefined));
const bits = (most: number) => setting(`a number of bits from 1 to ${most}`, (text) => (/^\d{1,3}$/.test(text) && Number(text) >= 1 && Number(text) <= most ? Number(text) : undefined));
const share = setting("a number from 0 to 1", (text) => (/^\d*\.?\d+$/.test(text) && Number(text) <= 1 ? Number(text) : undefined));
const rate = setting("a number, not below 0", (text) => (/^\d*\.?\d+$/.test(text) ? Number(text) : undefined));
const workersOf = (...names: readonly string[]): Setting => count((value) => ({ workers: Object.fromEntries(names.map((name) => [name, value])) }));

const SETTINGS: Readonly<Record<string, Setting>> = {
  "node-monitor-period": duration((periodMs) => ({ nodeLifecycle: { periodMs } })),
  "node-monitor-grace-period": duration((graceMs) => ({ nodeLifecycle: { graceMs } })),
  "node-startup-grace-period": duration((startupGraceMs) => ({ nodeLifecycle: { startupGraceMs } })),
  "node-eviction-rate": rate((value) => ({ nodeLifecycle: { rate: value } })),
  "secondary-node-eviction-rate": rate((rateSecondary) => ({ nodeLifecycle: { rateSecondary } })),
  "unhealthy-zone-threshold": share((unhealthyShare) => ({ nodeLifecycle: { unhealthyShare } })),
  "large-cluster-size-threshold": setting("a whole number", (text) => (/^\d{1,9}$/.test(text) ? Number(text) : undefined))((largeZone) => ({ nodeLifecycle: { largeZone } })),
  "horizontal-pod-autoscaler-sync-period": duration((periodMs) => ({ autoscaling: { periodMs } })),
  "horizontal-pod-autoscaler-downscale-stabilization": delay((ms) => ({ autoscaling: { downscaleSeconds: ms / 1000 } })),
  "horizontal-pod-autoscaler-tolerance": rate((tolerance) => ({ autoscaling: { tolerance } })),
  "horizontal-pod-autoscaler-cpu-initialization-period": delay((cpuInitializationMs) => ({ autoscaling: { cpuInitializationMs } })),
  "horizontal-pod-autoscaler-initial-readiness-delay": delay((initialReadinessMs) => ({ autoscaling: { initialReadinessMs } })),
  "terminated-pod-gc-threshold": setting("a whole number", (text) => (/^-?\d{1,9}$/.test(text) ? Number(text) : undefined))((terminatedPodsMax) => ({ terminatedPodsMax })),
  "disable-force-detach-on-timeout": setting("true or false", parseGoBool)((isOff) => ({ forceDetach: !isOff })),
  "cluster-signing-duration": duration((signingMs) => ({ signingMs })),
  "resource-quota-sync-period": duration((quotaResyncMs) => ({ quotaResyncMs })),
  "max-endpoints-per-slice": setting("a whole number from 1 to 1000", (text) => (/^[1-9]\d{0,3}$/.test(text) && Number(text) <= 1000 ? Number(text) : undefined))((perSliceMax) => ({ perSliceMax })),
  "mirroring-max-endpoints-per-subset": setting("a whole number from 1 to 1000", (text) => (/^[1-9]\d{0,3}$/.test(text) && Number(text) <= 1000 ? Number(text) : undefined))((mirroredPerSubsetMax) => ({ mirroredPerSubsetMax })),
  "legacy-service-account-token-clean-up-period": duration((legacyTokenCleanUpMs) => ({ legacyTokenCleanUpMs })),
  "node-cidr-mask-size": bits(128)((size) => ({ nodeMasks: { maskSizeIpv4: size, maskSizeIpv6: size } })),
  "node-cidr-mask-size-ipv4": bits(32)((maskSizeIpv4) => ({ nodeMasks: { maskSizeIpv4 } })),
  "node-cidr-mask-size-ipv6": bits(128)((maskSizeIpv6) => ({ nodeMasks: { maskSizeIpv6 } })),
  "concurrent-cron-job-syncs": workersOf("cronjob"),
  "concurrent-daemonset-syncs": workersOf("daemonset"),
  "concurrent-deployment-syncs": workersOf("deployment"),
  "concurrent-device-taint-eviction-syncs": workersOf("device-taint-eviction"),
  "concurrent-endpoint-syncs": workersOf("endpoint"),
  "concurrent-ephemeralvolume-syncs": workersOf("ephemeral_volume"),
  "concurrent-gc-syncs": workersOf("garbage_collector"),
  "concurrent-horizontal-pod-autoscaler-syncs": workersOf("horizontalpodautoscaler"),
  "concurrent-job-syncs": workersOf("job"),
  "concurrent-namespace-syncs": workersOf("namespace"),
  "concurrent-rc-syncs": workersOf("replicationmanager"),
  "concurrent-replicaset-syncs": workersOf("replicaset"),
  "concurrent-resource-quota-syncs": workersOf("resourcequota_primary"),
  "concurrent-resourceclaim-syncs": workersOf("resource_claim", "pod_resource_claim"),
  "concurrent-service-endpoint-syncs": workersOf("endpoint_slice"),
  "concurrent-serviceaccount-token-syncs": workersOf("serviceaccount_tokens_service"),
  "concurrent-statefulset-syncs": workersOf("statefulset"),
  "concurrent-ttl-after-finished-syncs": workersOf("ttl_jobs_to_delete"),
  "concurrent-validating-admission-policy-status-syncs": workersOf("validatingadmissionpolicy-status"),
  "mirroring-concurrent-service-endpoint-syncs": workersOf("endpoint_slice_mirroring"),
};

/** Of a name given twice, the last counts, but of controllers all. `clusterCidrs`: what nodes' ranges are cut from. Throws ConfigError. */
export function controllerSettings(given: readonly string[], { clusterCidrs = [] }: { readonly clusterCidrs?: readonly string[] } = {}): ControllerSettings {
  let settings: ControllerSettings = {};
  const words: string[] = []; // of controllers, which each adds to
  for (const text of given) {
    const { name, value } = argumentOf(text) ?? { name: "", value: "" };
    if (name === "controllers") {
      words.push(...value.split(","));
      settings = { ...settings, runs: controllersOf(words) };
      continue;
    }
    const listening = listeningWith(settings.listening ?? CONTROLLERS_LISTENING, "kube-controller-manager-arg", { name, value });
    if (listening !== undefined) {
      settings = { ...settings, listening };
      continue;
    }
    const found = Object.hasOwn(SETTINGS, name) ? SETTINGS[name] : undefined;
    if (found === undefined) {
      checkOther("kube-controller-manager-arg", text, { others: OTHER_CONTROLLER_SETTINGS, known: ["controllers", ...LISTENING_NAMES, ...Object.keys(SETTINGS)] });
      continue;
    }
    const made = found.read(value);
    if (made === undefined) throw new ConfigError(`--kube-controller-manager-arg ${name} must be ${found.wanted}, not ${JSON.stringify(value)}`);
    settings = merged(settings, made);
  }
  for (const text of clusterCidrs) checkMask(text, settings);
  return settings;
}

function controllersOf(words: readonly string[]): ControllerSettings["runs"] {
  try {
    return selectControllers(words.map((word) => word.trim()).filter((word) => word !== ""));
  } catch (cause) {
    throw new ConfigError(`--kube-controller-manager-arg controllers: ${(cause as Error).message}`, { cause });
  }
}

/** What is cut must be a part, and have room for addresses. */
function checkMask(text: string, { nodeMasks = {} }: ControllerSettings): void {
  const cidr = parseCidr(text);
  const size = cidr?.family === 4 ? nodeMasks.maskSizeIpv4 : nodeMasks.maskSizeIpv6;
  if (cidr === undefined || size === undefined || (size >= cidr.prefix && size <= (cidr.family === 4 ? 32 : 128))) return;
  throw new ConfigError(`--kube-controller-manager-arg node-cidr-mask-size: ranges of /${size} cannot be cut from --cluster-cidr ${text}`);
}

/** Groups of settings keep what was said of them before. */
function merged(before: ControllerSettings, more: ControllerSettings): ControllerSettings {
  const { nodeLifecycle, autoscaling, workers, nodeMasks, ...rest } = more;
  return {
    ...before, ...rest,
    ...(nodeLifecycle && { nodeLifecycle: { ...before.nodeLifecycle, ...nodeLifecycle } }), ...(autoscaling && { autoscaling: { ...before.autoscaling, ...autoscaling } }),
    ...(workers && { workers: { ...before.workers, ...workers } }), ...(nodeMasks && { nodeMasks: { ...before.nodeMasks, ...nodeMasks } }),
  };
}
