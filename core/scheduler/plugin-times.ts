/** How long plugins take, one by one. Of one pod in ten, since reading the clock costs as much as some of them. Source: kubernetes v1.36 pkg/scheduler/scheduler.go pluginMetricsSamplePercent */
export const TIMED_EVERY = 10;

export type PluginPoint = "PreFilter" | "Filter" | "PreScore" | "Score";
export type PluginStatus = "Success" | "Skip" | "Unschedulable" | "UnschedulableAndUnresolvable";

export interface PluginTimes {
  nowMs(): number;
  took(point: PluginPoint, plugin: string, status: PluginStatus, ms: number): void;
}

/** What `does` returns, and how long it took. */
export function timed<T>(times: PluginTimes | undefined, { point, plugin }: { readonly point: PluginPoint; readonly plugin: string }, does: () => T, statusOf: (result: T) => PluginStatus): T {
  if (!times) return does();
  const startMs = times.nowMs();
  const result = does();
  times.took(point, plugin, statusOf(result), times.nowMs() - startMs);
  return result;
}
