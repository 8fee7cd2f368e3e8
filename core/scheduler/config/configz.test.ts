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
