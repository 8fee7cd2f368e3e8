/**
 * Pods waiting for a node: those to be tried now, by priority and then by age; those backing off after a failure; those that fitted nowhere,
 * which wait for a change that may help them; and those whose scheduling gates are closed.
 *
 *   add ──▶ active ──take──▶ in flight ──done──▶ (placed)
 *             ▲                  │ fail
 *             │                  ▼
 *          backoff ◀──change── unschedulable
 *
 * While nothing else is to be tried, pods that back off because they fitted nowhere are tried early; after errors the wait is kept. Pods of a group (pod-groups.ts) are tried
 * together: who takes one takes the others with it (`takeAlso`), and when they fail all back off. Their wait is kept until something happens that may help one of them.
 *
 * Source: kubernetes v1.36 pkg/scheduler/backend/queue/scheduling_queue.go
 */
import type { Pod } from "../api/gen/core.v1.ts";
import { keyOf, type ObjectKey } from "../api/meta/object-meta.ts";
import { type BackoffOptions, backoffMs } from "../lifecycle/backoff.ts";
import type { Clock } from "../lifecycle/clock.ts";
import { EXTENDER } from "./ask-extenders.ts";
import { type ClusterChange, eventsOf, NODE_ADD } from "./changes.ts";
import { Heap } from "./heap.ts";

const BACKOFF: BackoffOptions = { minMs: 1_000, maxMs: 10_000 };
/** Pods whose back-off ends within the same of these are tried by priority. Source: backoff_queue.go backoffQOrderingWindowDuration */
const WINDOW_MS = 1_000;
/** A pod that no change has moved is tried again all the same after this. Source: DefaultPodMaxInUnschedulablePodsDuration */
const UNSCHEDULABLE_MAX_MS = 5 * 60_000;
const FLUSH_PERIOD_MS = 30_000;
/** Changes remembered for pods in flight; with more, every one of those pods is tried again. */
const CHANGES_MAX = 10_000;

/** The plugin that holds pods back while they have gates. */
export const SCHEDULING_GATES = "SchedulingGates";
/** Changes of a pod that may open a gate. */
const GATE_OPENED: ReadonlySet<string> = new Set(["UnschedulablePodUpdatePodSchedulingGatesEliminated", "UnschedulablePodUpdatePodGeneratedResourceClaim"]);
const NOTHING: ReadonlySet<string> = new Set();

type State = "active" | "backoff" | "unschedulable" | "gated" | "in flight" | "gone";

/** A pod in the queue, and the handle of an attempt to place it. */
export interface Attempt {
  readonly key: ObjectKey;
  readonly pod: Readonly<Pod>;
  /** Including the one under way. */
  readonly attempts: number;
  /** When it was first to be tried: gates were open. */
  readonly addedMs: number;
  /** It is tried because it has waited for long, not because anything happened. */
  readonly isFlushed: boolean;
}

export interface Standing {
  readonly queue: "active" | "backoff" | "unschedulable" | "gated" | "in flight";
  readonly attempts: number;
  readonly againInMs?: number;
  /** Filters that rejected it: a change that may satisfy one of them brings it back. */
  readonly waitsFor?: readonly string[];
}

interface Entry extends Attempt {
  pod: Readonly<Pod>;
  attempts: number;
  addedMs: number;
  isFlushed: boolean;
  state: State;
  /** When it came into the queue, or failed last: who has waited longer is tried first. */
  sinceMs: number;
  order: number;
  backoffUntilMs: number;
  /** How often it fitted nowhere, and how many errors there have been since. */
  failures: number;
  errors: number;
  /** Filters that rejected it last, or what holds it back from being tried; until it is tried again. */
  rejectedBy: ReadonlySet<string>;
  /** It was tried when there were no nodes. */
  isNodeless: boolean;
  /** It waits out its back-off, unless something happens that may help it. */
  isPatient: boolean;
  /** In flight: changes before this were seen. */
  seen: number;
}

interface Deps {
  readonly clock: Clock;
  readonly backoff?: BackoffOptions | undefined;
  /** What says that the pod is not to be tried yet: by default, while it has scheduling gates. */
  readonly gateOf?: ((pod: Readonly<Pod>) => string | undefined) | undefined;
  /** Whether one of `filters` may now let `pod` pass. `event`: upstream's word for the change, or for one side of it. */
  readonly mayHelp: (pod: Readonly<Pod>, filters: ReadonlySet<string>, change: ClusterChange, event: string) => boolean;
  readonly onQueued?: ((queue: "active" | "backoff" | "unschedulable", event: string) => void) | undefined;
  /** Whether it is tried together with others. */
  readonly isGrouped?: ((pod: Readonly<Pod>) => boolean) | undefined;
}

