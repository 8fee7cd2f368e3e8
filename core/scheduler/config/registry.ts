/**
 * The plugins a configuration may name: at which extension points each stands, and how its filter and its score are made from its arguments.
 *
 * Source: kubernetes v1.36 pkg/scheduler/framework/plugins/registry.go, apis/config/v1/default_plugins.go
 */
import { parseDurationMs } from "../../api/meta/duration.ts";
import { dynamicResources, dynamicResourcesScore } from "../devices/dynamic-resources.ts";
import type { DeviceTimeouts } from "../devices/plan.ts";
import { interPodAffinity } from "../filters/inter-pod-affinity.ts";
import { nodeDeclaredFeatures } from "../filters/node-declared-features.ts";
import { nodeAffinity, nodeName, nodeUnschedulable, taintToleration } from "../filters/node.ts";
import { podTopologySpread, type SpreadDefaults, SYSTEM_DEFAULTS } from "../filters/pod-topology-spread.ts";
import { nodePorts, nodeResourcesFit } from "../filters/resources.ts";
import { nodeVolumeLimits, volumeBinding, volumeRestrictions, volumeZone } from "../filters/volumes.ts";
import type { Filter, Score } from "../plugin.ts";
import { GANG_SCHEDULING } from "../pod-groups.ts";
import { imageLocality, nodeAffinityScore, taintTolerationScore } from "../scores/node.ts";
import { interPodAffinityScore, podTopologySpreadScore } from "../scores/pods.ts";
import { balancedAllocation, type FitStrategy, nodeResourcesFitScore, type ResourceWeights } from "../scores/resources.ts";
import { volumeBindingScore } from "../scores/volumes.ts";
import { argsOf, type ExtensionPoint, type PluginRef, type ProfileConfig } from "./configuration.ts";

type Args = Pick<ProfileConfig, "pluginConfig">;

export interface PluginRow {
  readonly points: readonly ExtensionPoint[];
  /** There where this feature gate is switched on. */
  readonly gate?: string;
  /** Then. */
  readonly weight?: number;
  readonly filter?: (config: Args, ignoredResources: readonly string[]) => Filter;
  readonly score?: (config: Args) => Score | undefined;
}

const FILTER = ["preFilter", "filter"] as const;
const SCORE = ["preScore", "score"] as const;

function deviceTimeouts(config: Args): DeviceTimeouts {
  const { bindingTimeout, filterTimeout } = argsOf(config, "DynamicResources");
  return { bindingTimeoutMs: parseDurationMs(bindingTimeout), filterTimeoutMs: parseDurationMs(filterTimeout) };
}

