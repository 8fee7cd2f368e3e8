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

  #update(second: number): void {
    if (second < this.#raisedAt + this.#retryAfter) return;
    const dropped = this.#history.filter((one) => second - one.second <= this.#retryAfter).reduce((sum, { count }) => sum + count, 0);
    if (dropped < this.#retryAfter) {
      this.#retryAfter = Math.max(1, this.#retryAfter / 2);
      this.#raisedAt = second;
    } else if (dropped >= 3 * this.#retryAfter) {
      this.#retryAfter = Math.min(this.#retryAfter * 2, RETRY_AFTER_MAX);
      this.#raisedAt = second;
    }
  }
}
