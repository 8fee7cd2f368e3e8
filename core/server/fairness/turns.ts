/**
 * Turns of the event loop. In each what has come over many connections is served, one request after the other: most are done before the next one is looked at, so that none
 * would ever find a seat taken. A seat is therefore free again only when the turn is over, and who found none in it is served then:
 *
 *   a turn: requests that find seats ─▶ for a moment those that have got theirs at the last end ─▶ its end: seats go to those who wait ─▶ the next turn
 *
 * Of levels with such requests the one is served whose requests have taken the least time for its seats, encoding of the answer and all. What one has saved up while none of
 * its requests waited does not count. While nobody waits no books are kept.
 */
import type { Clock } from "../../lifecycle/clock.ts";
import type { QueueSet, Seating, TurnEnd } from "./queue-set.ts";

/**
 * Of those that waited, in one turn: so many, and none after so long. After a long turn it is as long as that was: whoever needs no seat, or finds one, would else take all of a
 * busy server, and what once waits would never catch up.
 */
const SERVED_MAX = 128, SERVE_MS = 2, SERVE_MS_MAX = 50;

export class Turns implements TurnEnd {
  readonly #clock: Pick<Clock, "uptimeMs">;
  readonly #later: (work: () => void) => void;
  /** With seats to give back, or requests that wait or have just got theirs. */
  readonly #awake = new Set<QueueSet>();
  #isEnding = false;
  #isBusy = false;
  #running: { readonly queues: QueueSet; readonly seating: Seating } | undefined;
  #sinceMs = 0;
  #untilMs = 0;
  /** The last turn that was looked at. */
  #endedMs = 0;
  /** What the last one to be served had used: who comes anew begins there. */
  #used = 0;

  /** `later`: runs it after what has come already: setImmediate. */
  constructor({ clock, later }: { readonly clock: Pick<Clock, "uptimeMs">; readonly later: (work: () => void) => void }) {
    this.#clock = clock;
    this.#later = later;
  }

  /** Somebody waits: what each request takes is taken down. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  wake(queues: QueueSet): void {
    if (!this.#awake.has(queues)) {
      this.#awake.add(queues);
      queues.used = this.#used;
    }
    if (queues.waiting > 0 && !this.#isBusy) {
      this.#isBusy = true;
      this.#sinceMs = this.#endedMs = this.#clock.uptimeMs();
    }
    this.#endLater();
  }

  /** What happens from now on is for this request; of a level that is exempt: for nobody's. */
  begins(queues: QueueSet, seating: Seating, isExempt: boolean): void {
    if (this.#isBusy) this.#account(isExempt ? undefined : { queues, seating });
  }

  #account(next: { readonly queues: QueueSet; readonly seating: Seating } | undefined): void {
    const nowMs = this.#clock.uptimeMs(), ranMs = nowMs - this.#sinceMs;
    this.#sinceMs = nowMs;
    if (this.#running) {
      this.#running.seating.ranMs += ranMs;
      this.#running.queues.use(ranMs);
    }
    this.#running = next;
  }

  #endLater(): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#later(() => this.#end());
  }

  #end(): void {
    this.#isEnding = false;
    if (this.#isBusy) this.#account(undefined);
    this.#endedMs = this.#sinceMs;
    let seated = 0;
    for (const queues of this.#awake) {
      seated += queues.giveBack();
      if (queues.seated === 0 && queues.waiting === 0) this.#awake.delete(queues);
    }
    this.#isBusy = this.#awake.size > 0;
    if (seated === 0) return;
    for (let n = 0; n < Math.min(seated, SERVED_MAX); n++) this.#later(() => this.#serve(n === 0));
    this.#endLater();
  }

  /** Each is done, as far as that is possible at once, before the next one is chosen. */
  #serve(isFirst: boolean): void {
    this.#account(undefined);
    if (isFirst) this.#untilMs = this.#sinceMs + Math.min(SERVE_MS_MAX, Math.max(SERVE_MS, this.#sinceMs - this.#endedMs));
    else if (this.#sinceMs >= this.#untilMs) return;
    let next: QueueSet | undefined;
    for (const queues of this.#awake) if (queues.seated > 0 && !(next && next.used <= queues.used)) next = queues;
    if (!next) return;
    this.#used = next.used;
    next.serve();
  }
}
