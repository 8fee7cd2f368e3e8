/**
 * The life of a controller: waits until its informers have their first lists, then reconciles keys until it is stopped.
 * A reconcile that throws is tried again after 5 ms, doubling to 1000 s.
 *
 * Metrics are upstream's workqueue_*, one label `name` for the controller.
 */
import type { ObjectKey } from "../api/meta/object-meta.ts";
import { isConflict } from "../api/meta/status-error.ts";
import { aborted } from "../lifecycle/aborted.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { Runnable } from "../lifecycle/run-all.ts";
import { type WorkQueue, workQueue } from "../lifecycle/work-queue.ts";
import type { Log } from "../observe/log.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { Controller } from "./controller.ts";

/** Registered once and used by all controllers. */
export interface ControllerMetrics {
  added(name: string): void;
  retried(name: string): void;
  worked(name: string, ms: number): void;
  failed(name: string): void;
  depth(name: string, read: () => number): void;
}

const SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60];

export function controllerMetrics(metrics: Metrics): ControllerMetrics {
  const adds = metrics.counter("workqueue_adds_total", "Total number of adds handled by workqueue");
  const retries = metrics.counter("workqueue_retries_total", "Total number of retries handled by workqueue");
  const work = metrics.histogram("workqueue_work_duration_seconds", "How long in seconds processing an item from workqueue takes.", SECONDS);
  const errors = metrics.counter("coracle_controller_errors_total", "Reconciles that failed and are tried again");
  const depths = new Map<string, () => number>();
  metrics.gaugeFrom("workqueue_depth", "Current depth of workqueue", () => [...depths].map(([name, read]) => [{ name }, read()] as const));
  return {
    added: (name) => adds.inc({ name }),
    retried: (name) => retries.inc({ name }),
    worked: (name, ms) => work.observe(ms / 1000, { name }),
    failed: (name) => errors.inc({ name }),
    depth: (name, read) => void depths.set(name, read),
  };
}

/** "At once" again and again would leave no time for anybody else. */
const AGAIN_MS_MIN = 10;
/** Timers hold no more than 2^31 ms. Who asked for later is asked again tomorrow. */
const AGAIN_MS_MAX = 86_400_000;

interface Deps { readonly clock: Clock; readonly log: Log; readonly metrics?: ControllerMetrics | undefined }

export function runController(controller: Controller, { clock, log: parentLog, metrics }: Deps): Runnable {
  const { name } = controller;
  const log = parentLog.with({ controller: name });

  async function work(queue: WorkQueue<ObjectKey>, signal: AbortSignal): Promise<void> {
    for (let key = await queue.take(signal); key !== undefined; key = await queue.take(signal)) {
      const startMs = clock.uptimeMs();
      try {
        const next = await controller.reconcile(key, { signal, log: log.with({ key }) });
        queue.forget(key);
        if (next) queue.addAfter(key, Math.min(Math.max(next.againInMs, AGAIN_MS_MIN), AGAIN_MS_MAX));
      } catch (error) {
        if (signal.aborted) return;
        // A conflict means that our copy was not the newest: the next try has a newer one.
        log[isConflict(error) ? "debug" : "warn"]("reconcile failed, will try again", { key, error });
        metrics?.failed(name);
        metrics?.retried(name);
        queue.addRateLimited(key);
      } finally {
        queue.done(key);
        metrics?.worked(name, clock.uptimeMs() - startMs);
      }
    }
  }

  return {
    name: `controller ${name}`,
    async run(signal, ready) {
      const queue = workQueue<ObjectKey>(clock);
      metrics?.depth(name, () => queue.size);
      const unsubscribe = controller.watches.map((watch) => watch.subscribe((key, afterMs = 0) => {
        metrics?.added(name);
        queue.addAfter(key, afterMs);
      }));
      try {
        ready(); // what it watches may come later: nobody waits for a controller
        await Promise.all([...controller.watches, ...(controller.reads ?? [])].map((source) => source.whenSynced(signal)));
        for (const key of controller.starts ?? []) queue.add(key);
        await Promise.all(Array.from({ length: controller.workers }, () => work(queue, signal)));
        await aborted(signal);
      } finally {
        for (const end of unsubscribe) end();
      }
    },
  };
}
