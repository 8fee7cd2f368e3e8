/**
 * Gives every pod without a node one.
 *
 *   pods, nodes ──informers──▶ snapshot, queue ──▶ place.ts decides ──▶ assumed ──▶ POST …/binding
 *                                   ▲                                     │ fails
 *                                   └──────────── forgotten, tried again ◀┘
 *
 * One pod is decided at a time, so each decision sees the ones before it; bindings are written while the next is decided.
 */
import type { Node, Pod, PodCondition } from "../api/gen/core.v1.ts";
import { keyOf } from "../api/meta/object-meta.ts";
import { isNotFound } from "../api/meta/status-error.ts";
import type { Client } from "../client/client.ts";
import type { Events } from "../client/events.ts";
import type { Informers } from "../client/informer-factory.ts";
import { NODES, PODS } from "../client/resources.ts";
import { type Clock, timestamp } from "../lifecycle/clock.ts";
import type { Random } from "../lifecycle/random.ts";
import type { Runnable } from "../lifecycle/run-all.ts";
import type { Log } from "../observe/log.ts";
import type { Metrics } from "../observe/metrics.ts";
import { podRequests } from "./pod-requests.ts";
import { place } from "./place.ts";
import { DEFAULT_PROFILE, type Profile } from "./plugins.ts";
import { SchedulingQueue } from "./queue.ts";
import { Snapshot } from "./snapshot.ts";

const NAME = "default-scheduler";
/** Bindings under way at once. */
const BINDINGS_MAX = 16;
/** Source: pkg/scheduler/metrics: 1 ms doubling. */
const ATTEMPT_BUCKETS = [0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384];

interface Deps {
  readonly client: Client;
  readonly informers: Informers;
  readonly events: Events;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly profile?: Profile;
}

export function scheduler(deps: Deps): Runnable {
  return {
    name: "scheduler",
    async run(signal, ready) {
      const running = new Scheduler(deps);
      try {
        await running.follow(signal);
        ready();
        await running.schedule(signal);
      } finally {
        running.stop();
      }
    },
  };
}

class Scheduler {
  readonly #deps: Deps;
  readonly #queue: SchedulingQueue;
  readonly #snapshot = new Snapshot();
  readonly #stops: (() => void)[] = [];
  readonly #bindings = new Set<Promise<void>>();
  readonly #observe: (result: string, ms: number) => void;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#queue = new SchedulingQueue(deps.clock);
    this.#observe = attemptMetrics(deps.metrics, this.#queue);
  }

  async follow(signal: AbortSignal): Promise<void> {
    const nodes = this.#deps.informers.of(NODES);
    const pods = this.#deps.informers.of(PODS);
    this.#stops.push(nodes.onChange(({ object, old, deleted }) => this.#nodeChanged(object, old, deleted)));
    await nodes.whenSynced(signal);
    this.#stops.push(pods.onChange(({ object, old, deleted }) => this.#podChanged(object, old, deleted)));
    await pods.whenSynced(signal);
  }

  stop(): void {
    for (const stop of this.#stops) stop();
  }

  async schedule(signal: AbortSignal): Promise<void> {
    for (;;) {
      const attempt = await this.#queue.take(signal);
      if (!attempt) break;
      if (this.#bindings.size >= BINDINGS_MAX) await Promise.race(this.#bindings);
      await this.#attempt(attempt, signal);
    }
    await Promise.all(this.#bindings);
  }

  async #attempt(attempt: NonNullable<Awaited<ReturnType<SchedulingQueue["take"]>>>, signal: AbortSignal): Promise<void> {
    const { clock, log, random, profile = DEFAULT_PROFILE } = this.#deps;
    const startMs = clock.uptimeMs();
    const pod = this.#deps.informers.of(PODS).get(keyOf(attempt.pod));
    if (!pod || !isWaiting(pod) || this.#snapshot.isAssumed(pod)) return;
    const placement = place({ pod, requests: podRequests(pod) }, this.#snapshot.nodes(), profile, random);
    if (placement.type === "node") {
      this.#snapshot.assume(pod, placement.node);
      const binding = this.#bind({ ...attempt, pod }, placement.node, signal).finally(() => {
        this.#bindings.delete(binding);
        this.#observe("scheduled", clock.uptimeMs() - startMs);
      });
      this.#bindings.add(binding);
      return;
    }
    this.#observe("unschedulable", clock.uptimeMs() - startMs);
    this.#queue.fail({ ...attempt, pod }, placement.plugins.size > 0 ? placement.plugins : new Set(["none"]));
    const { message } = placement;
    log.info("pod fits nowhere", { pod: keyOf(pod), message });
    this.#deps.events.from({ component: NAME }).event(pod, "Warning", "FailedScheduling", message);
    await this.#tellUnschedulable(pod, message, signal);
  }

  async #bind(attempt: { pod: Readonly<Pod>; failures: number; changes: number }, node: string, signal: AbortSignal): Promise<void> {
    const { pod } = attempt;
    const { client, log, events } = this.#deps;
    const { name, namespace, uid } = pod.metadata;
    try {
      const binding = { apiVersion: "v1", kind: "Binding", metadata: { name, namespace, uid }, target: { apiVersion: "v1", kind: "Node", name: node } };
      await client.resource(PODS).createSubresource(pod, "binding", binding, { signal });
      log.info("pod bound", { pod: keyOf(pod), node });
      events.from({ component: NAME }).event(pod, "Normal", "Scheduled", `Successfully assigned ${namespace}/${name} to ${node}`);
    } catch (error) {
      this.#snapshot.forget(pod);
      if (signal.aborted || isNotFound(error)) return;
      log.warn("binding failed, the pod is tried again", { pod: keyOf(pod), node, error });
      this.#queue.fail(attempt, new Set());
    }
  }

  async #tellUnschedulable(pod: Readonly<Pod>, message: string, signal: AbortSignal): Promise<void> {
    const known = pod.status?.conditions?.find(({ type }) => type === "PodScheduled");
    if (known?.status === "False" && known.reason === "Unschedulable" && known.message === message) return;
    const condition: PodCondition = {
      type: "PodScheduled", status: "False", reason: "Unschedulable", message,
      lastTransitionTime: known?.status === "False" ? known.lastTransitionTime : timestamp(this.#deps.clock.nowMs()),
    };
    const patch = { metadata: { uid: pod.metadata.uid }, status: { conditions: [condition] } };
    await this.#deps.client.resource(PODS).patch(pod, "application/strategic-merge-patch+json", patch, { signal, subresource: "status" }).catch((error: unknown) => {
      if (!signal.aborted && !isNotFound(error)) this.#deps.log.warn("a pod's condition could not be written", { pod: keyOf(pod), error });
    });
  }

  #nodeChanged(node: Readonly<Node>, old: Readonly<Node> | undefined, deleted: boolean): void {
    if (deleted) return this.#snapshot.removeNode(node.metadata.name);
    this.#snapshot.setNode(node);
    const change = whatChanged(node, old);
    if (change !== undefined) this.#queue.changed(change);
  }

  #podChanged(pod: Readonly<Pod>, old: Readonly<Pod> | undefined, deleted: boolean): void {
    if (deleted) {
      this.#snapshot.removePod(pod);
      this.#queue.remove(keyOf(pod));
      if (pod.spec.nodeName) this.#queue.changed(ROOM);
      return;
    }
    this.#snapshot.setPod(pod);
    if (isWaiting(pod)) this.#queue.add(pod);
    else this.#queue.remove(keyOf(pod));
    if (pod.spec.nodeName && isEnded(pod) && old && !isEnded(old)) this.#queue.changed(ROOM);
  }
}

