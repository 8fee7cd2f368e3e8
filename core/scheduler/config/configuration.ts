/**
 * KubeSchedulerConfiguration, kubescheduler.config.k8s.io/v1: what a file may say about the scheduler, read strictly, with upstream's defaults.
 * Checked by validate.ts; made into profiles by profiles.ts.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/kube-scheduler/config/v1/types.go, pkg/scheduler/apis/config/v1/defaults.go
 */
import type { NodeAffinity, TopologySpreadConstraint } from "../../api/gen/core.v1.ts";
import { readYaml } from "../../api/codec/yaml.ts";
import { misfits, type Shape } from "./shape.ts";

export const API_VERSION = "kubescheduler.config.k8s.io/v1";
export const KIND = "KubeSchedulerConfiguration";

export interface PluginRef { readonly name: string; readonly weight?: number }
export interface PluginSet { readonly enabled?: readonly PluginRef[]; readonly disabled?: readonly PluginRef[] }
export const EXTENSION_POINTS = ["preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit", "preBind", "bind", "postBind", "placementGenerate", "placementScore"] as const;
export type ExtensionPoint = (typeof EXTENSION_POINTS)[number];
export type PluginSets = Readonly<Partial<Record<ExtensionPoint | "multiPoint", PluginSet>>>;

export interface ResourceSpec { readonly name: string; readonly weight?: number }
export interface ShapePoint { readonly utilization: number; readonly score: number }

/** By name of plugin. */
export interface PluginArgs {
  readonly DefaultPreemption: { readonly minCandidateNodesPercentage: number; readonly minCandidateNodesAbsolute: number };
  readonly InterPodAffinity: { readonly hardPodAffinityWeight: number; readonly ignorePreferredTermsOfExistingPods: boolean };
  readonly NodeAffinity: { readonly addedAffinity?: NodeAffinity };
  readonly NodeResourcesBalancedAllocation: { readonly resources: readonly ResourceSpec[] };
  readonly NodeResourcesFit: {
    readonly ignoredResources: readonly string[];
    readonly ignoredResourceGroups: readonly string[];
    readonly scoringStrategy: { readonly type: string; readonly resources: readonly ResourceSpec[]; readonly requestedToCapacityRatio?: { readonly shape?: readonly ShapePoint[] } };
  };
  readonly PodTopologySpread: { readonly defaultConstraints: readonly TopologySpreadConstraint[]; readonly defaultingType: string };
  readonly VolumeBinding: { readonly bindTimeoutSeconds: number; readonly shape?: readonly ShapePoint[] };
  readonly DynamicResources: { readonly filterTimeout: string; readonly bindingTimeout: string };
}

export interface PluginConfig { readonly name: string; readonly args?: Readonly<Record<string, unknown>> }

export interface ProfileConfig {
  readonly schedulerName: string;
  readonly percentageOfNodesToScore?: number;
  readonly plugins: PluginSets;
  readonly pluginConfig: readonly PluginConfig[];
}

export interface ExtenderConfig {
  readonly urlPrefix: string;
  readonly filterVerb?: string;
  readonly preemptVerb?: string;
  readonly prioritizeVerb?: string;
  readonly weight?: number;
  readonly bindVerb?: string;
  readonly enableHTTPS?: boolean;
  readonly tlsConfig?: {
    readonly insecure?: boolean; readonly serverName?: string;
    readonly certFile?: string; readonly keyFile?: string; readonly caFile?: string; readonly certData?: string; readonly keyData?: string; readonly caData?: string;
  };
  readonly httpTimeout?: string;
  readonly nodeCacheCapable?: boolean;
  readonly managedResources?: readonly { readonly name: string; readonly ignoredByScheduler?: boolean }[];
  readonly ignorable?: boolean;
}

export interface SchedulerConfiguration {
  readonly parallelism: number;
  readonly percentageOfNodesToScore: number;
  readonly podInitialBackoffSeconds: number;
  readonly podMaxBackoffSeconds: number;
  readonly delayCacheUntilActive?: boolean | undefined;
  readonly profiles: readonly ProfileConfig[];
  readonly extenders: readonly ExtenderConfig[];
  /** StorageCapacityScoring is switched on: VolumeBinding has a shape, its own or the default. */
  readonly scoresStorage: boolean;
  readonly clientConnection: { readonly burst?: number };
  readonly leaderElection: { readonly leaderElect?: boolean; readonly leaseDuration?: string; readonly renewDeadline?: string; readonly retryPeriod?: string; readonly resourceLock?: string };
}

