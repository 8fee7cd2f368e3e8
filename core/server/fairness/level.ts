/** A priority level and the flows of it: what they are, and what was counted of them. */
import type { FlowSchema, PriorityLevelConfiguration, QueuingConfiguration } from "../../api/gen/flowcontrol.v1.ts";
import type { UserInfo } from "../../api/request/user.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import { Observations } from "../../observe/metrics.ts";
import type { RequestInfo } from "../request-info.ts";
import { type Limits, smoothed } from "./borrowing.ts";
import { DroppedRequests } from "./dropped.ts";
import { QueueSet, type Refusal, type Seating, type TurnEnd } from "./queue-set.ts";
import { TimeWeighted } from "./time-weighted.ts";
import { type Ticket, TooManyRequests } from "./too-many-requests.ts";
import type { WorkEstimate } from "./work-estimate.ts";

const DURATION_BUCKETS: readonly number[] = [0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30];
const QUEUE_LENGTH_BUCKETS: readonly number[] = [0, 10, 25, 50, 100, 250, 500, 1000];
const SEAT_BUCKETS: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 100];
const DEMAND_BUCKETS: readonly number[] = [0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.4, 1.7, 2, 2.8, 4, 6];
const WATCHER_BUCKETS: readonly number[] = [0, 1, 10, 100, 1000, 10_000];
const REQUEST_BUCKETS: readonly number[] = [0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1];
const UTILIZATION_BUCKETS: readonly number[] = [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1];
/** Of a level's seats, what one request may take; not more than those of one queue of a hand. Source: apf_controller.go finishQueueSetReconfigsLocked */
const SEATS_SHARE_MAX = 0.15;

/** A request that has a seat or waits for one, as the debug page shows it. */
export interface Known { readonly flow: Flow; readonly seating: Seating; readonly info: RequestInfo; readonly user: UserInfo; readonly afterMs: number }

export class Level {
  readonly name: string;
  readonly queues: QueueSet;
  readonly executing = new Set<Known>();
  readonly waiting = new Set<Known>();
  readonly demand: TimeWeighted;
  readonly utilization: TimeWeighted;
  /** How many requests there are, as shares of the queues' places and of the seats. */
  readonly requests: Readonly<Record<"waiting" | "executing", TimeWeighted>>;
  readonly #clock: Clock;
  readonly #dropped = new DroppedRequests();
  uid = "";
  isExempt = false;
  limits: Limits = { nominal: 0, lower: 0, upper: 0 };
  seatsMax = 0;
  /** In its queues. */
  places = 0;
  target = 0;
  smoothed = 0;
  average = 0;
  deviation = 0;
  peak = 0;
  readonly counted = { dispatched: 0, rejected: 0, cancelled: 0 };

  constructor(name: string, clock: Clock, turns: TurnEnd) {
    this.name = name;
    this.#clock = clock;
    this.queues = new QueueSet(clock, turns);
    const nowMs = clock.uptimeMs();
    this.demand = new TimeWeighted(nowMs, new Observations({ priority_level: name }, DEMAND_BUCKETS));
    this.utilization = new TimeWeighted(nowMs, new Observations({ priority_level: name, phase: "executing" }, UTILIZATION_BUCKETS));
    const requests = (phase: string): TimeWeighted => new TimeWeighted(nowMs, new Observations({ priority_level: name, phase }, REQUEST_BUCKETS));
    this.requests = { waiting: requests("waiting"), executing: requests("executing") };
  }

  configure({ metadata, spec }: Readonly<PriorityLevelConfiguration>, limits: Limits): void {
    this.uid = metadata.uid ?? "";
    this.isExempt = spec?.type === "Exempt";
    this.limits = limits;
    const queuing = spec?.limited?.limitResponse?.type === "Queue" ? spec.limited.limitResponse.queuing : undefined;
    this.seatsMax = Math.ceil(limits.nominal * SEATS_SHARE_MAX);
    if (queuing) this.seatsMax = Math.max(1, Math.min(this.seatsMax, Math.floor(limits.nominal / (queuing.handSize || 1))));
    this.places = placesIn(queuing);
    this.requests.waiting.denominator = Math.max(1, this.places);
    this.queues.configure(queuing);
  }

  /** `idle`: what a level without seats is measured by. */
  setLimit(seats: number, { target, idle }: { readonly target: number; readonly idle: number }): void {
    this.target = target;
    for (const measured of [this.demand, this.utilization, this.requests.executing]) measured.denominator = seats > 0 ? seats : idle;
    this.queues.setLimit(seats);
  }

  measure(nowMs: number): void {
    const period = this.demand.period(nowMs);
    this.peak = period.peak;
    if (period.elapsedMs === 0) return;
    this.average = period.average;
    this.deviation = period.deviation;
    this.smoothed = smoothed(this.smoothed, period);
  }

