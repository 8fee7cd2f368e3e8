/**
 * API Priority and Fairness: no client, however many requests it sends, keeps others from being served.
 *
 *   const entered = fairness.enter(request, info, user)      a ticket at once while there are seats, else a promise of one
 *   … the request is served …
 *   ticket.done()
 *
 * A request belongs to the first FlowSchema that fits it, and so to a priority level, which has seats. Callers in this process are not asked: what
 * they do is this server's own work, and would wait for itself. Lasting connections have no seat but for what a watch begins with.
 *
 * Source: kubernetes v1.36 apiserver/pkg/{server/filters/priority-and-fairness.go,util/flowcontrol/{apf_controller,apf_filter}.go}
 */
import type { FlowSchema, PriorityLevelConfiguration } from "../../api/gen/flowcontrol.v1.ts";
import { parseDurationMs } from "../../api/meta/duration.ts";
import { StatusError } from "../../api/meta/status-error.ts";
import type { UserInfo } from "../../api/request/user.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import { Observations } from "../../observe/metrics.ts";
import { REQUEST_MS } from "../deadline.ts";
import type { ServerRequest } from "../request.ts";
import type { RequestInfo, ResourceRequestInfo } from "../request-info.ts";
import { Watermark } from "../watermark.ts";
import { MANDATORY_LEVELS, MANDATORY_SCHEMAS } from "./bootstrap-objects.ts";
import { claimOf, limitsOf, shareSeats, sharesOf } from "./borrowing.ts";
import { concerns, inOrder, matches } from "./match.ts";
import { Flow, type Known, Level } from "./level.ts";
import type { Refusal, Seating } from "./queue-set.ts";
import { flowHash } from "./shuffle-shard.ts";
import { TimeWeighted } from "./time-weighted.ts";
import { FLOW_HEADERS, type Ticket } from "./too-many-requests.ts";
import { Turns } from "./turns.ts";
import { estimateWork, type ResourceSize } from "./work-estimate.ts";

export interface FairnessDeps {
  /** Seats of the whole server: --max-requests-inflight and --max-mutating-requests-inflight together. */
  readonly seats: number;
  readonly schemas: () => Iterable<Readonly<FlowSchema>>;
  readonly levels: () => Iterable<Readonly<PriorityLevelConfiguration>>;
  readonly sizeOf: (info: ResourceRequestInfo) => ResourceSize | undefined;
  readonly clock: Clock;
  /** Runs it when this turn of the event loop is over: setImmediate. */
  readonly later: (work: () => void) => void;
  /** How long an answer is waited for; absent: a minute. */
  readonly requestMs?: number | undefined;
}

export class Fairness {
  readonly #deps: FairnessDeps;
  readonly #turns: Turns;
  readonly #levels = new Map<string, Level>();
  #flows: Flow[] = [];
  /** Those that can be a user's at all. A connection's requests are all of one user, the same object. */
  #ofUsers = new WeakMap<UserInfo, readonly Flow[]>();
  #stale = true;
  #fraction = 0;
  #last: Flow | undefined;
  /** How many requests have waited at once, at most. */
  readonly waiting = { readOnly: new Watermark(), mutating: new Watermark() };
  /** How many requests there are of all levels, as shares of what may wait and of all seats. */
  readonly traffic: Readonly<Record<"waiting" | "executing", Readonly<Record<RequestKind, TimeWeighted>>>>;

  constructor(deps: FairnessDeps) {
    this.#deps = deps;
    this.#turns = new Turns(deps);
    const nowMs = deps.clock.uptimeMs();
    const both = (phase: string) => ({ readOnly: trafficOf(phase, "readOnly", nowMs), mutating: trafficOf(phase, "mutating", nowMs) });
    this.traffic = { waiting: both("waiting"), executing: both("executing") };
  }

  /** Told when a FlowSchema or a PriorityLevelConfiguration has changed. */
  changed(): void {
    this.#stale = true;
  }

