/**
 * Feature gates: which of upstream's features there are in v1.36, and whether they are on. Coracle behaves as upstream does with its defaults, but for the few that can be switched on; a gate
 * that says so is accepted, one that asks for something else is refused, because it would change nothing. One that is GA and not locked is taken all the same, with a warning: files that set
 * it must not keep a server from starting.
 *
 * Source: kubernetes v1.36 component-base/featuregate/feature_gate.go, component-base/metrics/prometheus/feature/metrics.go
 */
import { parseGoBool } from "../api/meta/go-bool.ts";
import type { Metrics } from "../observe/metrics.ts";
import gatesText from "./feature-gates.txt" with { type: "text" };

export interface FeatureGate {
  readonly name: string;
  readonly enabled: boolean;
  readonly stage: "Alpha" | "Beta" | "GA" | "Deprecated";
  readonly locked: boolean;
}

/** Not features themselves: they change the defaults of all that are of a stage. */
const GROUPS: readonly FeatureGate[] = [
  { name: "AllAlpha", enabled: false, stage: "Alpha", locked: false },
  { name: "AllBeta", enabled: false, stage: "Beta", locked: false },
];

/** Off by default and there all the same, for who switches them on. */
const OPT_IN: readonly string[] = [
  "AllowUnsafeMalformedObjectDeletion", "CBORServingAndStorage", "ClusterTrustBundle", "ClusterTrustBundleProjection", "ContainerStopSignals", "CoordinatedLeaderElection", "CrossNamespaceVolumeDataSource",
  "DRADeviceTaintRules", "DRAListTypeAttributes", "DRAResourcePoolStatus", "GangScheduling", "GenericWorkload", "HPAScaleToZero", "ImageVolumeWithDigest", "MaxUnavailableStatefulSet", "MutablePVNodeAffinity",
  "PersistentVolumeClaimUnusedSinceTime", "PodCertificateRequest", "PodLogsQuerySplitStreams", "StorageCapacityScoring", "StorageVersionAPI", "StorageVersionMigrator",
  "TaintTolerationComparisonOperators", "TopologyAwareWorkloadScheduling", "UserNamespacesHostNetworkSupport", "VolumeLimitScaling", "WorkloadAwarePreemption", "WorkloadWithJob",
];

export function featureGates(): readonly FeatureGate[] {
  return [...GROUPS, ...gatesText.split("\n").filter((line) => line !== "" && !line.startsWith("#")).map((line): FeatureGate => {
    const [name = "", state, stage, locked] = line.split(" ");
    return { name, enabled: state === "on", stage: stage as FeatureGate["stage"], locked: locked === "locked" };
  })];
}

/** "Name=true", or "kube:Name=true". */
function parsed(text: string): { readonly name: string; readonly value: string | undefined } {
  const whole = text.replace(/^(?:kube)?:/, ""), at = whole.indexOf("=");
  return at < 0 ? { name: whole.trim(), value: undefined } : { name: whole.slice(0, at).trim(), value: whole.slice(at + 1).trim() };
}

/** What is wrong with it; undefined: that is how it is, or upstream says no more to it than featureGateWarning. */
export function featureGateProblem(text: string): string | undefined {
  const { name, value } = parsed(text);
  if (value === undefined) return `missing bool value for ${name}`;
  const wanted = parseGoBool(value);
  if (wanted === undefined) return `invalid value of ${name}=${value}, err: strconv.ParseBool: parsing ${JSON.stringify(value)}: invalid syntax`;
  const gate = featureGates().find((one) => one.name === name);
  if (!gate) return `unrecognized feature gate: ${name}`;
  if (gate.enabled === wanted) return undefined;
  if (gate.locked) return `cannot set feature gate ${name} to ${wanted}, feature is locked to ${gate.enabled}`;
  if (gate.stage === "GA" || OPT_IN.includes(name)) return undefined;
  return `cannot set feature gate ${name} to ${wanted}: Coracle behaves as v1.36 does with it ${gate.enabled ? "on" : "off"}`;
}

/** Those that are switched on, of texts without a problem; the last of a name counts. */
export function switchedOn(texts: readonly string[]): ReadonlySet<string> {
  const last = new Map(texts.map(parsed).map(({ name, value = "" }) => [name, parseGoBool(value) === true]));
  return new Set(OPT_IN.filter((name) => last.get(name)));
}

/** What is to be told of one that there is nothing wrong with: a feature that is settled has its gate only for a while, and here it stays as it is. */
export function featureGateWarning(text: string): { readonly featureGate: string; readonly value: boolean; readonly enabled: boolean } | undefined {
  const { name, value = "" } = parsed(text);
  const gate = featureGates().find((one) => one.name === name && one.stage === "GA");
  return gate && { featureGate: name, value: parseGoBool(value)!, enabled: gate.enabled };
}

/** `on`: those that are off by default and were switched on. */
export function featureMetrics(metrics: Pick<Metrics, "gaugeFrom">, on: ReadonlySet<string>): void {
  const samples = featureGates().map(({ name, enabled, stage }) => [{ name, stage: stage === "GA" ? "" : stage.toUpperCase() }, enabled || on.has(name) ? 1 : 0] as const);
  metrics.gaugeFrom("kubernetes_feature_enabled", "[BETA] This metric records the data about the stage and enablement of a k8s feature.", () => samples);
}