export class SchedulingQueue {
  readonly #deps: Deps;
  readonly #entries = new Map<ObjectKey, Entry>();
  readonly #unschedulable = new Map<ObjectKey, Entry>();
  readonly #inFlight = new Map<ObjectKey, Entry>();
  readonly #patient = new Set<Entry>();
  readonly #sizes = { active: 0, backoff: 0, unschedulable: 0, gated: 0 };
  readonly #active = new Heap<{ readonly entry: Entry; readonly order: number }>({
    before: (a, b) => isBefore(a.entry, b.entry),
    isStale: ({ entry, order }) => entry.state !== "active" || entry.order !== order,
  });
  /** Of pods that fitted nowhere, and of those that there was an error with: these are not tried early. */
  readonly #backoff = backoffHeap();
  readonly #errorBackoff = backoffHeap();
  #changes: { readonly at: number; readonly change: ClusterChange; readonly event: string }[] = [];
  #changeCount = 0;
  #orders = 0;
  #wake: (() => void) | undefined;
  #backoffTimer: { cancel(): void } | undefined;
  #flushTimer: { cancel(): void } | undefined;
  #closed = false;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** For metrics: pods by queue. */
  sizes(): { readonly active: number; readonly backoff: number; readonly unschedulable: number; readonly gated: number } {
    return this.#sizes;
  }

  /** For metrics: changes remembered for pods in flight. */
  changesHeld(): Map<string, number> {
    const counts = new Map<string, number>();
    for (const { event } of this.#changes) counts.set(event, (counts.get(event) ?? 0) + 1);
    return counts;
  }

  /** For metrics: how many pods each filter, or gate, has held back and has not seen again yet. */
  heldBy(): readonly { readonly plugin: string; readonly profile: string; readonly pods: number }[] {
    const held = new Map<string, { plugin: string; profile: string; pods: number }>();
    for (const { rejectedBy, pod: { spec: { schedulerName: profile = "" } } } of this.#entries.values())
      for (const plugin of rejectedBy) {
        const one = held.get(`${plugin} ${profile}`) ?? { plugin, profile, pods: 0 };
        one.pods++;
        held.set(`${plugin} ${profile}`, one);
      }
    return [...held.values()];
  }

  /** Where a pod waits, and what for. */
  standing(key: ObjectKey): Standing | undefined {
    const entry = this.#entries.get(key);
    if (!entry || entry.state === "gone") return undefined;
    const { state, attempts, backoffUntilMs, rejectedBy } = entry;
    return { queue: state, attempts, ...(state === "backoff" ? { againInMs: Math.max(0, backoffUntilMs - this.#deps.clock.uptimeMs()) } : {}), ...(state === "unschedulable" ? { waitsFor: [...rejectedBy].sort() } : {}) };
  }

  /** A pod without a node that is new, or has changed. */
  add(pod: Readonly<Pod>): void {
    const key = keyOf(pod);
    const known = this.#entries.get(key);
    if (known && known.pod.metadata.uid === pod.metadata.uid) return this.#update(known, pod);
    this.remove(key);
    const now = this.#deps.clock.uptimeMs();
    const entry: Entry = { key, pod, attempts: 0, addedMs: now, isFlushed: false, state: "gone", sinceMs: now, order: 0, backoffUntilMs: 0, failures: 0, errors: 0, rejectedBy: new Set(), isNodeless: false, isPatient: false, seen: 0 };
    this.#entries.set(key, entry);
    this.#gateOrActivate(entry, "UnschedulablePodAdd");
  }

  remove(key: ObjectKey): void {
    const entry = this.#entries.get(key);
    if (!entry) return;
    this.#leave(entry);
    this.#entries.delete(key);
  }

  /** The next pod to try, or undefined once `signal` has aborted. Ends with `done` or `fail`. */
  async take(signal: AbortSignal): Promise<Attempt | undefined> {
    while (!signal.aborted) {
      const next = this.#next();
      if (next) return this.#fly(next);
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          signal.removeEventListener("abort", wake); // it lives as long as the scheduler: one more for each pod would stay
          resolve();
        };
        this.#wake = wake;
        signal.addEventListener("abort", wake, { once: true });
      });
    }
    return undefined;
  }

  /** A pod that is to be tried together with one that was taken, wherever it waits. Undefined: it does not wait here, or is held back. */
  takeAlso({ metadata }: Readonly<Pod>, key: ObjectKey): Attempt | undefined {
    const entry = this.#entries.get(key);
    if (!entry || entry.pod.metadata.uid !== metadata.uid || entry.state === "in flight" || entry.state === "gone") return undefined;
    if ((entry.state === "gated" || entry.state === "unschedulable") && this.#gateOf(entry.pod) !== undefined) return undefined;
    if (entry.state !== "active") {
      if (entry.attempts === 0) entry.addedMs = this.#deps.clock.uptimeMs();
      this.#deps.onQueued?.("active", "ForceActivate");
    }
    return this.#fly(entry);
  }

  #fly(entry: Entry): Attempt {
    this.#leave(entry);
    entry.state = "in flight";
    entry.attempts++;
    entry.rejectedBy = NOTHING;
    entry.seen = this.#changeCount;
    this.#inFlight.set(entry.key, entry);
    return entry;
  }

  /** Nobody takes pods any more: time moves them no further. */
  close(): void {
    this.#backoffTimer?.cancel();
    this.#flushTimer?.cancel();
    this.#closed = true;
  }

  /** The pod has a node, or is none of our business any more. */
  done(attempt: Attempt): void {
    const entry = this.#entries.get(attempt.key);
    if (entry === attempt) this.remove(attempt.key);
    else this.#land(attempt as Entry);
  }

  /** It fitted nowhere, and waits for what may help: `rejectedBy`, filters. After an "error", and if no filter was asked because there are no nodes, it is tried again after a while; as it is if it fits and its "group" does not. */
  fail(attempt: Attempt, rejectedBy: ReadonlySet<string> | "error" | "group"): void {
    const entry = attempt as Entry;
    const { seen } = entry;
    const { clock } = this.#deps;
    const known = this.#entries.get(entry.key);
    if (known !== undefined && known !== entry) return this.#land(entry); // another pod of that name
    const missed = this.#changes.filter(({ at }) => at >= seen);
    const lost = this.#changeCount - seen > missed.length;
    this.#land(entry);
    if (known === undefined) return; // deleted meanwhile
    entry.sinceMs = clock.uptimeMs();
    entry.isFlushed = false;
    entry.isNodeless = typeof rejectedBy !== "string" && rejectedBy.size === 0;
    if (typeof rejectedBy === "string" || entry.isNodeless) {
      entry.errors++;
      return this.#backOff(entry, "ScheduleAttemptFailure");
    }
    entry.errors = 0;
    entry.failures++;
    entry.rejectedBy = rejectedBy;
    const isHelped = lost || missed.some(({ change, event }) => this.#isHelpedBy(entry, change, event));
    const isGrouped = this.#deps.isGrouped?.(entry.pod) ?? false;
    entry.isPatient = isGrouped && !isHelped;
    if (isHelped || isGrouped) return this.#backOff(entry, "ScheduleAttemptFailure");
    this.#enter(entry, "unschedulable", "ScheduleAttemptFailure");
    this.#unschedulable.set(entry.key, entry);
    if (!this.#closed) this.#flushTimer ??= clock.after(FLUSH_PERIOD_MS, () => this.#flush());
  }

  /** What was `done` with, of a pod that is still there, has come to nothing: as after an "error". */
  bringBack(attempt: Attempt): void {
    if (!this.#entries.has(attempt.key)) this.#entries.set(attempt.key, attempt as Entry);
    this.fail(attempt, "error");
  }

  /** What has happened so far is no reason to try it again. */
  overlook(attempt: Attempt): void {
    (attempt as Entry).seen = this.#changeCount;
  }

  /** Something changed: pods it may help are tried again, after their back-off; those that there was no node for at once, when the first comes. */
  changed(change: ClusterChange, event: string, concerns: (pod: Readonly<Pod>) => boolean = () => true): void {
    this.#record(change, event);
    for (const entry of [...this.#unschedulable.values()]) if (concerns(entry.pod) && this.#isHelpedBy(entry, change, event)) this.#backOff(entry, event);
    for (const entry of [...this.#patient]) if (concerns(entry.pod) && this.#isHelpedBy(entry, change, event)) this.#hurry(entry);
    if (event === NODE_ADD) for (const entry of [...this.#entries.values()]) if (entry.isNodeless && entry.state === "backoff") this.#activate(entry, event);
  }

  /** Something changed that gates may depend on: of all pods, or of these. */
  regate(event: string, keys: Iterable<ObjectKey> = this.#entries.keys()): void {
    if (this.#sizes.gated === 0) return;
    for (const key of [...keys]) {
      const entry = this.#entries.get(key);
      if (entry?.state === "gated" && this.#gateOf(entry.pod) === undefined) this.#opened(entry, event);
    }
  }

  /** It need not wait out its back-off any more, if there is nothing else to try. */
  #hurry(entry: Entry): void {
    this.#patient.delete(entry);
    entry.isPatient = false;
    entry.order = ++this.#orders;
    this.#backoff.push({ entry, order: entry.order });
    this.#wake?.();
  }

  #update(entry: Entry, pod: Readonly<Pod>): void {
    const old = entry.pod;
    entry.pod = pod;
    const change: ClusterChange = { of: "pod", object: pod, old, deleted: false };
    if (entry.state === "gated") {
      const gate = this.#gateOf(pod);
      if (gate === undefined) return this.#opened(entry, eventsOf(change).find((event) => GATE_OPENED.has(event)) ?? "UnschedulablePodUpdate");
      entry.rejectedBy = new Set([...entry.rejectedBy, gate]);
      return;
    }
    if (!asksForOther(old, pod) && !(entry.state === "unschedulable" && entry.rejectedBy.has(EXTENDER))) return; // extenders are asked again whatever it was
    if (old.spec.priority !== pod.spec.priority && entry.state === "active") return this.#activate(entry, "UnschedulablePodUpdate");
    for (const event of eventsOf(change)) {
      if (entry.state === "in flight") this.#record(change, event);
      if (entry.state === "unschedulable" && this.#isHelpedBy(entry, change, event)) this.#backOff(entry, event);
    }
  }

  #isHelpedBy({ pod, rejectedBy }: Entry, change: ClusterChange, event: string): boolean {
    return this.#deps.mayHelp(pod, rejectedBy, change, event);
  }

  #gateOf(pod: Readonly<Pod>): string | undefined {
    const { gateOf = (one) => (hasGates(one) ? SCHEDULING_GATES : undefined) } = this.#deps;
    return gateOf(pod);
  }

  #gateOrActivate(entry: Entry, event: string): void {
    const gate = this.#gateOf(entry.pod);
    if (gate === undefined) return this.#activate(entry, event);
    entry.rejectedBy = new Set([gate]);
    this.#enter(entry, "gated", event);
  }

  /** Nothing holds it back any more: one that was tried before still has its back-off to wait. */
  #opened(entry: Entry, event: string): void {
    if (entry.attempts === 0) this.#activate(entry, event);
    else this.#backOff(entry, event);
  }

  #record(change: ClusterChange, event: string): void {
    if (this.#inFlight.size === 0) return;
    this.#changes.push({ at: this.#changeCount++, change, event });
    if (this.#changes.length > CHANGES_MAX) this.#changes.splice(0, CHANGES_MAX / 2);
  }

  #next(): Entry | undefined {
    const active = this.#active.pop()?.entry;
    if (active) return active;
    const early = this.#backoff.pop()?.entry;
    if (early) this.#deps.onQueued?.("active", "PopFromBackoffQ");
    return early;
  }

  /** It is tried again after a while, unless it may not be meanwhile. */
  #backOff(entry: Entry, event: string): void {
    const gate = this.#gateOf(entry.pod);
    if (gate !== undefined) {
      entry.rejectedBy = new Set([...entry.rejectedBy, gate]);
      return this.#enter(entry, "gated", event);
    }
    const now = this.#deps.clock.uptimeMs();
    const waitMs = backoffMs(Math.max(1, entry.errors || entry.failures), this.#deps.backoff ?? BACKOFF);
    entry.backoffUntilMs = (Math.floor((entry.sinceMs + waitMs) / WINDOW_MS) + 1) * WINDOW_MS;
    if (entry.backoffUntilMs <= now || waitMs === 0) return this.#activate(entry, event);
    this.#enter(entry, "backoff", event);
    (entry.errors > 0 || entry.isPatient ? this.#errorBackoff : this.#backoff).push({ entry, order: entry.order });
    if (entry.isPatient) this.#patient.add(entry);
    this.#awaitBackoff();
    this.#wake?.();
  }

  #awaitBackoff(): void {
    this.#backoffTimer?.cancel();
    if (this.#closed) return;
    const { clock } = this.#deps;
    const nextMs = Math.min(...[this.#backoff, this.#errorBackoff].map((heap) => heap.peek()?.entry.backoffUntilMs ?? Number.POSITIVE_INFINITY));
    this.#backoffTimer = nextMs === Number.POSITIVE_INFINITY ? undefined : clock.after(Math.max(0, nextMs - clock.uptimeMs()), () => {
      const now = clock.uptimeMs();
      for (const heap of [this.#backoff, this.#errorBackoff]) for (let due = heap.peek()?.entry; due && due.backoffUntilMs <= now; due = heap.peek()?.entry) this.#activate(due, "BackoffComplete");
      this.#awaitBackoff();
    });
  }

  #flush(): void {
    const { clock } = this.#deps;
    for (const entry of [...this.#unschedulable.values()]) if (clock.uptimeMs() - entry.sinceMs >= UNSCHEDULABLE_MAX_MS) {
      entry.isFlushed = true;
      this.#backOff(entry, "UnschedulableTimeout");
    }
    this.#flushTimer = this.#unschedulable.size > 0 ? clock.after(FLUSH_PERIOD_MS, () => this.#flush()) : undefined;
  }

  #activate(entry: Entry, event: string): void {
    if (entry.attempts === 0 && entry.state !== "active") entry.addedMs = this.#deps.clock.uptimeMs();
    this.#enter(entry, "active", event);
    this.#active.push({ entry, order: entry.order });
    this.#wake?.();
  }

  #enter(entry: Entry, state: "active" | "backoff" | "unschedulable" | "gated", event: string): void {
    this.#leave(entry);
    entry.state = state;
    entry.order = ++this.#orders;
    this.#sizes[state]++;
    this.#deps.onQueued?.(state === "gated" ? "unschedulable" : state, event);
  }

  #leave(entry: Entry): void {
    if (entry.state === "unschedulable") this.#unschedulable.delete(entry.key);
    this.#patient.delete(entry);
    if (entry.state === "in flight") this.#land(entry);
    else if (entry.state !== "gone") this.#sizes[entry.state]--;
    entry.state = "gone";
  }

  /** No longer in flight. Changes that nobody in flight needs are forgotten. */
  #land(entry: Entry): void {
    if (this.#inFlight.get(entry.key) === entry) this.#inFlight.delete(entry.key);
    if (entry.state === "in flight") entry.state = "gone";
    if (this.#inFlight.size === 0) this.#changes = [];
  }
}

function backoffHeap(): Heap<{ readonly entry: Entry; readonly order: number }> {
  return new Heap({
    before: (a, b) => a.entry.backoffUntilMs < b.entry.backoffUntilMs || (a.entry.backoffUntilMs === b.entry.backoffUntilMs && isBefore(a.entry, b.entry)),
    isStale: ({ entry, order }) => entry.state !== "backoff" || entry.order !== order,
  });
}

function isBefore(a: Entry, b: Entry): boolean {
  const higher = (a.pod.spec.priority ?? 0) - (b.pod.spec.priority ?? 0);
  return higher !== 0 ? higher > 0 : a.sinceMs !== b.sinceMs ? a.sinceMs < b.sinceMs : a.order < b.order;
}

export function hasGates({ spec }: Readonly<Pod>): boolean {
  return (spec.schedulingGates ?? []).length > 0;
}

/** Whether a change of a pod can make it fit: anything but status and bookkeeping. */
function asksForOther(before: Readonly<Pod>, after: Readonly<Pod>): boolean {
  return !Bun.deepEquals(before.spec, after.spec) || !Bun.deepEquals(before.metadata.labels, after.metadata.labels)
    || !Bun.deepEquals(before.status?.resourceClaimStatuses, after.status?.resourceClaimStatuses) || !Bun.deepEquals(before.status?.extendedResourceClaimStatus, after.status?.extendedResourceClaimStatus);
}
