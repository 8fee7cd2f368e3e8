/**
 * What a KubeSchedulerConfiguration makes of the scheduler: one Profile for each of its profiles, the extenders, and how long a pod backs off.
 *
 *   schedulerSettings(text, gates)      throws ConfigurationError with upstream's words; `gates`: features that were switched on
 *
 * `parallelism` is checked and has no effect: a decision is made by one thread. leaderElection and clientConnection are the server's own.
 *
 * Source: kubernetes v1.36 pkg/scheduler/framework/runtime/framework.go, apis/config/v1/default_plugins.go
 */
import { parseDurationMs } from "../../api/meta/duration.ts";
import { formatFieldErrors } from "../../api/meta/field-error.ts";
import type { BackoffOptions } from "../../lifecycle/backoff.ts";
import type { Profile } from "../plugins.ts";
import type { PlacementRules } from "../pod-group-placements.ts";
import { GANG_SCHEDULING } from "../pod-groups.ts";
import { argsOf, ConfigurationError, EXTENSION_POINTS, type ExtenderConfig, type ExtensionPoint, type PluginRef, type PluginSet, type PluginSets, type ProfileConfig, readConfiguration, type SchedulerConfiguration } from "./configuration.ts";
import { defaultPlugins, type PluginRow, PLUGINS, resourceWeights } from "./registry.ts";
import { validateConfiguration, validateFit } from "./validate.ts";

export interface SchedulerSettings {
  readonly profiles: readonly Profile[];
  readonly extenders: readonly ExtenderConfig[];
  readonly backoff: BackoffOptions;
}

/** Source: framework interface MaxTotalScore */
const TOTAL_WEIGHT_MAX = Math.floor((2 ** 63 - 1) / 100);
const QUEUE_ORDER = ["preFilter", "filter", "postFilter", "reserve", "preScore", "score", "preBind", "bind", "postBind", "permit", "preEnqueue", "queueSort", "placementGenerate", "placementScore"] as const satisfies readonly ExtensionPoint[];

type Gates = ReadonlySet<string>;

/** `gates`: those that are off by default and were switched on. */
export function schedulerSettings(text: string, gates: Gates = new Set()): SchedulerSettings {
  const configuration = readConfiguration(text, gates);
  const problems = validateConfiguration(configuration);
  if (problems.length > 0) throw new ConfigurationError(formatFieldErrors(problems));
  const { podInitialBackoffSeconds, podMaxBackoffSeconds } = configuration;
  for (const { tlsConfig } of configuration.extenders) checkTls(tlsConfig ?? {});
  if (ignoredBy(configuration.extenders).length > 0 && configuration.profiles.some((profile) => !pluginsWithArgs(profile, gates).has("NodeResourcesFit")))
    throw new ConfigurationError("couldn't build extenders: can't find NodeResourcesFitArgs in plugin config");
  const extenders = configuration.extenders.toSorted((a, b) => Number(a.ignorable ?? false) - Number(b.ignorable ?? false)); // those that may be passed over are asked last
  return { profiles: configuration.profiles.map((profile) => made(profile, configuration, gates)), extenders, backoff: { minMs: podInitialBackoffSeconds * 1000, maxMs: podMaxBackoffSeconds * 1000 } };
}

/** What can be told without reading files. Source: client-go rest/config.go TLSConfigFor */
function checkTls({ insecure, caData, caFile }: NonNullable<ExtenderConfig["tlsConfig"]>): void {
  if (insecure && (caData || caFile)) throw new ConfigurationError("couldn't build extenders: specifying a root certificates file with the insecure flag is not allowed");
  if (caData && !Buffer.from(caData, "base64").toString().includes("-----BEGIN CERTIFICATE-----")) throw new ConfigurationError("couldn't build extenders: unable to load root certificates: unable to parse bytes as PEM block");
}

function made(config: ProfileConfig, configuration: SchedulerConfiguration, gates: Gates): Profile {
  try {
    return profileOf(config, configuration, gates);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    throw new ConfigurationError(`initializing profiles: creating profile for scheduler name ${config.schedulerName}: ${error.message}`, { cause: error });
  }
}

