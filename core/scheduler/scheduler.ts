/**
 * Gives every pod without a node one.
 *
 *   pods, nodes … ──follow-cluster.ts──▶ snapshot, queue ──▶ place.ts decides ──▶ binder.ts: assumed ──▶ volumes bound ──▶ POST …/binding
 *                                          ▲       │ nowhere                                       │ fails
 *                                          │       ▼                                               │
 *                                          │   room-maker.ts: preempt.ts ──▶ evict.ts              │
 *                                          └────────── forgotten, tried again ◀────────────────────┘
 *
 * One pod is decided at a time, so each decision sees the ones before it; what follows a decision is written while the next is made. Pods of one group are decided together (pod-group-cycle.ts).
 * Pods whose spec.schedulerName is no profile's are somebody else's.
 */
import { errorText } from "../api/meta/error-text.ts";
import { isDeleting, keyOf } from "../api/meta/object-meta.ts";
import { PODS } from "../client/resources.ts";
import { type Breathe, breathers } from "../lifecycle/breather.ts";
import type { Runnable } from "../lifecycle/run-all.ts";
import { EXTENDER, filterByExtenders, scoresOfExtenders } from "./ask-extenders.ts";
import { Batch, signatureOf } from "./batch.ts";
import { Binder } from "./binder.ts";
import { devicePlan } from "./devices/dynamic-resources.ts";
import { DevicePlan, finish, thoughtThrough, Unfinished } from "./devices/plan.ts";
import type { Evaluation } from "./evaluation.ts";
import { followCluster } from "./follow-cluster.ts";
import { Kinds } from "./kinds.ts";
import { type LiveNode, type PlacedPod, placedPod } from "./node-info.ts";
import { Parts, type SchedulerDeps, type Tried } from "./parts.ts";
import { best, type Found, type NoPlacement, nowhere, place, type Placement, search, type SearchStart } from "./place.ts";
import { type StepTimes, TIMED_EVERY } from "./plugin-times.ts";
import { DEFAULT_PROFILE, type Profile } from "./plugins.ts";
import { PodGroupCycle } from "./pod-group-cycle.ts";
import type { Attempt } from "./queue.ts";
import { RoomMaker } from "./room-maker.ts";

/** Pods are decided on as fast as they are made where requests keep all busy, and no request waits noticeably longer. */
const SLICE_MS_MAX = 50;

type Within = readonly LiveNode[] | undefined;

export function scheduler(deps: SchedulerDeps): Runnable {
  return {
    name: "scheduler",
    async run(signal, ready) {
      const parts = new Parts(deps), binder = new Binder(parts);
      const stop = await followCluster(parts, binder, signal);
      try {
        ready();
        await new Scheduler(parts, binder).schedule(signal);
      } finally {
        stop();
        parts.queue.close();
      }
    },
  };
}

class Scheduler {
  readonly #parts: Parts;
  readonly #binder: Binder;
  readonly #rooms: RoomMaker;
  readonly #groups: PodGroupCycle | undefined;
  readonly #batches = new Map<string, Batch>(); // by name of profile
  #cycle = 0;
  readonly #start: SearchStart = { next: 0 };
  readonly #kinds = new Kinds();
  readonly #breathers: () => Breathe;
  #tried = 0;

