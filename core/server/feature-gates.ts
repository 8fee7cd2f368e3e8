/**
 * Feature gates: which of upstream's features there are in v1.36, and whether they are on. Coracle behaves as upstream does with its defaults; a gate
 * that says so is accepted, one that asks for something else is refused, because it would change nothing.
 *
 * Source: kubernetes v1.36 component-base/featuregate/feature_gate.go, component-base/metrics/prometheus/feature/metrics.go
 */
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

export function featureGates(): readonly FeatureGate[] {
  return [...GROUPS, ...gatesText.split("\n").filter((line) => line !== "" && !line.startsWith("#")).map((line): FeatureGate => {
    const [name = "", state, stage, locked] = line.split(" ");
    return { name, enabled: state === "on", stage: stage as FeatureGate["stage"], locked: locked === "locked" };
  })];
}

/** What is wrong with "Name=true", or "kube:Name=true"; undefined: that is how it is. */
export function featureGateProblem(text: string): string | undefined {
  const [name = "", value, ...more] = text.replace(/^(?:kube)?:/, "").split("=").map((part) => part.trim());
  if (value === undefined || more.length > 0) return `missing bool value for ${name}`;
  const wanted = { true: true, "1": true, t: true, false: false, "0": false, f: false }[value.toLowerCase()];
  if (wanted === undefined) return `invalid value of ${name}=${value}, err: strconv.ParseBool: parsing ${JSON.stringify(value)}: invalid syntax`;
  const gate = featureGates().find((one) => one.name === name);
  if (!gate) return `unrecognized feature gate: ${name}`;
  if (gate.enabled === wanted) return undefined;
  if (gate.locked) return `cannot set feature gate ${name} to ${wanted}, feature is locked to ${gate.enabled}`;
  return `cannot set feature gate ${name} to ${wanted}: Coracle behaves as v1.36 does with it ${gate.enabled ? "on" : "off"}`;
}

export function featureMetrics(metrics: Pick<Metrics, "gaugeFrom">): void {
  const samples = featureGates().map(({ name, enabled, stage }) => [{ name, stage: stage === "GA" ? "" : stage.toUpperCase() }, enabled ? 1 : 0] as const);
  metrics.gaugeFrom("kubernetes_feature_enabled", "[BETA] This metric records the data about the stage and enablement of a k8s feature.", () => samples);
}