  get levels(): ReadonlyMap<string, Level> {
    if (this.#stale) this.#read();
    return this.#levels;
  }

  get flows(): readonly Flow[] {
    if (this.#stale) this.#read();
    return this.#flows;
  }

  /** Requests wait for their turn: what each takes is taken down, by level. */
  get isCrowded(): boolean {
    return this.#turns.isBusy;
  }

  get nowMs(): number {
    return this.#deps.clock.uptimeMs();
  }

  /** Of what levels want, how much they get. */
  get fraction(): number {
    return this.#fraction;
  }

  enter(request: ServerRequest, info: RequestInfo, user: UserInfo): Ticket | Promise<Ticket> {
    const flow = this.#flowOf(info, user);
    const { level } = flow;
    request.setHeader?.(FLOW_HEADERS[0], flow.uid);
    request.setHeader?.(FLOW_HEADERS[1], level.uid);
    const nowMs = this.#deps.clock.uptimeMs();
    const work = estimateWork(info, request.query, this.#deps.sizeOf, level.seatsMax);
    const seating: Seating = { seats: work.seats, arrivedMs: nowMs, queue: undefined, startedMs: nowMs, ranMs: 0, arrivalR: 0, unaccommodated: () => void flow.unaccommodated++ };
    flow.estimated(work);
    level.demand.add(seating.seats, nowMs);
    if (level.isExempt) return this.#take(flow, seating, { afterMs: 0, info, user });
    const entered = level.queues.enter(seating, { hash: () => flowHash(flow.name, distinguisherOf(flow, info, user)), waitMs: () => waitMsOf(request, info, this.#deps.requestMs) }, request.signal);
    if (entered === "seated") {
      flow.passed();
      return this.#take(flow, seating, { afterMs: work.afterMs, info, user });
    }
    if (typeof entered === "string") {
      flow.turnedAway();
      throw level.refuse(flow, seating, entered);
    }
    flow.queued(seating);
    this.traffic.waiting[kindOf(info)].add(1, nowMs);
    this.waiting[kindOf(info)].add(1, nowMs);
    return this.#seated(entered, { level, flow, seating, afterMs: work.afterMs, info, user, signal: request.signal });
  }

  async #seated(waiting: Promise<Refusal | undefined>, waiter: Waiter): Promise<Ticket> {
    const { level, flow, seating, afterMs, info, user, signal } = waiter;
    level.waiting.add(waiter);
    const refusal = await waiting;
    level.waiting.delete(waiter);
    const nowMs = this.#deps.clock.uptimeMs();
    flow.unqueued(seating, refusal === undefined, nowMs);
    this.traffic.waiting[kindOf(info)].add(-1, nowMs);
    this.waiting[kindOf(info)].add(-1, nowMs);
    if (refusal !== undefined) {
      const refused = level.refuse(flow, seating, refusal);
      throw refusal === "cancelled" && signal.reason instanceof StatusError ? signal.reason : refused; // its time was up
    }
    return this.#take(flow, seating, { afterMs, info, user });
  }

  #take(flow: Flow, seating: Seating, asked: { readonly afterMs: number; readonly info: RequestInfo; readonly user: UserInfo }): Ticket {
    const { clock } = this.#deps;
    const executing = this.traffic.executing[kindOf(asked.info)];
    const ticket = flow.level.take(flow, seating, asked);
    this.#turns.begins(flow.level.queues, seating, flow.level.isExempt);
    executing.add(1, seating.startedMs);
    let isDone = false;
    return {
      done() {
        if (isDone) return;
        isDone = true;
        ticket.done();
        executing.add(-1, clock.uptimeMs());
      },
    };
  }

  #flowOf(info: RequestInfo, user: UserInfo): Flow {
    const { flows } = this;
    let own = this.#ofUsers.get(user);
    if (!own) this.#ofUsers.set(user, (own = flows.filter(({ schema }) => concerns(schema, user))));
    for (const flow of own) if (matches(flow.schema, info, user)) return flow;
    return this.#last!; // catch-all is always there
  }

  /** Takes the objects as they are now. Levels that stay keep their requests. */
  #read(): void {
    this.#stale = false;
    const { clock, seats } = this.#deps;
    const specs = named(this.#deps.levels(), MANDATORY_LEVELS);
    const shares = [...specs.values()].reduce((sum, { spec }) => sum + sharesOf(spec!), 0);
    for (const name of this.#levels.keys()) if (!specs.has(name)) this.#levels.delete(name);
    for (const [name, object] of specs) {
      let level = this.#levels.get(name);
      if (!level) this.#levels.set(name, (level = new Level(name, clock, this.#turns)));
      level.configure(object, limitsOf(object.spec!, seats, shares));
    }
    const known = new Map(this.#flows.map((flow) => [flow.name, flow]));
    const schemas = inOrder([...named(this.#deps.schemas(), MANDATORY_SCHEMAS).values()]);
    this.#flows = schemas.flatMap((schema) => {
      const level = this.#levels.get(schema.spec?.priorityLevelConfiguration.name ?? "");
      if (!level) return []; // it dangles: requests fall on to the next
      const before = known.get(schema.metadata.name);
      if (before?.level === level) {
        before.schema = schema;
        return [before];
      }
      return [new Flow(schema, level)];
    });
    const places = [...this.#levels.values()].reduce((sum, level) => sum + level.places, 0);
    for (const kind of ["readOnly", "mutating"] as const) {
      this.traffic.waiting[kind].denominator = Math.max(1, places);
      this.traffic.executing[kind].denominator = seats;
    }
    this.#ofUsers = new WeakMap();
    this.#last = this.#flows.find(({ name }) => name === "catch-all");
    this.#share();
  }

  /** Every ten seconds: who needs less lends to who needs more. */
  adjust(): void {
    if (this.#stale) this.#read();
    else this.#share();
  }

  /** By what each has wanted since this was last done. */
  #share(): void {
    const nowMs = this.#deps.clock.uptimeMs(), levels = [...this.#levels.values()];
    for (const level of levels) level.measure(nowMs);
    const limited = levels.filter(({ isExempt }) => !isExempt), exempt = levels.filter(({ isExempt }) => isExempt);
    const claims = limited.map(({ limits, peak, smoothed }) => claimOf(limits, peak, smoothed));
    const taken = exempt.map(({ limits, peak }) => Math.max(limits.lower, peak));
    const { fraction, seats } = shareSeats({ nominal: sum(levels.map(({ limits }) => limits.nominal)), exempt: sum(taken), claims });
    const idle = Math.max(1, Math.round(this.#deps.seats / 10));
    this.#fraction = fraction;
    for (const [i, level] of limited.entries()) level.setLimit(seats[i]!, { target: claims[i]!.target, idle });
    for (const [i, level] of exempt.entries()) level.setLimit(taken[i]!, { target: 0, idle });
  }
}

function sum(values: readonly number[]): number { return values.reduce((total, value) => total + value, 0); }

type RequestKind = "readOnly" | "mutating";

const TRAFFIC_BUCKETS: readonly number[] = [0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1];

function trafficOf(phase: string, kind: RequestKind, nowMs: number): TimeWeighted { return new TimeWeighted(nowMs, new Observations({ request_kind: kind, phase }, TRAFFIC_BUCKETS)); }

function kindOf({ verb }: RequestInfo): RequestKind { return verb === "get" || verb === "list" || verb === "watch" ? "readOnly" : "mutating"; }

interface Waiter extends Known { readonly level: Level; readonly signal: AbortSignal }

/** However long there is to answer. */
const WAIT_MS_MAX = 60_000;

/** A quarter of the time there is to answer. Watches have none. Source: priority-and-fairness.go getRequestWaitContext */
function waitMsOf({ query }: ServerRequest, { verb }: RequestInfo, requestMs: number = REQUEST_MS): number {
  const text = verb === "watch" ? null : query.get("timeout");
  const askedMs = text ? parseDurationMs(text) : 0; // what cannot be read is refused before
  return Math.min(WAIT_MS_MAX, (askedMs > 0 ? Math.min(askedMs, requestMs) : requestMs) / 4);
}

function named<T extends { readonly metadata: { readonly name: string } }>(objects: Iterable<T>, mandatory: readonly T[]): Map<string, T> {
  const found = new Map(mandatory.map((one) => [one.metadata.name, one]));
  for (const one of objects) found.set(one.metadata.name, one);
  return found;
}

function distinguisherOf({ schema }: Flow, info: RequestInfo, { name }: UserInfo): string {
  switch (schema.spec?.distinguisherMethod?.type) {
    case "ByUser": return name;
    case "ByNamespace": return info.isResource ? info.namespace : "";
    default: return "";
  }
}
