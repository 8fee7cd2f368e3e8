/** What the scheduler counts, under upstream's names. Source: kubernetes v1.36 pkg/scheduler/metrics/metrics.go */
import { doubling, exponential, type Metrics, seriesOf } from "../observe/metrics.ts";
import type { BatchMetrics } from "./batch.ts";
import type { DeviceWait } from "./devices/claim-binder.ts";
import type { HintTimes } from "./hint-times.ts";
import type { PluginPoint, PluginStatus, PluginTimes } from "./plugin-times.ts";
import type { SchedulingQueue } from "./queue.ts";
import type { Snapshot } from "./snapshot.ts";

export interface SchedulerMetrics extends BatchMetrics {
  attempt(result: "scheduled" | "unschedulable" | "error", profile: string, ms: number): void;
  algorithm(ms: number): void;
  /** `isFlushed`: it was tried because it had waited for long, not because anything had happened. */
  scheduled(attempts: number, sinceAddedMs: number, isFlushed?: boolean): void;
  queued(queue: string, event: string): void;
  preempted(victims: number): void;
  preemptionTried(): void;
  /** Victims have been told to go, or could not be. */
  preemptionRan(result: "success" | "error", ms: number): void;
  /** A claim for extended resources was made, or could not be. */
  claimMade(status: "success" | "failure"): void;
  waitedForDevices(profile: string, wait: DeviceWait): void;
  /** How often each plugin was asked: by filters and scores, once for each node. */
  evaluated(point: PluginPoint, plugins: Iterable<readonly [plugin: string, times: number]>, profile: string): void;
  /** How long all plugins of an extension point took. */
  point(name: PluginPoint | "PreEnqueue" | "Sign" | "PostFilter" | "Reserve" | "Unreserve" | "Permit" | "PreBindPreFlight" | "PreBind" | "Bind" | "PostBind", profile: string, ms: number, status?: PluginStatus | "Wait" | "Error"): void;
  handled(event: string, ms: number): void;
  /** How long it took to find out whether the node for a pod is known from the one before, and to keep what was thought of it. */
  hintTook(hinted: "hint" | "no_hint", profile: string, ms: number): void;
  storeTook(profile: string, ms: number): void;
  /** A group of pods was thought through: how long that took, and what came of it in the end. */
  groupAlgorithm(ms: number): void;
  groupAttempt(result: "scheduled" | "unschedulable" | "waiting_on_preemption" | "error", profile: string, ms: number): void;
  /** A pod has waited for others before it could be bound. */
  permitWaited(ms: number): void;
  /** How long one plugin took. */
  pluginTook: PluginTimes["took"];
  hinted: HintTimes["hinted"];
}