export const PLUGINS: Readonly<Record<string, PluginRow>> = {
  SchedulingGates: { points: ["preEnqueue"] },
  PrioritySort: { points: ["queueSort"] },
  NodeUnschedulable: { points: ["filter"], filter: () => nodeUnschedulable },
  NodeName: { points: ["filter"], filter: () => nodeName },
  TaintToleration: { points: ["filter", ...SCORE], filter: () => taintToleration, score: () => taintTolerationScore },
  NodeAffinity: {
    points: [...FILTER, ...SCORE],
    filter: (config) => nodeAffinity({ addedAffinity: argsOf(config, "NodeAffinity").addedAffinity?.requiredDuringSchedulingIgnoredDuringExecution }),
    score: (config) => nodeAffinityScore({ addedPreferences: argsOf(config, "NodeAffinity").addedAffinity?.preferredDuringSchedulingIgnoredDuringExecution }),
  },
  NodePorts: { points: FILTER, filter: () => nodePorts },
  NodeResourcesFit: {
    points: [...FILTER, ...SCORE, "placementScore"],
    filter(config, ignored) {
      const { ignoredResources, ignoredResourceGroups } = argsOf(config, "NodeResourcesFit");
      return nodeResourcesFit({ ignoredResources: ignored.length > 0 ? ignored : ignoredResources, ignoredResourceGroups }); // what extenders count stands instead, as upstream has it
    },
    score: (config) => nodeResourcesFitScore(strategyOf(config)),
  },
  VolumeRestrictions: { points: FILTER, filter: () => volumeRestrictions },
  NodeVolumeLimits: { points: FILTER, filter: () => nodeVolumeLimits },
  VolumeBinding: {
    points: [...FILTER, "reserve", "preBind", ...SCORE],
    filter: () => volumeBinding,
    score(config) {
      const { shape } = argsOf(config, "VolumeBinding"); // there with its gate alone
      return shape && volumeBindingScore(shape);
    },
  },
  VolumeZone: { points: FILTER, filter: () => volumeZone },
  PodTopologySpread: { points: [...FILTER, ...SCORE], filter: (config) => podTopologySpread(spreadOf(config)), score: (config) => podTopologySpreadScore(spreadOf(config)) },
  InterPodAffinity: { points: [...FILTER, ...SCORE], filter: () => interPodAffinity, score: (config) => interPodAffinityScore(argsOf(config, "InterPodAffinity")) },
  DynamicResources: { points: ["preEnqueue", ...FILTER, "postFilter", "score", "reserve", "preBind"], filter: (config) => dynamicResources(deviceTimeouts(config)), score: () => dynamicResourcesScore },
  DefaultPreemption: { points: ["preEnqueue", "postFilter"] },
  NodeResourcesBalancedAllocation: { points: SCORE, score: (config) => balancedAllocation(argsOf(config, "NodeResourcesBalancedAllocation").resources.map(({ name }) => name)) },
  ImageLocality: { points: ["score"], score: () => imageLocality },
  DefaultBinder: { points: ["bind"] },
  NodeDeclaredFeatures: { points: FILTER, filter: () => nodeDeclaredFeatures },
  [GANG_SCHEDULING]: { points: ["preEnqueue", "permit"], gate: "GangScheduling" },
  TopologyPlacementGenerator: { points: ["placementGenerate"], gate: "TopologyAwareWorkloadScheduling" },
  PodGroupPodsCount: { points: ["placementScore"], gate: "TopologyAwareWorkloadScheduling", weight: 1 },
};

/** In the order they run. */
const DEFAULT_PLUGINS: readonly PluginRef[] = [
  { name: "SchedulingGates" }, { name: "PrioritySort" }, { name: "NodeUnschedulable" }, { name: "NodeName" }, { name: "TaintToleration", weight: 3 }, { name: "NodeAffinity", weight: 2 },
  { name: "NodePorts" }, { name: "NodeResourcesFit", weight: 1 }, { name: "VolumeRestrictions" }, { name: "NodeVolumeLimits" }, { name: "VolumeBinding" }, { name: "VolumeZone" },
  { name: "PodTopologySpread", weight: 2 }, { name: "InterPodAffinity", weight: 2 }, { name: "DynamicResources", weight: 2 }, { name: "DefaultPreemption" }, { name: "NodeResourcesBalancedAllocation", weight: 1 },
  { name: "ImageLocality", weight: 1 }, { name: "DefaultBinder" }, { name: "NodeDeclaredFeatures" },
];

/** Those, and what comes with the features that were switched on. */
export function defaultPlugins(gates: ReadonlySet<string>): readonly PluginRef[] {
  return [...DEFAULT_PLUGINS, ...Object.entries(PLUGINS).flatMap(([name, { gate, weight }]) => (gate !== undefined && gates.has(gate) ? [{ name, ...(weight !== undefined && { weight }) }] : []))];
}

function spreadOf(config: Args): SpreadDefaults {
  const { defaultConstraints, defaultingType } = argsOf(config, "PodTopologySpread");
  return defaultingType === "System" ? SYSTEM_DEFAULTS : { system: false, constraints: defaultConstraints };
}

/** Of the resources that count for how full nodes are, what each weighs. */
export function resourceWeights(config: Args): ResourceWeights {
  return Object.fromEntries(argsOf(config, "NodeResourcesFit").scoringStrategy.resources.map(({ name, weight }) => [name, weight ?? 1]));
}

function strategyOf(config: Args): FitStrategy {
  const { type, resources, requestedToCapacityRatio } = argsOf(config, "NodeResourcesFit").scoringStrategy;
  const weights = Object.fromEntries(resources.map(({ name, weight }) => [name, weight ?? 1]));
  return type === "RequestedToCapacityRatio" ? { type, resources: weights, shape: requestedToCapacityRatio?.shape ?? [] } : { type: type === "MostAllocated" ? type : "LeastAllocated", resources: weights };
}
