/**
 * Pods waiting for a node: those to be tried now, by priority and then by age; those backing off after a failure; those that fitted nowhere,
 * which wait for the cluster to change.
 *
 *   add ──▶ active ──take──▶ (placed, or) fail ──▶ unschedulable ──something changed──▶ backing off ──▶ active
 *
 * Source: kubernetes v1.36 pkg/scheduler/backend/queue/scheduling_queue.go
 */
import type { Pod } from "../api/gen/core.v1.ts";
import { keyOf, type ObjectKey } from "../api/meta/object-meta.ts";
import { type BackoffOptions, backoffMs } from "../lifecycle/backoff.ts";
import type { Clock } from "../lifecycle/clock.ts";

const BACKOFF: BackoffOptions = { minMs: 1_000, maxMs: 10_000 };
/** A pod that no change has moved is tried again all the same after this. Source: DefaultPodMaxInUnschedulablePodsDuration */
const UNSCHEDULABLE_MAX_MS = 5 * 60_000;

interface Entry {
  pod: Readonly<Pod>;
  failures: number;
  readonly addedMs: number;
  /** Filters that rejected it last: what must change before it is worth another try. */
  rejectedBy: ReadonlySet<string>;
  timer: { cancel(): void } | undefined;
}

/** A change of the cluster, named by the filters it could satisfy; "any" by all. */
export type ClusterChange = ReadonlySet<string> | "any";

export class SchedulingQueue {
  readonly #clock: Clock;
  readonly #active = new Map<ObjectKey, Entry>();
  readonly #backingOff = new Map<ObjectKey, Entry>();
  readonly #unschedulable = new Map<ObjectKey, Entry>();
  readonly #gated = new Map<ObjectKey, Entry>();
  #wake: (() => void) | undefined;
  /** Changes seen while a pod is being tried, so that its failure does not sleep through them. */
  #changes = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** For metrics: pods by queue. */
  sizes(): { active: number; backoff: number; unschedulable: number; gated: number } {
    return { active: this.#active.size, backoff: this.#backingOff.size, unschedulable: this.#unschedulable.size, gated: this.#gated.size };
  }

  get changes(): number {
    return this.#changes;
  }

  /** A pod that is new, or has changed. */
  add(pod: Readonly<Pod>): void {
    const key = keyOf(pod);
    const known = this.#find(key);
    if (known && known.pod.metadata.uid === pod.metadata.uid && this.#backingOff.has(key)) {
      known.pod = pod;
      return;
    }
    if (known && known.pod.metadata.uid === pod.metadata.uid && this.#unschedulable.has(key) && !asksForLess(known.pod, pod)) {
      known.pod = pod;
      return;
    }
    this.remove(key);
    const entry: Entry = { pod, failures: known?.failures ?? 0, addedMs: known?.addedMs ?? this.#clock.uptimeMs(), rejectedBy: new Set(), timer: undefined };
    if (pod.spec.schedulingGates?.length) this.#gated.set(key, entry);
    else this.#activate(key, entry);
  }

  remove(key: ObjectKey): void {
    this.#find(key)?.timer?.cancel();
    for (const pool of [this.#active, this.#backingOff, this.#unschedulable, this.#gated]) pool.delete(key);
  }

  /** The next pod to try, or undefined once `signal` has aborted. */
  async take(signal: AbortSignal): Promise<{ readonly pod: Readonly<Pod>; readonly failures: number; readonly changes: number } | undefined> {
    while (!signal.aborted) {
      const next = this.#first();
      if (next) {
        this.#active.delete(keyOf(next.pod));
        return { pod: next.pod, failures: next.failures, changes: this.#changes };
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    }
    return undefined;
  }

  /** `attempt` as it was taken. The pod waits for a change, unless there was one while it was being tried; `rejectedBy` empty: it failed for another reason. */
  fail(attempt: { readonly pod: Readonly<Pod>; readonly failures: number; readonly changes: number }, rejectedBy: ReadonlySet<string>): void {
    const key = keyOf(attempt.pod);
    if (this.#find(key)) return; // it has changed meanwhile and waits already
    const entry: Entry = { pod: attempt.pod, failures: attempt.failures + 1, addedMs: this.#clock.uptimeMs(), rejectedBy, timer: undefined };
    if (rejectedBy.size === 0 || attempt.changes !== this.#changes) return this.#backOff(key, entry);
    this.#unschedulable.set(key, entry);
    entry.timer = this.#clock.after(UNSCHEDULABLE_MAX_MS, () => {
      this.#unschedulable.delete(key);
      this.#activate(key, entry);
    });
  }

  /** Something changed that may make room: pods it could help are tried again, after their back-off. */
  changed(change: ClusterChange): void {
    this.#changes++;
    for (const [key, entry] of this.#unschedulable) {
      if (change !== "any" && entry.rejectedBy.isDisjointFrom(change)) continue;
      entry.timer?.cancel();
      this.#unschedulable.delete(key);
      this.#backOff(key, entry);
    }
  }

  #backOff(key: ObjectKey, entry: Entry): void {
    this.#backingOff.set(key, entry);
    const waitedMs = this.#clock.uptimeMs() - entry.addedMs;
    entry.timer = this.#clock.after(Math.max(0, backoffMs(Math.max(1, entry.failures), BACKOFF) - waitedMs), () => {
      this.#backingOff.delete(key);
      this.#activate(key, entry);
    });
  }

  #activate(key: ObjectKey, entry: Entry): void {
    entry.timer = undefined;
    this.#active.set(key, entry);
    this.#wake?.();
  }

  #find(key: ObjectKey): Entry | undefined {
    return this.#active.get(key) ?? this.#backingOff.get(key) ?? this.#unschedulable.get(key) ?? this.#gated.get(key);
  }

  #first(): Entry | undefined {
    let first: Entry | undefined;
    for (const entry of this.#active.values()) {
      const higher = first === undefined ? 1 : (entry.pod.spec.priority ?? 0) - (first.pod.spec.priority ?? 0);
      if (higher > 0 || (higher === 0 && entry.addedMs < first!.addedMs)) first = entry;
    }
    return first;
  }
}

/** Whether a change of a pod can make it fit: anything but status and bookkeeping. */
function asksForLess(before: Readonly<Pod>, after: Readonly<Pod>): boolean {
  return !Bun.deepEquals(before.spec, after.spec) || !Bun.deepEquals(before.metadata.labels, after.metadata.labels);
}