function profileOf(config: ProfileConfig, { percentageOfNodesToScore, extenders }: SchedulerConfiguration, gates: Gates): Profile {
  const { plugins, schedulerName } = config;
  const multiPoint = merged(defaultPlugins(gates), plugins.multiPoint ?? {});
  const at = Object.fromEntries(QUEUE_ORDER.map((point) => [point, pluginsAt(point, plugins, { multiPoint, gates })])) as unknown as Record<ExtensionPoint, readonly string[]>;
  const { queueSort, bind } = at;
  if (queueSort.length !== 1) throw new ConfigurationError(`only one queue sort plugin required for profile with scheduler name "${schedulerName}", but got ${queueSort.length}`);
  if (bind.length === 0) throw new ConfigurationError(`at least one bind plugin is needed for profile with scheduler name "${schedulerName}"`);
  const problems = QUEUE_ORDER.some((point) => at[point].includes("NodeResourcesFit")) ? validateFit(argsOf(config, "NodeResourcesFit")) : [];
  if (problems.length > 0) throw new ConfigurationError(`initializing plugin "NodeResourcesFit": ${formatFieldErrors(problems)}`);
  const weights = weightsOf([...(plugins.score?.enabled ?? []), ...multiPoint]);
  const ignored = ignoredBy(extenders);
  const { minCandidateNodesAbsolute, minCandidateNodesPercentage } = argsOf(config, "DefaultPreemption");
  const { bindingTimeout } = argsOf(config, "DynamicResources");
  return {
    schedulerName,
    percentageOfNodesToScore: config.percentageOfNodesToScore ?? percentageOfNodesToScore,
    filters: at.filter.flatMap((name) => PLUGINS[name]?.filter?.(config, ignored) ?? []),
    scores: at.score.flatMap((name) => {
      const score = PLUGINS[name]?.score?.(config);
      return score ? [{ ...score, weight: weights.get(name) ?? 1 }] : [];
    }),
    preemption: at.postFilter.includes("DefaultPreemption") ? { candidatesMin: minCandidateNodesAbsolute, candidatesPercent: minCandidateNodesPercentage } : undefined,
    bindsVolumes: at.preBind.includes("VolumeBinding"),
    bindTimeoutMs: argsOf(config, "VolumeBinding").bindTimeoutSeconds * 1000,
    bindsDevices: at.preBind.includes("DynamicResources"),
    freesDevices: at.postFilter.includes("DynamicResources"),
    deviceBindingTimeoutMs: parseDurationMs(bindingTimeout),
    honorsGates: at.preEnqueue.includes("SchedulingGates"),
    awaitsClaims: at.preEnqueue.includes("DynamicResources"),
    ...(gates.has("GangScheduling") && { gangs: { awaited: at.preEnqueue.includes(GANG_SCHEDULING), permitted: at.permit.includes(GANG_SCHEDULING) } }),
    ...(gates.has("TopologyAwareWorkloadScheduling") && { placements: placementRules(config, at, multiPoint) }),
    ...(gates.has("WorkloadAwarePreemption") && { preemptsForGroups: true }),
    batching: spreadsByDefault(config, at) ? undefined : { byLabels: at.score.includes("InterPodAffinity") && !argsOf(config, "InterPodAffinity").ignorePreferredTermsOfExistingPods },
  };
}

function placementRules(config: ProfileConfig, at: Readonly<Record<ExtensionPoint, readonly string[]>>, multiPoint: readonly PluginRef[]): PlacementRules {
  const said = [...(config.plugins.placementScore?.enabled ?? []), ...multiPoint];
  const weightOf = (name: string): number => (at.placementScore.includes(name) ? said.find((one) => one.name === name)?.weight || 1 : 0);
  return { byTopology: at.placementGenerate.includes("TopologyPlacementGenerator"), podsWeight: weightOf("PodGroupPodsCount"), fitWeight: weightOf("NodeResourcesFit"), resources: resourceWeights(config) };
}