  /** The request has its seats until the ticket is given back. */
  take(flow: Flow, seating: Seating, { afterMs, info, user }: { readonly afterMs: number; readonly info: RequestInfo; readonly user: UserInfo }): Ticket {
    const one: Known = { flow, seating, info, user, afterMs };
    this.executing.add(one);
    this.counted.dispatched++;
    flow.dispatched++;
    flow.seats += seating.seats;
    flow.executing++;
    this.requests.executing.add(1, seating.startedMs);
    this.utilization.add(seating.seats, seating.startedMs);
    return { done: () => this.#done(one) };
  }

  #done(one: Known): void {
    if (!this.executing.delete(one)) return;
    const { flow, seating, info, afterMs } = one;
    const nowMs = this.#clock.uptimeMs();
    flow.executing--;
    this.requests.executing.add(-1, nowMs);
    flow.served((nowMs - seating.startedMs) / 1000, info.verb === "watch");
    // watchers are still being told: that matters only where seats are scarce
    if (afterMs > 0 && this.queues.waiting > 0) this.#clock.after(afterMs, () => this.#release(flow, seating, nowMs));
    else this.#release(flow, seating, nowMs);
  }

  #release(flow: Flow, seating: Seating, endedMs: number): void {
    flow.seats -= seating.seats;
    const nowMs = this.#clock.uptimeMs();
    this.demand.add(-seating.seats, nowMs);
    this.utilization.add(-seating.seats, nowMs);
    if (!this.isExempt) this.queues.leave(seating, endedMs);
  }

  refuse(flow: Flow, seating: Seating, reason: Refusal): TooManyRequests {
    const nowMs = this.#clock.uptimeMs();
    this.demand.add(-seating.seats, nowMs);
    const told = reason === "cancelled" ? "time-out" : reason; // upstream does not tell them apart
    this.counted.rejected++;
    if (told === "time-out") this.counted.cancelled++;
    flow.rejected.set(told, (flow.rejected.get(told) ?? 0) + 1);
    this.#dropped.record(nowMs);
    return new TooManyRequests(reason, this.#dropped.retryAfter);
  }
}

/** How many requests may wait. */
function placesIn(queuing: QueuingConfiguration | undefined): number { return (queuing?.queues ?? 0) * (queuing?.queueLengthLimit ?? 0); }

export class Flow {
  readonly name: string;
  readonly level: Level;
  schema: Readonly<FlowSchema>;
  dispatched = 0;
  executing = 0;
  seats = 0;
  waiting = 0;
  waitingSeats = 0;
  /** How often it was a request's turn, and too few seats were free. */
  unaccommodated = 0;
  readonly rejected = new Map<Refusal, number>();
  readonly waited: Readonly<Record<"true" | "false", Observations>>;
  readonly regular: Observations;
  readonly watches: Observations;
  readonly queueLengths: Observations;
  readonly estimates: Observations;
  readonly watchers: Observations;

  constructor(schema: Readonly<FlowSchema>, level: Level) {
    this.schema = schema;
    this.name = schema.metadata.name;
    this.level = level;
    const labels = { priority_level: level.name, flow_schema: this.name };
    this.waited = { true: new Observations({ ...labels, execute: "true" }, DURATION_BUCKETS), false: new Observations({ ...labels, execute: "false" }, DURATION_BUCKETS) };
    this.regular = new Observations({ ...labels, type: "regular" }, DURATION_BUCKETS);
    this.watches = new Observations({ ...labels, type: "watch" }, DURATION_BUCKETS);
    this.queueLengths = new Observations(labels, QUEUE_LENGTH_BUCKETS);
    this.estimates = new Observations(labels, SEAT_BUCKETS);
    this.watchers = new Observations(labels, WATCHER_BUCKETS);
  }

  get uid(): string {
    return this.schema.metadata.uid ?? "";
  }

  estimated({ seats, watchers }: WorkEstimate): void {
    this.estimates.observe(seats);
    if (watchers !== undefined) this.watchers.observe(watchers);
  }

  /** Through a queue, if there is one, without waiting. */
  passed(): void {
    this.waited.true.observe(0);
    if (this.level.places > 0) this.queueLengths.observe(1);
  }

  turnedAway(): void { this.waited.false.observe(0); }

  queued({ seats, queue, arrivedMs }: Seating): void {
    this.waiting++;
    this.level.requests.waiting.add(1, arrivedMs);
    this.waitingSeats += seats;
    this.queueLengths.observe(queue?.waiting.length ?? 0);
  }

  unqueued({ seats, arrivedMs }: Seating, isServed: boolean, nowMs: number): void {
    this.waiting--;
    this.level.requests.waiting.add(-1, nowMs);
    this.waitingSeats -= seats;
    this.waited[isServed ? "true" : "false"].observe((nowMs - arrivedMs) / 1000);
  }

  served(seconds: number, isWatch: boolean): void {
    (isWatch ? this.watches : this.regular).observe(seconds);
  }
}