/** Filters that a pod's end can satisfy. */
const ROOM: ReadonlySet<string> = new Set(["NodeResourcesFit", "NodePorts"]);

/** Which filters may judge a node differently now. */
function whatChanged(node: Readonly<Node>, old: Readonly<Node> | undefined): ReadonlySet<string> | "any" | undefined {
  if (!old) return "any";
  const plugins = new Set<string>();
  if (!Bun.deepEquals(node.status?.allocatable, old.status?.allocatable)) plugins.add("NodeResourcesFit");
  if (!Bun.deepEquals(node.metadata.labels, old.metadata.labels)) plugins.add("NodeAffinity");
  if (!Bun.deepEquals(node.spec.taints, old.spec.taints)) plugins.add("TaintToleration");
  if (node.spec.unschedulable !== old.spec.unschedulable) plugins.add("NodeUnschedulable");
  return plugins.size > 0 ? plugins : undefined;
}

function isWaiting(pod: Readonly<Pod>): boolean {
  return !pod.spec.nodeName && pod.metadata.deletionTimestamp === undefined && !isEnded(pod) && (pod.spec.schedulerName ?? NAME) === NAME;
}

function isEnded({ status }: Readonly<Pod>): boolean {
  return status?.phase === "Succeeded" || status?.phase === "Failed";
}

function attemptMetrics(metrics: Metrics, queue: SchedulingQueue): (result: string, ms: number) => void {
  const attempts = metrics.counter("scheduler_schedule_attempts_total", "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be scheduled, while 'error' means an internal scheduler problem.");
  const duration = metrics.histogram("scheduler_scheduling_attempt_duration_seconds", "Scheduling attempt latency in seconds (scheduling algorithm + binding)", ATTEMPT_BUCKETS);
  metrics.gaugeFrom("scheduler_pending_pods", "Number of pending pods, by the queue type. 'active' means number of pods in activeQ; 'backoff' means number of pods in backoffQ; 'unschedulable' means number of pods in unschedulablePods that the scheduler attempted to schedule and failed; 'gated' is the number of unschedulable pods that the scheduler never attempted to schedule because they are gated.", () =>
    Object.entries(queue.sizes()).map(([name, size]) => [{ queue: name }, size] as const));
  return (result, ms) => {
    attempts.inc({ result, profile: NAME });
    duration.observe(ms / 1000, { result, profile: NAME });
  };
}
