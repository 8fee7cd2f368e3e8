/** apiserver_flowcontrol_*: read from levels and flows when scraped. A flow has samples of what has happened in it; a level always. Source: kubernetes v1.36 apiserver/pkg/util/flowcontrol/metrics/metrics.go */
import type { Labels, Metrics, Observations } from "../../observe/metrics.ts";
import type { Fairness } from "./fairness.ts";
import type { Flow, Level } from "./level.ts";

const PREFIX = "apiserver_flowcontrol_";

export function flowMetrics(metrics: Metrics, fairness: Fairness): void {
  const labelsOf = (flow: Flow): Labels => ({ priority_level: flow.level.name, flow_schema: flow.name });
  function byFlow(type: "counterFrom" | "gaugeFrom", name: string, help: string, value: (flow: Flow) => number, has: (flow: Flow) => boolean = ({ dispatched }) => dispatched > 0): void {
    metrics[type](PREFIX + name, help, function* () { for (const flow of fairness.flows) if (has(flow)) yield [labelsOf(flow), value(flow)] as const; });
  }
  function byLevel(name: string, help: string, value: (level: Level) => number): void {
    metrics.gaugeFrom(PREFIX + name, help, function* () { for (const level of fairness.levels.values()) yield [{ priority_level: level.name }, value(level)] as const; });
  }
  function histogram(name: string, help: string, all: () => Iterable<Observations>): void {
    metrics.histogramFrom(PREFIX + name, help, all);
  }
  function histogramByFlow(name: string, help: string, of: (flow: Flow) => readonly Observations[]): void {
    histogram(name, help, () => fairness.flows.flatMap(of).filter(({ isEmpty }) => !isEmpty));
  }
  const hasQueued = ({ queueLengths }: Flow): boolean => !queueLengths.isEmpty;

  metrics.counterFrom(`${PREFIX}rejected_requests_total`, "[BETA] Number of requests rejected by API Priority and Fairness subsystem", function* () {
    for (const flow of fairness.flows) for (const [reason, count] of flow.rejected) yield [{ ...labelsOf(flow), reason }, count] as const;
  });
  byFlow("counterFrom", "dispatched_requests_total", "[BETA] Number of requests executed by API Priority and Fairness subsystem", ({ dispatched }) => dispatched);
  metrics.gaugeFrom("apiserver_current_inqueue_requests", "[ALPHA] Maximal number of queued requests in this apiserver per request kind in last second.", () => (["mutating", "readOnly"] as const).map((request_kind) => [{ request_kind }, fairness.waiting[request_kind].read(fairness.nowMs)]));
  byFlow("gaugeFrom", "current_inqueue_requests", "[BETA] Number of requests currently pending in queues of the API Priority and Fairness subsystem", ({ waiting }) => waiting, hasQueued);
  byFlow("gaugeFrom", "current_inqueue_seats", "[ALPHA] Number of seats currently pending in queues of the API Priority and Fairness subsystem", ({ waitingSeats }) => waitingSeats, hasQueued);
  byFlow("gaugeFrom", "current_executing_requests", "[BETA] Number of requests in initial (for a WATCH) or any (for a non-WATCH) execution stage in the API Priority and Fairness subsystem", ({ executing }) => executing);
  byFlow("gaugeFrom", "current_executing_seats", "[BETA] Concurrency (number of seats) occupied by the currently executing (initial stage for a WATCH, any stage otherwise) requests in the API Priority and Fairness subsystem", ({ seats }) => seats);
  byLevel("nominal_limit_seats", "[BETA] Nominal number of execution seats configured for each priority level", ({ limits }) => limits.nominal);
  byLevel("lower_limit_seats", "[ALPHA] Configured lower bound on number of execution seats available to each priority level", ({ limits }) => limits.lower);
  byLevel("upper_limit_seats", "[ALPHA] Configured upper bound on number of execution seats available to each priority level", ({ limits }) => limits.upper);
  byLevel("current_limit_seats", "[ALPHA] current derived number of execution seats available to each priority level", ({ queues }) => queues.limit);
  byLevel("demand_seats_high_watermark", "[ALPHA] High watermark, over last adjustment period, of demand_seats", ({ peak }) => peak);
  byLevel("demand_seats_average", "[ALPHA] Time-weighted average, over last adjustment period, of demand_seats", ({ average }) => average);
  byLevel("demand_seats_stdev", "[ALPHA] Time-weighted standard deviation, over last adjustment period, of demand_seats", ({ deviation }) => deviation);
  byLevel("demand_seats_smoothed", "[ALPHA] Smoothed seat demands", ({ smoothed }) => smoothed);
  byLevel("target_seats", "[ALPHA] Seat allocation targets", ({ target }) => target);
  byFlow("counterFrom", "request_dispatch_no_accommodation_total", "[ALPHA] Number of times a dispatch attempt resulted in a non accommodation due to lack of available seats", ({ unaccommodated }) => unaccommodated, ({ unaccommodated }) => unaccommodated > 0);
  byLevel("current_r", "[ALPHA] R(time of last change)", ({ queues }) => queues.currentR);
  metrics.gaugeFrom(`${PREFIX}seat_fair_frac`, "[ALPHA] Fair fraction of server's concurrency to allocate to each priority level that can use it", () => [[{}, fairness.fraction]]);
  histogramByFlow("request_wait_duration_seconds", "[BETA] Length of time a request spent waiting in its queue", ({ waited }) => [waited.true, waited.false]);
  histogramByFlow("request_execution_seconds", "[ALPHA] Duration of initial stage (for a WATCH) or any (for a non-WATCH) stage of request execution in the API Priority and Fairness subsystem", ({ regular, watches }) => [regular, watches]);
  histogramByFlow("request_queue_length_after_enqueue", "[ALPHA] Length of queue in the API Priority and Fairness subsystem, as seen by each request after it is enqueued", ({ queueLengths }) => [queueLengths]);
  histogramByFlow("work_estimated_seats", "[ALPHA] Number of estimated seats (maximum of initial and final seats) associated with requests in API Priority and Fairness", ({ estimates }) => [estimates]);
  histogramByFlow("watch_count_samples", "[ALPHA] count of watchers for mutating requests in API Priority and Fairness", ({ watchers }) => [watchers]);
  histogram("priority_level_request_utilization", "EXPERIMENTAL: [ALPHA] Observations, at the end of every nanosecond, of number of requests (as a fraction of the relevant limit) waiting or in any stage of execution (but only initial stage for WATCHes)", () => [...fairness.levels.values()].flatMap(({ requests }) => [requests.waiting.observed(fairness.nowMs), requests.executing.observed(fairness.nowMs)]));
  histogram("read_vs_write_current_requests", "EXPERIMENTAL: [ALPHA] Observations, at the end of every nanosecond, of the number of requests (as a fraction of the relevant limit) waiting or in regular stage of execution", () => Object.values(fairness.traffic).flatMap(({ readOnly, mutating }) => [readOnly.observed(fairness.nowMs), mutating.observed(fairness.nowMs)]));
  histogram("demand_seats", "EXPERIMENTAL: [ALPHA] Observations, at the end of every nanosecond, of (the number of seats each priority level could use) / (nominal number of seats for that level)", () => [...fairness.levels.values()].map(({ demand }) => demand.observed(fairness.nowMs)));
  histogram("priority_level_seat_utilization", "EXPERIMENTAL: [ALPHA] Observations, at the end of every nanosecond, of utilization of seats for any stage of execution (but only initial stage for WATCHes)", () => [...fairness.levels.values()].map(({ utilization }) => utilization.observed(fairness.nowMs)));
}