/** Resources that extenders count. */
export function ignoredBy(extenders: readonly ExtenderConfig[]): string[] {
  return extenders.flatMap(({ managedResources = [] }) => managedResources.filter(({ ignoredByScheduler }) => ignoredByScheduler).map(({ name }) => name));
}

/** Plugins that are on somewhere, or that arguments are given for. Source: apis/config/v1/defaults.go setDefaults_KubeSchedulerProfile */
export function pluginsWithArgs({ plugins, pluginConfig }: ProfileConfig, gates: Gates): Set<string> {
  const refs = [merged(defaultPlugins(gates), plugins.multiPoint ?? {}), ...EXTENSION_POINTS.map((point) => plugins[point]?.enabled ?? []), pluginConfig].flat();
  return new Set(refs.map(({ name }) => name));
}

function spreadsByDefault(config: ProfileConfig, at: Readonly<Record<ExtensionPoint, readonly string[]>>): boolean {
  const { defaultConstraints, defaultingType } = argsOf(config, "PodTopologySpread");
  return (at.filter.includes("PodTopologySpread") || at.score.includes("PodTopologySpread")) && (defaultingType === "System" || (defaultConstraints?.length ?? 0) > 0);
}

/** The defaults as the profile changes them: taken away, replaced in place, added at the end. */
export function merged(defaults: readonly PluginRef[], { enabled = [], disabled = [] }: PluginSet): PluginRef[] {
  const gone = new Set(disabled.map(({ name }) => name));
  const kept = gone.has("*") ? [] : defaults.filter(({ name }) => !gone.has(name));
  const replaced = new Set<PluginRef>();
  const first = kept.map((plugin) => {
    const own = enabled.findLast(({ name }) => name === plugin.name);
    if (own) replaced.add(own);
    return own ?? plugin;
  });
  return [...first, ...enabled.filter((plugin) => !replaced.has(plugin))];
}

/** What runs at one point: what is set for it and for multiPoint both, then the rest of multiPoint, then the rest of what is set for it. */
function pluginsAt(point: ExtensionPoint, sets: PluginSets, { multiPoint, gates }: { readonly multiPoint: readonly PluginRef[]; readonly gates: Gates }): string[] {
  const type = `${point[0]!.toUpperCase()}${point.slice(1)}Plugin`;
  const own: string[] = [];
  for (const { name } of sets[point]?.enabled ?? []) {
    const row = known(name, type, gates);
    if (!row.points.includes(point)) throw new ConfigurationError(`plugin "${name}" does not extend ${type} plugin`);
    if (own.includes(name)) throw new ConfigurationError(`plugin "${name}" already registered as "${type}"`);
    own.push(name);
  }
  const disabled = new Set((sets[point]?.disabled ?? []).map(({ name }) => name));
  if (disabled.has("*")) return own;
  const shared: string[] = [];
  for (const { name } of multiPoint) {
    if (!known(name, type, gates).points.includes(point) || disabled.has(name) || own.includes(name)) continue;
    if (shared.includes(name)) throw new ConfigurationError(`plugin "${name}" already registered as "${type}"`);
    shared.push(name);
  }
  const overriding = own.filter((name) => multiPoint.some((one) => one.name === name));
  return [...overriding, ...shared, ...own.filter((name) => !overriding.includes(name))];
}

function known(name: string, type: string, gates: Gates): PluginRow {
  const row = Object.hasOwn(PLUGINS, name) ? PLUGINS[name] : undefined;
  if (!row || (row.gate !== undefined && !gates.has(row.gate))) throw new ConfigurationError(`${type} "${name}" does not exist`);
  return row;
}

/** What is said for scores alone comes first, and counts. */
function weightsOf(plugins: readonly PluginRef[]): Map<string, number> {
  const weights = new Map<string, number>();
  let total = 0;
  for (const { name, weight } of plugins) {
    if (!PLUGINS[name]?.score || weights.has(name)) continue;
    weights.set(name, weight || 1);
    const overflows = total < 0; // upstream's own sum, too
    total += weight || 1;
    if (overflows || total > TOTAL_WEIGHT_MAX) throw new ConfigurationError("score plugins: total score of Score plugins could overflow");
  }
  return weights;
}
