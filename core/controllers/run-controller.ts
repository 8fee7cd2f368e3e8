/**
 * The life of a controller: waits until its informers have their first lists, then reconciles keys until it is stopped.
 * A reconcile that throws is tried again after 5 ms, doubling to 1000 s, or as the controller says.
 * Thousands of keys that want nothing written wait for nobody: between them others have their turn.
 *
 * Metrics are upstream's workqueue_*, one label `name` for the controller.
 */
import type { ObjectKey } from "../api/meta/object-meta.ts";
import { isConflict, isNamespaceTerminating } from "../api/meta/status-error.ts";
import { aborted } from "../lifecycle/aborted.ts";
import { type Breathe, breather } from "../lifecycle/breather.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { ClockJumps } from "../lifecycle/clock-jumps.ts";
import type { Runnable } from "../lifecycle/run-all.ts";
import { type QueueMeter, type WorkQueue, workQueue } from "../lifecycle/work-queue.ts";
import type { Log } from "../observe/log.ts";
import { exponential, type Metrics } from "../observe/metrics.ts";
import type { Controller } from "./controller.ts";

/** Registered once and used by all controllers. */
export interface ControllerMetrics {
  queue(name: string): QueueMeter;
  retried(name: string): void;
  worked(name: string, ms: number): void;
  failed(name: string): void;
  /** `depth`: how many keys wait; `running`: for how long each that is worked on has been. */
  watch(name: string, read: { depth(): number; running(): readonly number[] }): void;
}

const SECONDS = exponential(1e-8, 10, 10);

export function controllerMetrics(metrics: Metrics): ControllerMetrics {
  const adds = metrics.counter("workqueue_adds_total", "[BETA] Total number of adds handled by workqueue");
  const retries = metrics.counter("workqueue_retries_total", "[BETA] Total number of retries handled by workqueue");
  const wait = metrics.histogram("workqueue_queue_duration_seconds", "[BETA] How long in seconds an item stays in workqueue before being requested.", SECONDS);
  const work = metrics.histogram("workqueue_work_duration_seconds", "[BETA] How long in seconds processing an item from workqueue takes.", SECONDS);
  const errors = metrics.counter("coracle_controller_errors_total", "Reconciles that failed and are tried again");
  const queues = new Map<string, Parameters<ControllerMetrics["watch"]>[1]>();
  const gauge = (name: string, help: string, read: (of: Parameters<ControllerMetrics["watch"]>[1]) => number): void =>
    metrics.gaugeFrom(name, help, () => [...queues].map(([name, of]) => [{ name }, read(of)] as const));
  gauge("workqueue_depth", "[BETA] Current depth of workqueue", ({ depth }) => depth());
  gauge("workqueue_unfinished_work_seconds", "[BETA] How many seconds of work has done that is in progress and hasn't been observed by work_duration. Large values indicate stuck threads. One can deduce the number of stuck threads by observing the rate at which this increases.", ({ running }) => running().reduce((sum, ms) => sum + ms, 0) / 1000);
  gauge("workqueue_longest_running_processor_seconds", "[BETA] How many seconds has the longest running processor for workqueue been running.", ({ running }) => Math.max(0, ...running()) / 1000);
  return {
    queue(name) {
      const [added, waited] = [adds.with({ name }), wait.with({ name })];
      return { added: () => added.inc(), waited: (ms) => waited.observe(ms / 1000) };
    },
    retried: (name) => retries.inc({ name }),
    worked: (name, ms) => work.observe(ms / 1000, { name }),
    failed: (name) => errors.inc({ name }),
    watch: (name, read) => void queues.set(name, read),
  };
}

/** "At once" again and again would leave no time for anybody else. */
const AGAIN_MS_MIN = 10;
/** Timers hold no more than 2^31 ms. Who asked for later is asked again tomorrow. */
const AGAIN_MS_MAX = 86_400_000;

interface Deps {
  readonly clock: Clock;
  /** Absent: it never jumps. */
  readonly jumps?: Pick<ClockJumps, "subscribe"> | undefined;
  readonly log: Log;
  readonly metrics?: ControllerMetrics | undefined;
}

export function runController(controller: Controller, { clock, jumps, log: parentLog, metrics }: Deps): Runnable {
  const { name } = controller;
  const log = parentLog.with({ controller: name });

  const running = new Map<ObjectKey, number>(); // since when

  async function work(queue: WorkQueue<ObjectKey>, breathe: Breathe, signal: AbortSignal): Promise<void> {
    for (let key = await queue.take(signal); key !== undefined; key = await queue.take(signal)) {
      const turn = breathe(); // before it: workers begin together, each with a key, and of those that waited for nothing all would begin
      if (turn) await turn;
      const startMs = clock.uptimeMs();
      running.set(key, startMs);
      try {
        const next = await controller.reconcile(key, { signal, log: log.with({ key }) });
        queue.forget(key);
        if (next) queue.addAfter(key, Math.min(Math.max(next.againInMs, AGAIN_MS_MIN), AGAIN_MS_MAX));
      } catch (error) {
        if (signal.aborted) return;
        // A conflict means that our copy was not the newest: the next try has a newer one. In a namespace on its way out the owner goes as well.
        log[isConflict(error) || isNamespaceTerminating(error) ? "debug" : "warn"]("reconcile failed, will try again", { key, error });
        metrics?.failed(name);
        metrics?.retried(name);
        queue.addRateLimited(key);
      } finally {
        running.delete(key);
        queue.done(key);
        metrics?.worked(name, clock.uptimeMs() - startMs);
      }
    }
  }

  return {
    name: `controller ${name}`,
    async run(signal, ready) {
      const queue = workQueue<ObjectKey>(clock, { retry: controller.retry, meter: metrics?.queue(name) });
      metrics?.watch(name, { depth: () => queue.size, running: () => [...running.values()].map((sinceMs) => clock.uptimeMs() - sinceMs) });
      const unsubscribe = controller.watches.map((watch) => watch.subscribe((key, afterMs = 0) => queue.addAfter(key, afterMs)));
      if (jumps) unsubscribe.push(jumps.subscribe(() => queue.hasten())); // how long it is until a time of day is another now
      try {
        ready(); // what it watches may come later: nobody waits for a controller
        await Promise.all([...controller.watches, ...(controller.reads ?? [])].map((source) => source.whenSynced(signal)));
        for (const key of controller.starts ?? []) queue.add(key);
        const breathe = breather(clock);
        await Promise.all(Array.from({ length: controller.workers }, () => work(queue, breathe, signal)));
        await aborted(signal);
      } finally {
        for (const end of unsubscribe) end();
      }
    },
  };
}
