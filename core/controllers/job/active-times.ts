/**
 * For how long Jobs have been active: at first as their status and the clock tell, from then on by uptime. A clock that is set while a Job runs, as when a network appears after the start of
 * the machine, then neither ends it nor lets it run on.
 */
import type { Job } from "../../api/gen/batch.v1.ts";
import { keyOf, type ObjectKey } from "../../api/meta/object-meta.ts";
import { parseTime } from "../../api/meta/time.ts";
import type { Clock } from "../../lifecycle/clock.ts";

/** `start`: of which Job, and when that says it has started. `seenMs`: by uptime. */
interface Seen { readonly start: string; readonly activeMs: number; readonly seenMs: number }

export class ActiveTimes {
  readonly #clock: Pick<Clock, "nowMs" | "uptimeMs">;
  readonly #seen = new Map<ObjectKey, Seen>();

  constructor(clock: Pick<Clock, "nowMs" | "uptimeMs">) { this.#clock = clock; }

  /** 0 for one that has not started. */
  of(job: Readonly<Job>): number {
    const key = keyOf(job), startMs = parseTime(job.status?.startTime ?? "");
    if (startMs === undefined) {
      this.#seen.delete(key);
      return 0;
    }
    const start = `${job.metadata.uid} ${job.status?.startTime}`, uptimeMs = this.#clock.uptimeMs();
    const known = this.#seen.get(key);
    const seen = known?.start === start ? known : { start, activeMs: Math.max(0, this.#clock.nowMs() - startMs), seenMs: uptimeMs };
    this.#seen.set(key, seen);
    return seen.activeMs + uptimeMs - seen.seenMs;
  }

  forget(key: ObjectKey): void { this.#seen.delete(key); }
}
