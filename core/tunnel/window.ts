/**
 * How much of one connection may be under way to us: its receive window.
 *
 * It begins small and doubles while that makes the connection faster: a window that is too small for the way's length holds it back, one that is too large
 * only fills queues that others wait behind. A reader that is slow never sees its window grow. All windows of a session share a budget, which is what bounds
 * the memory they can cost.
 */
export interface WindowLimits {
  readonly initialBytes: number;
  readonly maxBytes: number;
  /** For all connections of a session together, beyond their initial windows. */
  readonly budgetBytes: number;
}

/** 64 KiB are no obstacle on a LAN; 1 MiB is 20 MB/s over 50 ms. Source: HTTP/2's initial window; k3s remotedialer pauses at 16 MiB. */
export const WINDOW_LIMITS: WindowLimits = { initialBytes: 64 * 1024, maxBytes: 1024 * 1024, budgetBytes: 16 * 1024 * 1024 };

/** What HTTP/2 itself lets be under way, for all connections together: more than they will use, so that it is never HTTP/2 that holds back. */
export const HTTP2_WINDOW_BYTES = 4 * 1024 * 1024;

/** How much faster a larger window must have made a connection for it to get one more. */
const GAIN_MIN = 1.25;

export class WindowBudget {
  #left: number;
  constructor(bytes: number) { this.#left = bytes; }

  take(bytes: number): boolean {
    if (bytes > this.#left) return false;
    this.#left -= bytes;
    return true;
  }

  give(bytes: number): void { this.#left += bytes; }
}

export class ReceiveWindow {
  readonly #limits: WindowLimits;
  readonly #budget: WindowBudget;
  readonly #uptimeMs: () => number;
  #size: number;
  /** What the peer may still send. Invariant: #open + #owed + what is held unread = #size. */
  #open: number;
  /** What was read and not yet credited. */
  #owed = 0;
  /** Since when, and how much was read since then, at this size. */
  #sinceMs: number;
  #readBytes = 0;
  #bestRate = 0;

  constructor(limits: WindowLimits, budget: WindowBudget, uptimeMs: () => number) {
    this.#limits = limits;
    this.#budget = budget;
    this.#uptimeMs = uptimeMs;
    this.#size = this.#open = limits.initialBytes;
    this.#sinceMs = uptimeMs();
  }

  get sizeBytes(): number { return this.#size; }

  /** False: the peer sent more than it may. */
  received(bytes: number): boolean {
    this.#open -= bytes;
    return this.#open >= 0;
  }

  /** Returns the credit to send now, perhaps none. `keptUp`: nothing that came is still unread. */
  read(bytes: number, { keptUp }: { readonly keptUp: boolean }): number {
    this.#owed += bytes;
    this.#readBytes += bytes;
    if (this.#owed < this.#size / 2) return 0;
    const credit = this.#owed + (keptUp ? this.#growth() : 0);
    this.#open += credit;
    this.#owed = 0;
    return credit;
  }

  /** After two windows at one size it is known how fast that is. */
  #growth(): number {
    if (this.#readBytes < 2 * this.#size) return 0;
    const nowMs = this.#uptimeMs();
    const rate = this.#readBytes / Math.max(nowMs - this.#sinceMs, 0.001);
    this.#sinceMs = nowMs;
    this.#readBytes = 0;
    const more = Math.min(this.#size, this.#limits.maxBytes - this.#size);
    if (more <= 0 || rate < this.#bestRate * GAIN_MIN || !this.#budget.take(more)) return 0;
    this.#bestRate = rate;
    this.#size += more;
    return more;
  }

  /** Once, when the connection is gone. */
  release(): void {
    this.#budget.give(this.#size - this.#limits.initialBytes);
    this.#size = this.#limits.initialBytes;
  }
}
