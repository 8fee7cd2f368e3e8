/**
 * How long refused clients are told to wait: longer while a level keeps refusing, shorter again when it does not.
 *
 * Source: kubernetes v1.36 apiserver/pkg/util/flowcontrol/dropped_requests_tracker.go
 */
const RETRY_AFTER_MAX = 32;

export class DroppedRequests {
  #second = 0;
  #count = 0;
  #history: { readonly second: number; readonly count: number }[] = [];
  #retryAfter = 1;
  #raisedAt = 0;

  /** By uptime. */
  record(nowMs: number): void {
    const second = Math.floor(nowMs / 1000);
    if (second === this.#second) {
      this.#count++;
      return;
    }
    this.#history = [...this.#history, { second: this.#second, count: this.#count }].filter((one) => second - one.second <= Math.min(2 * this.#retryAfter, RETRY_AFTER_MAX));
    this.#second = second;
    this.#count = 1;
    this.#update(second);
  }

  /** Seconds. */
  get retryAfter(): number {
    return this.#retryAfter;
  }

  /** By what was dropped in the seconds before. */
  #update(second: number): void {
    const wait = this.#retryAfter;
    const dropped = this.#history.filter((one) => one.second < second && second - one.second <= wait).reduce((sum, { count }) => sum + count, 0);
    if (second - this.#raisedAt >= wait && dropped >= 3 * wait) {
      this.#retryAfter = Math.min(wait * 2, RETRY_AFTER_MAX);
      this.#raisedAt = second;
    } else if (dropped < wait && wait > 1) this.#retryAfter--;
  }
}