/** The file cannot be read as a KubeSchedulerConfiguration. */
export class ConfigurationError extends Error { override readonly name = "ConfigurationError"; }

const v1 = (name: string, fields: Readonly<Record<string, Shape>>): Shape => ({ go: `v1.${name}`, fields });
const PLUGIN = v1("Plugin", { name: "string", weight: "int32" });
const PLUGIN_SET = v1("PluginSet", { enabled: { list: PLUGIN }, disabled: { list: PLUGIN } });
const RESOURCES: Shape = { list: v1("ResourceSpec", { name: "string", weight: "int64" }) };
const POINTS: Shape = { list: v1("UtilizationShapePoint", { utilization: "int32", score: "int32" }) };
const META = { apiVersion: "string", kind: "string" } as const;

const REQUIREMENTS: Shape = { list: v1("NodeSelectorRequirement", { key: "string", operator: { text: "v1.NodeSelectorOperator" }, values: { list: "string" } }) };
const TERM = v1("NodeSelectorTerm", { matchExpressions: REQUIREMENTS, matchFields: REQUIREMENTS });
const NODE_AFFINITY = v1("NodeAffinity", {
  requiredDuringSchedulingIgnoredDuringExecution: v1("NodeSelector", { nodeSelectorTerms: { list: TERM } }),
  preferredDuringSchedulingIgnoredDuringExecution: { list: v1("PreferredSchedulingTerm", { weight: "int32", preference: TERM }) },
});
const LABEL_SELECTOR = v1("LabelSelector", {
  matchLabels: "any", matchExpressions: { list: v1("LabelSelectorRequirement", { key: "string", operator: { text: "v1.LabelSelectorOperator" }, values: { list: "string" } }) },
});

const ARGS: Readonly<Record<keyof PluginArgs, Readonly<Record<string, Shape>>>> = {
  DefaultPreemption: { minCandidateNodesPercentage: "int32", minCandidateNodesAbsolute: "int32" },
  InterPodAffinity: { hardPodAffinityWeight: "int32", ignorePreferredTermsOfExistingPods: "boolean" },
  NodeAffinity: { addedAffinity: NODE_AFFINITY },
  NodeResourcesBalancedAllocation: { resources: RESOURCES },
  NodeResourcesFit: {
    ignoredResources: { list: "string" }, ignoredResourceGroups: { list: "string" },
    scoringStrategy: v1("ScoringStrategy", { type: { text: "v1.ScoringStrategyType" }, resources: RESOURCES, requestedToCapacityRatio: v1("RequestedToCapacityRatioParam", { shape: POINTS }) }),
  },
  PodTopologySpread: {
    defaultConstraints: { list: v1("TopologySpreadConstraint", {
      maxSkew: "int32", topologyKey: "string", whenUnsatisfiable: { text: "v1.UnsatisfiableConstraintAction" }, labelSelector: LABEL_SELECTOR, minDomains: "int32",
      nodeAffinityPolicy: { text: "v1.NodeInclusionPolicy" }, nodeTaintsPolicy: { text: "v1.NodeInclusionPolicy" }, matchLabelKeys: { list: "string" },
    }) },
    defaultingType: { text: "v1.PodTopologySpreadConstraintsDefaulting" },
  },
  VolumeBinding: { bindTimeoutSeconds: "int64", shape: POINTS },
  DynamicResources: { filterTimeout: "duration", bindingTimeout: "duration" },
};
/** What the group has under this version. */
const KINDS: ReadonlySet<string> = new Set([KIND, ...Object.keys(ARGS).map((name) => `${name}Args`)]);

