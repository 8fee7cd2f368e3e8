/** What the scheduler shows at /configz: the configuration it runs with, as upstream writes one out, defaults included. */
import { formatDurationNs, parseDurationNs } from "../../api/meta/duration.ts";
import { API_VERSION, argsOf, EXTENSION_POINTS, KIND, type PluginArgs, type ProfileConfig, readConfiguration } from "./configuration.ts";
import { DEFAULT_PLUGINS } from "./registry.ts";

const WITHOUT_FILE = `apiVersion: ${API_VERSION}\nkind: ${KIND}\n`;
const WITH_ARGS: readonly (keyof PluginArgs)[] = ["DefaultPreemption", "DynamicResources", "InterPodAffinity", "NodeAffinity", "NodeResourcesBalancedAllocation", "NodeResourcesFit", "PodTopologySpread", "VolumeBinding"];

/** `text`: what the file said. */
export function schedulerConfigz(text: string | undefined, { isShared, profiling }: { readonly isShared: boolean; readonly profiling: boolean }): object {
  const { parallelism, percentageOfNodesToScore, podInitialBackoffSeconds, podMaxBackoffSeconds, profiles, extenders } = readConfiguration(text ?? WITHOUT_FILE);
  return {
    kind: KIND, apiVersion: API_VERSION, parallelism,
    leaderElection: { leaderElect: isShared, leaseDuration: "15s", renewDeadline: "10s", retryPeriod: "2s", resourceLock: "leases", resourceName: "kube-scheduler", resourceNamespace: "kube-system" },
    enableProfiling: profiling, enableContentionProfiling: false, percentageOfNodesToScore, podInitialBackoffSeconds, podMaxBackoffSeconds,
    profiles: profiles.map(profileOf), ...(extenders.length > 0 ? { extenders } : {}),
  };
}

function profileOf(profile: ProfileConfig): object {
  const { schedulerName, percentageOfNodesToScore, plugins, pluginConfig } = profile;
  const others = pluginConfig.filter(({ name }) => !(WITH_ARGS as readonly string[]).includes(name));
  return {
    schedulerName, ...(percentageOfNodesToScore === undefined ? {} : { percentageOfNodesToScore }),
    plugins: {
      ...Object.fromEntries(EXTENSION_POINTS.map((point) => [point, plugins[point] ?? {}])),
      multiPoint: plugins.multiPoint ?? { enabled: DEFAULT_PLUGINS.map(({ name, weight = 0 }) => ({ name, weight })) },
      placementGenerate: plugins.placementGenerate ?? {}, placementScore: plugins.placementScore ?? {},
    },
    pluginConfig: [...WITH_ARGS.map((name) => ({ name, args: { kind: `${name}Args`, apiVersion: API_VERSION, ...shownArgs(argsOf(profile, name)) } })), ...others],
  };
}

/** As Go writes them: no empty lists, and durations in its own form. */
function shownArgs(args: object): object {
  return Object.fromEntries(Object.entries(args).filter(([, value]) => !(Array.isArray(value) && value.length === 0)).map(([name, value]) => [name, name.endsWith("Timeout") ? formatDurationNs(parseDurationNs(value as string)) : value]));
}
