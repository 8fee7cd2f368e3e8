/**
 * Graceful node shutdown: when the machine is about to go down, the node says so, takes no more pods, and ends those it has, by priority.
 *
 * Who tells us: logind, which waits for us as long as we may ask it to (logind.ts), or a signal of an init that has no such thing (cmd/shutdown-signal.ts).
 *
 * Source: kubernetes v1.36 pkg/kubelet/nodeshutdown/nodeshutdown_manager_linux.go
 */
import type { ObjectReference, Pod } from "../../../core/api/gen/core.v1.ts";
import type { EventRecorder } from "../../../core/client/events.ts";
import { aborted } from "../../../core/lifecycle/aborted.ts";
import { type Clock, timestamp } from "../../../core/lifecycle/clock.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { Metrics } from "../../../core/observe/metrics.ts";
import { readStateFile, writeStateFile } from "../../os/state-file.ts";
import type { ShutdownSettings } from "../settings.ts";
import { disruption } from "../status/disruption.ts";
import type { PodFailure } from "../status/pod-status.ts";
import { graceSecondsOf, groupByLevel, shutdownLevels, totalMs } from "./plan.ts";

/** Says when the machine goes down, and when it will not after all. `delayMs`: how long it should wait for us. */
export interface ShutdownNotices {
  /** `on(true)`: it goes down, and may do so once the promise is done. Returns when `signal` aborts. */
  run(on: (down: boolean) => Promise<void>, delayMs: number, signal: AbortSignal): Promise<void>;
}

export interface Shutdown extends Runnable {
  readonly isDown: () => boolean;
}

/** `isReclaimed`: nothing of it runs, and its volumes are unmounted. */
interface Victim { readonly pod: Pod; readonly isReclaimed: boolean; fail(failure: PodFailure, graceSeconds: number): void }

interface Deps {
  readonly settings: ShutdownSettings;
  readonly notices: ShutdownNotices;
  readonly pods: () => readonly Victim[];
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly events: EventRecorder;
  readonly node: ObjectReference;
  /** When the last shutdown began and ended, for the metrics of the kubelet that comes after it. */
  readonly stateFile: string;
  /** The node's status has to be written. */
  readonly onChange: () => void;
}

export const SHUTTING_DOWN = "node is shutting down";
export const NOT_ADMITTED: PodFailure = { reason: "NodeShutdown", message: "Pod was rejected: Pod was rejected as the node is shutting down.", refused: true };
const MESSAGE = "Pod was terminated in response to imminent node shutdown.";
const LOOK_MS = 100;

/** As upstream writes it, which has the year 1 for a time that is none. */
interface Times { readonly startTime?: string; readonly endTime?: string }

export function gracefulShutdown({ settings, notices, pods, clock, log, metrics, events, node, stateFile, onChange }: Deps): Shutdown {
  const levels = shutdownLevels(settings);
  let down = false;
  const started = metrics.gauge("kubelet_graceful_shutdown_start_time_seconds", "[ALPHA] Last graceful shutdown start time since unix epoch in seconds");
  const ended = metrics.gauge("kubelet_graceful_shutdown_end_time_seconds", "[ALPHA] Last graceful shutdown end time since unix epoch in seconds");

  function tell({ startTime, endTime }: Times): void {
    const seconds = (time: string | undefined): number => (time === undefined ? 0 : Math.max(0, Math.floor(Date.parse(time) / 1000)));
    started.set(seconds(startTime));
    ended.set(seconds(endTime));
  }

  async function note(times: Times): Promise<void> {
    tell(times);
    try {
      await writeStateFile(stateFile, times);
    } catch (error) {
      log.warn("when the machine went down will not be known when it is up again", { error });
    }
  }

  async function end(signal: AbortSignal): Promise<void> {
    for (const { level, pods: group } of groupByLevel(levels, pods())) {
      if (group.length === 0) continue;
      log.info("shutting down pods", { priority: level.priority, pods: group.length, graceMs: level.graceMs });
      const nowMs = clock.nowMs();
      for (const one of group) one.fail({ reason: "Terminated", message: MESSAGE, condition: disruption(one.pod, MESSAGE, nowMs) }, graceSecondsOf(one.pod, level));
      const untilMs = clock.uptimeMs() + level.graceMs;
      const isOver = (): boolean => group.every(({ isReclaimed }) => isReclaimed); // drivers of volumes may be pods of a later level
      while (!isOver() && clock.uptimeMs() < untilMs && !signal.aborted) await clock.sleep(LOOK_MS, signal);
      if (!isOver()) log.warn("pods did not end in time, the machine goes down", { priority: level.priority, pods: group.filter(({ isReclaimed }) => !isReclaimed).map(({ pod }) => pod.metadata.name) });
    }
  }

  return {
    name: "graceful-shutdown",
    isDown: () => down,
    async run(signal, ready) {
      ready();
      if (levels.length === 0) return await aborted(signal); // pods are not waited for
      tell(readStateFile<Times>(stateFile, log) ?? {});
      await notices.run(async (goesDown) => {
        if (down === goesDown) return;
        down = goesDown;
        log.info(goesDown ? "the machine is shutting down" : "the machine does not shut down after all");
        events.event(node, "Normal", "NodeShutdown", `Shutdown manager detected shutdown ${goesDown ? "event" : "cancellation"}`);
        onChange();
        if (!goesDown) return;
        const startTime = timestamp(clock.nowMs());
        void note({ startTime }); // the time until the power goes is the pods'
        await end(signal);
        await note({ startTime, endTime: timestamp(clock.nowMs()) });
      }, totalMs(levels), signal);
    },
  };
}