const SETS = [...EXTENSION_POINTS, "multiPoint"];
const CONFIGURATION = v1(KIND, {
  ...META, parallelism: "int32", percentageOfNodesToScore: "int32", podInitialBackoffSeconds: "int64", podMaxBackoffSeconds: "int64", delayCacheUntilActive: "boolean",
  enableProfiling: "boolean", enableContentionProfiling: "boolean",
  leaderElection: {
    go: "v1alpha1.LeaderElectionConfiguration",
    fields: { leaderElect: "boolean", leaseDuration: "duration", renewDeadline: "duration", retryPeriod: "duration", resourceLock: "string", resourceName: "string", resourceNamespace: "string" },
  },
  clientConnection: { go: "v1alpha1.ClientConnectionConfiguration", fields: { kubeconfig: "string", acceptContentTypes: "string", contentType: "string", qps: "float32", burst: "int32" } },
  profiles: { list: v1("KubeSchedulerProfile", {
    schedulerName: "string", percentageOfNodesToScore: "int32", plugins: v1("Plugins", Object.fromEntries(SETS.map((name) => [name, PLUGIN_SET]))),
    pluginConfig: { list: v1("PluginConfig", { name: "string", args: "any" }) },
  }) },
  extenders: { list: v1("Extender", {
    urlPrefix: "string", filterVerb: "string", preemptVerb: "string", prioritizeVerb: "string", weight: "int64", bindVerb: "string", enableHTTPS: "boolean", httpTimeout: "duration", nodeCacheCapable: "boolean", ignorable: "boolean",
    tlsConfig: v1("ExtenderTLSConfig", { insecure: "boolean", serverName: "string", certFile: "string", keyFile: "string", caFile: "string", certData: "base64", keyData: "base64", caData: "base64" }),
    managedResources: { list: v1("ExtenderManagedResource", { name: "string", ignoredByScheduler: "boolean" }) },
  }) },
});

/** Throws ConfigurationError with the first value of another type, or else with every field there is none of; validate.ts judges the rest. */
export function readConfiguration(text: string, gates: ReadonlySet<string> = new Set()): SchedulerConfiguration {
  const { value, duplicates } = readYaml(text);
  const document = value as Record<string, unknown> | null;
  const { apiVersion, kind } = document ?? {};
  if (typeof kind !== "string" || kind === "") throw new ConfigurationError(`Object 'Kind' is missing in '${text}'`);
  if (typeof apiVersion !== "string" || apiVersion === "") throw new ConfigurationError(`Object 'apiVersion' is missing in '${text}'`);
  if (kind !== KIND && KINDS.has(kind) && apiVersion === API_VERSION) throw new ConfigurationError(`couldn't decode as ${KIND}, got ${apiVersion}, Kind=${kind}: `);
  if (kind !== KIND || apiVersion !== API_VERSION) throw new ConfigurationError(`no kind "${kind}" is registered for version "${apiVersion}": a ${KIND} of ${API_VERSION} is wanted`);
  const given = document as unknown as Partial<SchedulerConfiguration> & { profiles?: Partial<ProfileConfig>[] };
  const { wrong, unknown } = misfits(document, CONFIGURATION);
  if (wrong !== undefined) throw new ConfigurationError(wrong);
  const problems = [...duplicates, ...unknown];
  if (problems.length > 0) throw new ConfigurationError(`strict decoding error: ${problems.join(", ")}`);
  checkArgs(given.profiles ?? []);
  const scoresStorage = gates.has("StorageCapacityScoring");
  const profiles: readonly Partial<ProfileConfig>[] = given.profiles?.length ? given.profiles : [{}];
  return {
    parallelism: given.parallelism ?? 16, percentageOfNodesToScore: given.percentageOfNodesToScore ?? 0,
    podInitialBackoffSeconds: given.podInitialBackoffSeconds ?? 1, podMaxBackoffSeconds: given.podMaxBackoffSeconds ?? 10, delayCacheUntilActive: given.delayCacheUntilActive,
    extenders: given.extenders ?? [], leaderElection: given.leaderElection ?? {}, clientConnection: given.clientConnection ?? {},
    scoresStorage,
    profiles: profiles.map((profile) => {
      const pluginConfig = profile.pluginConfig ?? [];
      return { ...profile, schedulerName: profile.schedulerName ?? (profiles.length === 1 ? "default-scheduler" : ""), plugins: profile.plugins ?? {}, pluginConfig: scoresStorage ? withShape(pluginConfig) : pluginConfig };
    }),
  };
}

/** The emptier what holds the volumes stays, the better. */
const EMPTIEST: readonly ShapePoint[] = [{ utilization: 0, score: 10 }, { utilization: 100, score: 0 }];