export function schedulerMetrics(metrics: Metrics, { queue, snapshot, bindings, hasGroups }: { readonly queue: () => SchedulingQueue; readonly snapshot: Snapshot; readonly bindings: () => number; readonly hasGroups?: boolean }): SchedulerMetrics {
  const attempts = metrics.counter("scheduler_schedule_attempts_total", "[STABLE] Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be scheduled, while 'error' means an internal scheduler problem.");
  const duration = metrics.histogram("scheduler_scheduling_attempt_duration_seconds", "[STABLE] Scheduling attempt latency in seconds (scheduling algorithm + binding)", doubling(0.001, 15));
  const algorithm = metrics.histogram("scheduler_scheduling_algorithm_duration_seconds", "[ALPHA] Scheduling algorithm latency in seconds", doubling(0.001, 15));
  const perPod = metrics.histogram("scheduler_pod_scheduling_attempts", "[STABLE] Number of attempts to successfully schedule a pod.", doubling(1, 5));
  const sli = metrics.histogram("scheduler_pod_scheduling_sli_duration_seconds", "[BETA] E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue and might involve multiple scheduling attempts.", doubling(0.01, 20));
  const flushed = metrics.counter(
    "scheduler_pod_scheduled_after_flush_total",
    "[ALPHA] Number of pods that were successfully scheduled after being flushed from unschedulablePods due to timeout. This metric helps detect potential queueing hint misconfigurations or event handling issues.",
  );
  flushed.inc({}, 0);
  const incoming = metrics.counter("scheduler_queue_incoming_pods_total", "[STABLE] Number of pods added to scheduling queues by event and queue type.");
  const victims = metrics.histogram("scheduler_preemption_victims", "[STABLE] Number of selected preemption victims", doubling(1, 7)).with({});
  const preemptions = metrics.counter("scheduler_preemption_attempts_total", "[STABLE] Total preemption attempts in the cluster till now");
  const runs = metrics.counter("scheduler_preemption_goroutines_execution_total", "[ALPHA] Number of preemption goroutines executed.");
  const runDuration = metrics.histogram("scheduler_preemption_goroutines_duration_seconds", "[ALPHA] Duration in seconds for running goroutines for the preemption.", doubling(0.01, 20));
  const claims = metrics.counter("scheduler_resourceclaim_creates_total", "[ALPHA] Number of ResourceClaims creation requests within scheduler");
  const deviceWaits = metrics.histogram("scheduler_dra_bindingconditions_wait_duration_seconds", "[ALPHA] Time in seconds spent waiting for BindingConditions to be satisfied during PreBind.", doubling(0.1, 14));
  const deviceAllocations = metrics.counter("scheduler_dra_bindingconditions_allocations_total", "[ALPHA] Number of allocations using devices with BindingConditions, counted per driver per scheduling attempt");
  metrics.gaugeFrom("scheduler_pending_pods", "[STABLE] Number of pending pods, by the queue type. 'active' means number of pods in activeQ; 'backoff' means number of pods in backoffQ; 'unschedulable' means number of pods in unschedulablePods that the scheduler attempted to schedule and failed; 'gated' is the number of unschedulable pods that the scheduler never attempted to schedule because they are gated.", () =>
    Object.entries(queue().sizes()).map(([name, size]) => [{ queue: name }, size] as const));
  metrics.gaugeFrom("scheduler_cache_size", "[ALPHA] Number of nodes, pods, and assumed (bound) pods in the scheduler cache.", () =>
    Object.entries(snapshot.sizes()).map(([type, size]) => [{ type }, size] as const));
  metrics.gaugeFrom("scheduler_unschedulable_pods", "[BETA] The number of unschedulable pods broken down by plugin name. A pod will increment the gauge for all plugins that caused it to not schedule and so this metric have meaning only when broken down by plugin.", () =>
    queue().heldBy().map(({ plugin, profile, pods }) => [{ plugin, profile }, pods] as const));
  const evaluations = metrics.counter("scheduler_plugin_evaluation_total", "[BETA] Number of attempts to schedule pods by each plugin and the extension point (available only in PreFilter, Filter, PreScore, and Score).");
  const points = metrics.histogram("scheduler_framework_extension_point_duration_seconds", "[STABLE] Latency for running all plugins of a specific extension point.", doubling(0.0001, 12));
  const plugins = metrics.histogram("scheduler_plugin_execution_duration_seconds", "[ALPHA] Duration for running a plugin at a specific extension point.", exponential(0.00001, 1.5, 20));
  const queueing = metrics.histogram("scheduler_queueing_hint_execution_duration_seconds", "[ALPHA] Duration for running a queueing hint function of a plugin.", exponential(0.00001, 1.5, 20));
  const events = metrics.histogram("scheduler_event_handling_duration_seconds", "[ALPHA] Event handling latency in seconds.", doubling(0.0001, 12));
  metrics.gaugeFrom("scheduler_inflight_events", "[ALPHA] Number of events currently tracked in the scheduling queue.", () => [...queue().changesHeld()].map(([event, count]) => [{ event }, count] as const));
  metrics.gaugeFrom("scheduler_goroutines", "[BETA] Number of running goroutines split by the work they do such as binding.", () => [[{ operation: "binding" }, bindings()]]);
  const batchAttempts = metrics.counter("scheduler_batch_attempts_total", "[ALPHA] Counts of results when we attempt to use batching.");
  const batchFlushes = metrics.counter("scheduler_batch_cache_flushed_total", "[ALPHA] Counts of cache flushes by reason.");
  const hints = metrics.histogram("scheduler_get_node_hint_duration_seconds", "[ALPHA] Latency for getting a node hint.", doubling(0.00001, 12));
  const stores = metrics.histogram("scheduler_store_schedule_results_duration_seconds", "[ALPHA] Latency for getting a no.", doubling(0.00001, 12));
  const hinting = seriesOf((profile) => ({ hint: hints.with({ hinted: "hint", profile }), no_hint: hints.with({ hinted: "no_hint", profile }) }));
  const storing = seriesOf((profile) => stores.with({ profile }));
  const evaluated = seriesOf((extension_point) => seriesOf((profile) => seriesOf((plugin) => evaluations.with({ plugin, extension_point, profile }))));
  const took = seriesOf((extension_point) => seriesOf((status) => seriesOf((profile) => points.with({ extension_point, status, profile }))));
  const tried = seriesOf((result) => seriesOf((profile) => ({ attempts: attempts.with({ result, profile }), duration: duration.with({ result, profile }) })));
  const ran = seriesOf((extension_point) => seriesOf((status) => seriesOf((plugin) => plugins.with({ extension_point, plugin, status }))));
  const asked = seriesOf((plugin) => seriesOf((event) => seriesOf((hint) => queueing.with({ plugin, event, hint }))));
  const handling = seriesOf((event) => events.with({ event }));
  const batched = seriesOf((result) => seriesOf((profile) => batchAttempts.with({ result, profile })));
  const letGo = seriesOf((reason) => seriesOf((profile) => batchFlushes.with({ reason, profile })));
  const groups = hasGroups ? groupMetrics(metrics) : undefined;
  return {
    groupAlgorithm: (ms) => groups?.algorithm.observe(ms / 1000),
    groupAttempt(result, profile, ms) {
      groups?.attempts.inc({ result, profile });
      groups?.duration.observe(ms / 1000, { result, profile });
    },
    permitWaited: (ms) => groups?.waits.observe(ms / 1000, { result: "Success" }),
    batchAttempt: (result, profile) => batched(result)(profile).inc(),
    batchFlushed: (reason, profile) => letGo(reason)(profile).inc(),
    evaluated(point, plugins, profile) {
      const series = evaluated(point)(profile);
      for (const [plugin, times] of plugins) if (times > 0) series(plugin).inc(times);
    },
    point: (name, profile, ms, status = "Success") => took(name)(status)(profile).observe(ms / 1000),
    pluginTook: (point, plugin, status, ms) => ran(point)(status)(plugin).observe(ms / 1000),
    hinted: (plugin, event, hint, ms) => asked(plugin)(event)(hint).observe(ms / 1000),
    hintTook: (hinted, profile, ms) => hinting(profile)[hinted].observe(ms / 1000),
    storeTook: (profile, ms) => storing(profile).observe(ms / 1000),
    handled: (event, ms) => handling(event).observe(ms / 1000),
    attempt(result, profile, ms) {
      const series = tried(result)(profile);
      series.attempts.inc();
      series.duration.observe(ms / 1000);
    },
    algorithm: (ms) => algorithm.observe(ms / 1000),
    scheduled(count, sinceAddedMs, isFlushed = false) {
      if (isFlushed) flushed.inc();
      perPod.observe(count);
      sli.observe(sinceAddedMs / 1000, { attempts: count >= SLI_ATTEMPTS_MAX ? `${SLI_ATTEMPTS_MAX}+` : String(count) });
    },
    queued: (name, event) => incoming.inc({ queue: name, event }),
    preempted: (count) => victims.observe(count),
    preemptionTried: () => preemptions.inc(),
    preemptionRan(result, ms) {
      runs.inc({ result });
      runDuration.observe(ms / 1000, { result });
    },
    claimMade: (status) => claims.inc({ status }),
    waitedForDevices(profile, { status, ms, devices }) {
      for (const { driver, hasConditions } of devices) {
        deviceWaits.observe(ms / 1000, { profile, driver, status });
        if (hasConditions) deviceAllocations.inc({ profile, driver, status });
      }
    },
  };
}

/** What took longer is folded into "15+". Source: pkg/scheduler/schedule_one.go getAttemptsLabel */
const SLI_ATTEMPTS_MAX = 15;

/** There only where pods of a group are decided together. */
function groupMetrics(metrics: Metrics) {
  return {
    attempts: metrics.counter(
      "scheduler_podgroup_schedule_attempts_total",
      "[ALPHA] Number of attempts to schedule pod group, by the result. 'unschedulable' means a pod group could not be scheduled, while 'error' means an internal scheduler problem.",
    ),
    duration: metrics.histogram("scheduler_podgroup_scheduling_attempt_duration_seconds", "[ALPHA] Pod group scheduling attempt latency in seconds (scheduling algorithm + binding)", doubling(0.001, 15)),
    algorithm: metrics.histogram("scheduler_podgroup_scheduling_algorithm_duration_seconds", "[ALPHA] Pod group scheduling algorithm latency in seconds", doubling(0.001, 15)),
    waits: metrics.histogram("scheduler_permit_wait_duration_seconds", "[BETA] Duration of waiting on permit.", doubling(0.001, 15)),
  };
}
