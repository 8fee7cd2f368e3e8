/** How long plugins take, one by one. Of one pod in ten, since reading the clock costs as much as some of them. Source: kubernetes v1.36 pkg/scheduler/scheduler.go pluginMetricsSamplePercent */
export const TIMED_EVERY = 10;

export type PluginPoint = "PreFilter" | "Filter" | "PreScore" | "Score";
export type PluginStatus = "Success" | "Skip" | "Unschedulable" | "UnschedulableAndUnresolvable";

export interface PluginTimes {
  nowMs(): number;
  took(point: PluginPoint, plugin: string, status: PluginStatus, ms: number): void;
}

/** How long the steps of a decision took, all plugins together, and how often each was asked. */
export interface StepTimes {
  nowMs(): number;
  step(point: PluginPoint, status: PluginStatus, ms: number): void;
  asked(point: PluginPoint, plugins: Iterable<readonly [plugin: string, times: number]>): void;
}

/** What the others prepare for a pod, these do not: to upstream they have no such extension point. */
export const UNPREPARED: Readonly<Record<"PreFilter" | "PreScore", ReadonlySet<string>>> = {
  PreFilter: new Set(["NodeUnschedulable", "NodeName", "TaintToleration"]), PreScore: new Set(["ImageLocality", "DynamicResources"]),
};

/** What `does` returns, and how long it took. */
export function timed<T>(times: PluginTimes | undefined, { point, plugin }: { readonly point: PluginPoint; readonly plugin: string }, does: () => T, statusOf: (result: T) => PluginStatus): T {
  if (!times) return does();
  const startMs = times.nowMs();
  const result = does();
  times.took(point, plugin, statusOf(result), times.nowMs() - startMs);
  return result;
}
