import { expect, test } from "vitest";
import { schedulerConfigz } from "./configz.ts";

interface Shown { readonly leaderElection: object; readonly profiles: readonly { readonly schedulerName: string; readonly plugins: Record<string, object>; readonly pluginConfig: readonly { readonly name: string; readonly args: object }[] }[] }
const argsOf = (shown: Shown, name: string): object | undefined => shown.profiles[0]!.pluginConfig.find((one) => one.name === name)?.args;

test("without a file the scheduler shows upstream's defaults, and that it elects nobody alone", () => {
  const shown = schedulerConfigz(undefined, { isShared: false, profiling: true }) as Shown;
  expect(shown).toMatchObject({ kind: "KubeSchedulerConfiguration", apiVersion: "kubescheduler.config.k8s.io/v1", parallelism: 16, leaderElection: { leaderElect: false, resourceName: "kube-scheduler" }, podInitialBackoffSeconds: 1, podMaxBackoffSeconds: 10 });
  expect(shown.profiles.map(({ schedulerName }) => schedulerName)).toEqual(["default-scheduler"]);
  expect((shown.profiles[0]!.plugins["multiPoint"] as { enabled: object[] }).enabled.slice(3, 6)).toEqual([{ name: "NodeName", weight: 0 }, { name: "TaintToleration", weight: 3 }, { name: "NodeAffinity", weight: 2 }]);
  expect(argsOf(shown, "DynamicResources")).toEqual({ kind: "DynamicResourcesArgs", apiVersion: "kubescheduler.config.k8s.io/v1", filterTimeout: "10s", bindingTimeout: "10m0s" });
  expect(argsOf(shown, "PodTopologySpread")).toEqual({ kind: "PodTopologySpreadArgs", apiVersion: "kubescheduler.config.k8s.io/v1", defaultingType: "System" });
});

test("what the file says is shown", () => {
  const shown = schedulerConfigz(`
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podMaxBackoffSeconds: 20
profiles:
- schedulerName: tight
  pluginConfig:
  - {name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}
`, { isShared: true, profiling: false }) as Shown;
  expect(shown).toMatchObject({ podMaxBackoffSeconds: 20, leaderElection: { leaderElect: true } });
  expect(argsOf(shown, "NodeResourcesFit")).toMatchObject({ scoringStrategy: { type: "MostAllocated", resources: [{ name: "cpu", weight: 1 }, { name: "memory", weight: 1 }] } });
});

test("a profile is shown with upstream's plugins, as it changes them, and the arguments of those that are on", () => {
  const shown = schedulerConfigz(`
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders: [{urlPrefix: "http://x", httpTimeout: 90s}, {urlPrefix: "http://y", managedResources: [{name: example.com/x, ignoredByScheduler: true}]}]
profiles:
- plugins:
    multiPoint: {disabled: [{name: InterPodAffinity}, {name: ImageLocality}], enabled: [{name: NodeAffinity, weight: 50}, {name: ImageLocality}]}
    score: {disabled: [{name: NodeResourcesFit}]}
  pluginConfig: [{name: Mine, args: {a: 1}}]
`, { isShared: false, profiling: false }) as Shown & { readonly extenders: object[] };
  const { plugins, pluginConfig } = shown.profiles[0]!;
  const { enabled, disabled } = plugins["multiPoint"] as { enabled: object[]; disabled: object[] };
  expect([enabled.slice(0, 6).at(-1), enabled.at(-1), disabled]).toEqual([{ name: "NodeAffinity", weight: 50 }, { name: "ImageLocality", weight: 0 }, [{ name: "InterPodAffinity", weight: 0 }, { name: "ImageLocality", weight: 0 }]]);
  expect([plugins["score"], plugins["filter"]]).toEqual([{ disabled: [{ name: "NodeResourcesFit", weight: 0 }] }, {}]);
  expect(pluginConfig.map(({ name }) => name)).toEqual(["DefaultPreemption", "DynamicResources", "NodeAffinity", "NodeResourcesBalancedAllocation", "NodeResourcesFit", "PodTopologySpread", "VolumeBinding"]);
  expect(shown.extenders).toEqual([{ urlPrefix: "http://x", httpTimeout: "1m30s" }, { urlPrefix: "http://y", managedResources: [{ name: "example.com/x", ignoredByScheduler: true }], httpTimeout: "5s" }]);
  expect(argsOf(shown, "NodeResourcesFit")).toMatchObject({ ignoredResources: ["example.com/x"] });
});

test("plugins of features that are switched on are shown last", () => {
  const shown = schedulerConfigz(undefined, { isShared: false, profiling: true, gates: new Set(["GangScheduling"]) }) as Shown;
  expect((shown.profiles[0]!.plugins["multiPoint"] as { enabled: object[] }).enabled.slice(-2)).toEqual([{ name: "NodeDeclaredFeatures", weight: 0 }, { name: "GangScheduling", weight: 0 }]);
});