  constructor(parts: Parts, binder: Binder) {
    this.#parts = parts;
    this.#binder = binder;
    this.#rooms = new RoomMaker(parts, binder);
    this.#breathers = breathers(parts.deps.clock, { sliceMsMax: SLICE_MS_MAX });
    this.#groups = parts.groups && new PodGroupCycle({
      parts, groups: parts.groups, binder, rooms: this.#rooms, place: (tried, within) => this.#placedNext(tried, within),
      placeWithExtenders: (tried, within) => this.#placeWithExtenders(tried, within),
    });
  }

  async schedule(signal: AbortSignal): Promise<void> {
    const { queue, writes, waits } = this.#parts;
    const breathe = this.#breathers();
    for (;;) {
      const attempt = await queue.take(signal);
      if (!attempt) break;
      const decided = this.#attempt(attempt, signal);
      if (decided) await decided;
      const room = writes.room();
      if (room) await room;
      const turn = breathe();
      if (turn) await turn;
    }
    await Promise.all([writes.settled(), waits.settled()]);
  }

  #attempt(attempt: Attempt, signal: AbortSignal): void | Promise<void> {
    const startMs = this.#parts.deps.clock.uptimeMs();
    if (this.#groups?.concerns(attempt.pod)) return this.#groups.decide(attempt, signal);
    this.#cycle++;
    try {
      return this.#decide(attempt, startMs, signal)?.catch((error: unknown) => this.#undecided({ attempt, startMs, signal }, error));
    } catch (error) {
      this.#undecided({ attempt, startMs, signal }, error);
    }
  }

  /** One pod that cannot be thought through does not stop the others. */
  #undecided({ attempt, startMs, signal }: { readonly attempt: Attempt; readonly startMs: number; readonly signal: AbortSignal }, error: unknown): void {
    const { pod } = attempt;
    const { deps: { log }, queue, writes } = this.#parts;
    if (signal.aborted) return; // it is others who decide on it now
    log.error("a pod could not be decided on, it is tried again", { pod: attempt.key, error });
    const profile = this.#parts.profileOf(pod) ?? DEFAULT_PROFILE;
    queue.fail(attempt, "error");
    writes.add(this.#parts.tellError({ pod, profile, startMs, signal }, errorText(error)));
  }

  #decide(attempt: Attempt, startMs: number, signal: AbortSignal): void | Promise<void> {
    const { deps: { informers }, extenders, snapshot, queue } = this.#parts;
    const pod = informers.of(PODS).get(attempt.key);
    const profile = pod && this.#parts.profileOf(pod);
    if (!pod || !profile || pod.metadata.uid !== attempt.pod.metadata.uid || !this.#parts.isWaiting(pod) || snapshot.isAssumed(pod)) return queue.done(attempt);
    if (isDeleting(pod)) {
      this.#parts.tellUnscheduled(pod, profile, `skip schedule deleting pod: ${attempt.key}`);
      return queue.done(attempt);
    }
    const candidate = placedPod(pod);
    const tried = { attempt, candidate, profile, startMs, signal };
    if (extenders.some((extender) => extender.isInterestedIn(pod))) return this.#decideWithExtenders(tried);
    const plan = devicePlan(candidate, this.#parts.cluster);
    if (!(plan instanceof DevicePlan)) return this.#go(tried);
    plan.mayPause = true;
    try {
      this.#go(tried);
    } catch (error) {
      if (error instanceof Unfinished) return this.#thinkOn(tried, error);
      throw error;
    }
  }

  #go(tried: Tried): void {
    const placement = this.#placed(tried);
    if (placement.type === "none") this.#rooms.makeRoom(tried, placement);
    else this.#binder.go(tried, placement.node);
  }

  /** Which devices a pod could have may take seconds to find out: no other pod is decided meanwhile, and everybody else has his turn. */
  async #thinkOn(tried: Tried, unfinished: Unfinished): Promise<void> {
    const { attempt, candidate: { pod }, startMs, signal } = tried;
    const { deps: { informers }, snapshot } = this.#parts;
    const breathe = this.#untilAborted(signal);
    for (let left: Unfinished | undefined = unfinished; left; ) {
      await finish(left, breathe);
      const now = informers.of(PODS).get(attempt.key);
      if (now?.metadata.uid !== pod.metadata.uid || isDeleting(now) || !this.#parts.isWaiting(now) || snapshot.isAssumed(now)) return this.#decide(attempt, startMs, signal);
      left = undefined;
      try {
        this.#go(tried);
      } catch (error) {
        if (!(error instanceof Unfinished)) throw error;
        left = error;
      }
    }
  }

  /** `within`: among these nodes alone. Then it tells nothing of the next like it. */
  #placedNext(tried: Tried, within: Within): Placement {
    this.#cycle++;
    if (!within) return this.#placed(tried);
    const { deps: { random }, cluster } = this.#parts;
    const placement = place(tried.candidate, cluster, tried.profile, { random, within, start: { next: 0 }, kind: this.#kinds.of(tried.candidate), steps: this.#stepsOf(tried.profile) });
    this.#tookToDecide(tried, placement.evaluation);
    return placement;
  }

  #placed(tried: Tried): Placement {
    const placement = this.#place(tried.candidate, tried.profile);
    this.#tookToDecide(tried, placement.evaluation);
    return placement;
  }

  /** As the last one like it was placed, if that still tells. */
  #place(candidate: PlacedPod, profile: Profile): Placement {
    const { deps: { random, clock }, cluster, metrics } = this.#parts;
    const startMs = clock.uptimeMs();
    const signature = signatureOf(candidate, cluster, profile);
    const signedMs = clock.uptimeMs();
    metrics.point("Sign", profile.schedulerName, signedMs - startMs);
    const batch = this.#batchOf(profile), turn = { candidate, signature, cycle: this.#cycle, nowMs: signedMs };
    const hint = batch.hint(turn, cluster);
    const hintMs = clock.uptimeMs() - signedMs;
    const placement = hint ? { type: "node" as const, ...hint, feasible: 1, evaluated: 1 } : place(candidate, cluster, profile, {
      random, start: this.#start, ranks: signature !== undefined, kind: this.#kinds.of(candidate), steps: this.#stepsOf(profile),
      times: this.#tried++ % TIMED_EVERY === 0 ? this.#parts.times : undefined,
    });
    const isPrepared = placement.evaluation !== undefined && placement.evaluation.refusal === undefined;
    if (isPrepared) metrics.hintTook(hint ? "hint" : "no_hint", profile.schedulerName, hintMs);
    const storedMs = clock.uptimeMs();
    batch.decided(placement.type === "node" ? { ...placement, isPrepared } : { node: undefined, feasible: 0, isPrepared }, turn);
    if (placement.type === "node") metrics.storeTook(profile.schedulerName, clock.uptimeMs() - storedMs);
    return placement;
  }

  #batchOf(profile: Profile): Batch {
    let batch = this.#batches.get(profile.schedulerName);
    if (!batch) this.#batches.set(profile.schedulerName, (batch = new Batch(profile, this.#parts.metrics)));
    return batch;
  }

  #stepsOf({ schedulerName }: Profile): StepTimes {
    const { deps: { clock }, metrics } = this.#parts;
    return {
      nowMs: () => clock.uptimeMs(), step: (point, status, ms) => metrics.point(point, schedulerName, ms, status),
      asked: (point, plugins) => metrics.evaluated(point, plugins, schedulerName),
    };
  }

  #tookToDecide({ profile, startMs }: Tried, evaluation: Evaluation | undefined): void {
    const { deps: { clock }, metrics } = this.#parts;
    metrics.algorithm(clock.uptimeMs() - startMs);
    if (evaluation) metrics.evaluated("Filter", evaluation.asked(), profile.schedulerName);
  }

  /** Others are asked over the network: no other pod is decided meanwhile. */
  async #decideWithExtenders(tried: Tried): Promise<void> {
    const placement = await this.#placeWithExtenders(tried);
    if (placement.type === "node") return this.#binder.go(tried, placement.node);
    await this.#rooms.makeRoomWithExtenders(tried, placement);
  }

  async #placeWithExtenders(tried: Tried, within?: Within): Promise<{ readonly type: "node"; readonly node: string } | NoPlacement> {
    const { candidate, profile, signal } = tried;
    const { deps: { random, log }, extenders, cluster } = this.#parts;
    const { pod } = candidate;
    const asked = { extenders, log, signal };
    const { found, feasible } = await this.#searchWithExtenders(tried, within, asked);
    const more = feasible.length > 1 ? await scoresOfExtenders(pod, feasible, asked) : new Map<string, number>();
    const node = feasible.length > 0 ? best(candidate, cluster, { feasible, scores: profile.scores, random, more, steps: this.#stepsOf(profile) }).name : undefined;
    this.#tookToDecide(tried, found.evaluation);
    return node !== undefined ? { type: "node", node } : found.type === "none" ? found : turnedDown(nowhere(cluster, { ...found, within }));
  }

  async #searched(candidate: PlacedPod, signal: AbortSignal, work: () => Found | NoPlacement): Promise<Found | NoPlacement> {
    const plan = devicePlan(candidate, this.#parts.cluster);
    if (!(plan instanceof DevicePlan)) return work();
    const found = await thoughtThrough(plan, work, this.#untilAborted(signal));
    plan.mayPause = false; // who asks it from now on cannot wait
    return found;
  }

  #untilAborted(signal: AbortSignal): Breathe {
    const slices = this.#breathers();
    return () => {
      signal.throwIfAborted();
      return slices();
    };
  }

  /** The node the pod was nominated to alone, if all take it; else whichever they leave. */
  async #searchWithExtenders({ candidate, profile, signal }: Tried, within: Within, asked: Parameters<typeof filterByExtenders>[3]): Promise<{ readonly found: Found | NoPlacement; readonly feasible: readonly LiveNode[] }> {
    const { cluster, deps: { log } } = this.#parts;
    const compares = profile.scores.length > 0 || asked.extenders.some(({ filters, prioritizes }) => filters || prioritizes);
    const looked = await this.#searched(candidate, signal, () => search(candidate, cluster, profile, { start: this.#start, within, compares, steps: this.#stepsOf(profile) }));
    if (looked.type === "none") return { found: looked, feasible: [] };
    try {
      const feasible = await filterByExtenders(candidate.pod, looked.feasible, looked.rejections, asked);
      if (feasible.length > 0 || !looked.isNominee) return { found: looked, feasible };
    } catch (error) {
      if (!looked.isNominee || signal.aborted) throw error;
      log.info("extenders could not be asked about the node a pod was nominated to, all are looked at", { pod: keyOf(candidate.pod), error });
    }
    const found = await this.#searched(candidate, signal, () => search(candidate, cluster, profile, { start: this.#start, within, compares, nominee: false, steps: this.#stepsOf(profile) }));
    return { found, feasible: found.type === "none" ? [] : await filterByExtenders(candidate.pod, found.feasible, found.rejections, asked) };
  }
}

/** It is extenders that have kept the pod off, whether they say of which nodes or not. */
function turnedDown(failure: NoPlacement): NoPlacement { return { ...failure, filters: new Set([...failure.filters, EXTENDER]) }; }
