/** For how long Jobs have been active: a clock that is set while one runs neither ends it nor lets it run on. */
import type { Job } from "../../api/gen/batch.v1.ts";
import { keyOf, type ObjectKey } from "../../api/meta/object-meta.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import { Elapsed } from "../../lifecycle/elapsed.ts";

export class ActiveTimes {
  readonly #clock: Pick<Clock, "nowMs" | "uptimeMs">;
  readonly #started = new Map<ObjectKey, Elapsed>();

  constructor(clock: Pick<Clock, "nowMs" | "uptimeMs">) { this.#clock = clock; }

  /** Milliseconds; 0 for one that has not started. */
  of(job: Readonly<Job>): number {
    const key = keyOf(job), startTime = job.status?.startTime;
    if (startTime === undefined) {
      this.#started.delete(key);
      return 0;
    }
    const started = this.#started.get(key) ?? new Elapsed(this.#clock);
    this.#started.set(key, started);
    return started.sinceMs(startTime);
  }

  forget(key: ObjectKey): void { this.#started.delete(key); }
}
