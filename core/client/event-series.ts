/**
 * Events as clients of events.k8s.io tell them: one that is told again becomes a series. Pure but for what it remembers: the caller says what time it is, by uptime.
 *
 *   the first time     it is written
 *   the second         it is said to be a series of two
 *   from then on       it is counted, and written every half hour, and when it has not been told for six minutes
 *
 * What makes two the same is all but the note and the time: the same pod in another version has another event.
 *
 * Source: kubernetes v1.36 client-go/tools/events/event_broadcaster.go
 */
import type { Event } from "../api/gen/events.v1.ts";
import type { NewObject } from "../api/meta/object-meta.ts";

export type Report = NewObject<Event>;
/** What to write: the event, or, if it is in the store under this name already, its series alone. */
export interface Told { readonly report: Report; readonly isSeries: boolean }

/** Beyond so many the oldest is forgotten: what it counted is written as a new event. Client-go knows no bound. */
const ENTRIES_MAX = 4096;
export const REFRESH_MS = 30 * 60_000;
export const FINISH_MS = 6 * 60_000;

/** `lastTime`: as it was reported; `lastMs`: by uptime, for a clock that is set back ends no series for as long. */
interface Known { readonly report: Report; count: number; lastTime: Report["eventTime"]; lastMs: number }

export class EventSeries {
  readonly #known = new Map<string, Known>();

  /** How much is remembered. */
  get size(): number { return this.#known.size; }

  /** What to write now; undefined: nothing. */
  tell(report: Report, nowMs: number): Told | undefined {
    const key = keyOf(report);
    const known = this.#known.get(key);
    if (known === undefined) {
      this.#known.set(key, { report, count: 1, lastTime: report.eventTime, lastMs: nowMs });
      const [oldest = key] = this.#known.keys();
      if (this.#known.size > ENTRIES_MAX) this.#known.delete(oldest);
      return { report, isSeries: false };
    }
    known.count++;
    known.lastTime = report.eventTime;
    known.lastMs = nowMs;
    return known.count === 2 ? seriesOf(known) : undefined;
  }

  /** All series, so that they do not expire. */
  refresh(): Told[] {
    return [...this.#known.values()].filter(({ count }) => count > 1).map(seriesOf);
  }

  /** Forgets what has not been told for a while; returns the last words of series. */
  finish(nowMs: number): Told[] {
    const over = [...this.#known].filter(([, { lastMs }]) => lastMs < nowMs - FINISH_MS);
    for (const [key] of over) this.#known.delete(key);
    return over.filter(([, { count }]) => count > 1).map(([, known]) => seriesOf(known));
  }
}

function seriesOf({ report, count, lastTime }: Known): Told {
  return { report: { ...report, series: { count, lastObservedTime: lastTime } }, isSeries: true };
}

function keyOf({ type, action, reason, reportingController, reportingInstance, regarding }: Report): string {
  return JSON.stringify([type, action, reason, reportingController, reportingInstance, regarding]);
}
