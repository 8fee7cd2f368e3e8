/** What the scheduler shows at /configz: the configuration it runs with, as upstream writes one out, defaults included. */
import { formatDurationNs, parseDurationNs } from "../../api/meta/duration.ts";
import { API_VERSION, argsOf, EXTENSION_POINTS, type ExtenderConfig, KIND, type PluginArgs, type PluginRef, type PluginSet, type ProfileConfig, readConfiguration } from "./configuration.ts";
import { ignoredBy, merged, pluginsWithArgs } from "./profiles.ts";
import { defaultPlugins } from "./registry.ts";

export const WITHOUT_FILE = `apiVersion: ${API_VERSION}\nkind: ${KIND}\n`;
const WITH_ARGS: readonly (keyof PluginArgs)[] = ["DefaultPreemption", "DynamicResources", "InterPodAffinity", "NodeAffinity", "NodeResourcesBalancedAllocation", "NodeResourcesFit", "PodTopologySpread", "VolumeBinding"];

/** `text`: what the file said. */
export function schedulerConfigz(text: string | undefined, { isShared, profiling, gates = new Set() }: { readonly isShared: boolean; readonly profiling: boolean; readonly gates?: ReadonlySet<string> }): object {
  const { parallelism, percentageOfNodesToScore, podInitialBackoffSeconds, podMaxBackoffSeconds, delayCacheUntilActive, profiles, extenders } = readConfiguration(text ?? WITHOUT_FILE, gates);
  return {
    kind: KIND, apiVersion: API_VERSION, parallelism,
    leaderElection: { leaderElect: isShared, leaseDuration: "15s", renewDeadline: "10s", retryPeriod: "2s", resourceLock: "leases", resourceName: "kube-scheduler", resourceNamespace: "kube-system" },
    enableProfiling: profiling, enableContentionProfiling: false, percentageOfNodesToScore, podInitialBackoffSeconds, podMaxBackoffSeconds,
    profiles: profiles.map((profile) => profileOf(profile, ignoredBy(extenders), gates)), ...(extenders.length > 0 ? { extenders: extenders.map(extenderOf) } : {}), ...(delayCacheUntilActive ? { delayCacheUntilActive } : {}),
  };
}

/** Arguments are those of plugins that are on, and that have any. */
function profileOf(profile: ProfileConfig, ignored: readonly string[], gates: ReadonlySet<string>): object {
  const { schedulerName, percentageOfNodesToScore, plugins } = profile;
  const { multiPoint } = plugins;
  const everywhere = merged(defaultPlugins(gates), multiPoint ?? {});
  const withArgs = pluginsWithArgs(profile, gates);
  const argsFor = (name: keyof PluginArgs): object => ({ ...argsOf(profile, name), ...(name === "NodeResourcesFit" && ignored.length > 0 && { ignoredResources: ignored }) });
  return {
    schedulerName, ...(percentageOfNodesToScore === undefined ? {} : { percentageOfNodesToScore }),
    plugins: { ...Object.fromEntries(EXTENSION_POINTS.map((point) => [point, setOf(plugins[point] ?? {})])), multiPoint: setOf({ ...multiPoint, enabled: everywhere }) },
    ...only("pluginConfig", WITH_ARGS.filter((name) => withArgs.has(name)).map((name) => ({ name, args: { kind: `${name}Args`, apiVersion: API_VERSION, ...shownArgs(argsFor(name)) } }))),
  };
}

function setOf({ enabled = [], disabled = [] }: PluginSet): object {
  const shown = (refs: readonly PluginRef[]): object[] => refs.map(({ name, weight = 0 }) => ({ name, weight }));
  return { ...only("enabled", shown(enabled)), ...only("disabled", shown(disabled)) };
}

function extenderOf({ httpTimeout, ...rest }: ExtenderConfig): object {
  return { ...rest, httpTimeout: httpTimeout && parseDurationNs(httpTimeout) !== 0n ? formatDurationNs(parseDurationNs(httpTimeout)) : "5s" };
}

function only(name: string, list: readonly object[]): object { return list.length > 0 ? { [name]: list } : {}; }

/** As Go writes them: no empty lists, and durations in its own form. */
function shownArgs(args: object): object {
  return Object.fromEntries(Object.entries(args).filter(([, value]) => !(Array.isArray(value) && value.length === 0)).map(([name, value]) => [name, name.endsWith("Timeout") ? formatDurationNs(parseDurationNs(value as string)) : value]));
}