function withShape(configs: readonly PluginConfig[]): readonly PluginConfig[] {
  const name = "VolumeBinding", has = ({ args }: PluginConfig): boolean => ((args as Partial<PluginArgs[typeof name]> | null | undefined)?.shape ?? []).length > 0;
  if (!configs.some((one) => one.name === name)) return [...configs, { name, args: { shape: EMPTIEST } }];
  return configs.map((one) => (one.name === name && !has(one) ? { ...one, args: { ...one.args, shape: EMPTIEST } } : one));
}

/** Throws what is wrong with the first that are. Arguments of plugins that have none of their own are taken as they are, as upstream does. */
function checkArgs(profiles: readonly Partial<ProfileConfig>[]): void {
  for (const [i, { pluginConfig }] of profiles.entries()) for (const [j, config] of (pluginConfig ?? []).entries()) {
    const problem = argProblem(config, `decoding .profiles[${i}].pluginConfig[${j}]`);
    if (problem) throw new ConfigurationError(problem);
  }
}

function argProblem({ name, args }: PluginConfig, at: string): string | undefined {
  const fields = ARGS[name as keyof PluginArgs] as Readonly<Record<string, Shape>> | undefined;
  if (!fields || args === undefined || args === null) return undefined;
  const { kind = `${name}Args`, apiVersion = API_VERSION } = args;
  if (apiVersion !== API_VERSION || !KINDS.has(String(kind))) return `${at}: decoding args for plugin ${name}: no kind "${String(kind)}" is registered for version "${String(apiVersion)}"`;
  if (kind !== `${name}Args`) return `${at}: args for plugin ${name} were not of type ${name}Args.kubescheduler.config.k8s.io, got ${String(kind)}.kubescheduler.config.k8s.io`;
  const { wrong, unknown } = misfits(args, v1(`${name}Args`, { ...META, ...fields }));
  const strict = wrong === undefined ? "strict decoding error: " : ""; // it could be read all the same
  return wrong === undefined && unknown.length === 0 ? undefined : `${strict}${at}: ${strict}decoding args for plugin ${name}: ${strict}${wrong ?? unknown.join(", ")}`;
}

const CPU_AND_MEMORY: readonly ResourceSpec[] = [{ name: "cpu", weight: 1 }, { name: "memory", weight: 1 }];

/** What the profile says for the plugin, over upstream's defaults. */
export function argsOf<N extends keyof PluginArgs>({ pluginConfig }: Pick<ProfileConfig, "pluginConfig">, name: N): PluginArgs[N] {
  const given = (pluginConfig.find((one) => one.name === name)?.args ?? {}) as Partial<PluginArgs[N]>;
  return defaulted[name](withoutNulls(given) as never) as PluginArgs[N];
}

const defaulted: { readonly [N in keyof PluginArgs]: (given: Partial<PluginArgs[N]>) => PluginArgs[N] } = {
  DefaultPreemption: (given) => ({ minCandidateNodesPercentage: 10, minCandidateNodesAbsolute: 100, ...given }),
  InterPodAffinity: (given) => ({ hardPodAffinityWeight: 1, ignorePreferredTermsOfExistingPods: false, ...given }),
  NodeAffinity: (given) => given,
  NodeResourcesBalancedAllocation: ({ resources = [] }) => ({ resources: weighted(resources) }),
  NodeResourcesFit: ({ ignoredResources = [], ignoredResourceGroups = [], scoringStrategy }) => ({
    ignoredResources, ignoredResourceGroups,
    scoringStrategy: scoringStrategy ? { ...scoringStrategy, type: scoringStrategy.type ?? "", resources: weighted(scoringStrategy.resources ?? []) } : { type: "LeastAllocated", resources: CPU_AND_MEMORY },
  }),
  PodTopologySpread: ({ defaultConstraints = [], defaultingType }) => ({ defaultConstraints, defaultingType: defaultingType || "System" }),
  VolumeBinding: (given) => ({ bindTimeoutSeconds: 600, ...given }),
  DynamicResources: (given) => ({ filterTimeout: "10s", bindingTimeout: "600s", ...given }),
};

function weighted(resources: readonly ResourceSpec[]): readonly ResourceSpec[] {
  return resources.length === 0 ? CPU_AND_MEMORY : resources.map(({ name, weight }) => ({ name, weight: weight || 1 }));
}

function withoutNulls(given: object): object {
  return Object.fromEntries(Object.entries(given).filter(([name, value]) => value !== null && name !== "apiVersion" && name !== "kind"));
}
