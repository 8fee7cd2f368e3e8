/**
 * The seats of one priority level, and who waits for them.
 *
 * A request that finds a seat takes it. One that finds none waits in a queue of its flow's hand, the one with the least work before it; when a seat
 * becomes free, the queue whose first request would be finished first, if every queue were served bit by bit at the same speed, is served.
 *
 *   R    how far such a service would have got in each queue; it advances by what is served
 *   nextDispatchR    of a queue: where its next request would begin. Until a request is done, how long it takes is guessed.
 *
 * While less than half of the seats are taken nobody keeps books: there is nothing to be fair about. Seats of requests that are done are free again at the end of a turn of the
 * event loop (turns.ts), which is asked for only once half of them are such.
 *
 * Source: kubernetes v1.36 apiserver/pkg/util/flowcontrol/fairqueuing/queueset/{queueset,queue}.go
 */
import type { QueuingConfiguration } from "../../api/gen/flowcontrol.v1.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import { dealHand } from "./shuffle-shard.ts";

/** Source: queueset.go newQueueSetFactory, 3 ms */
const GUESSED_SECONDS = 0.003;

export type Refusal = "queue-full" | "concurrency-limit" | "time-out" | "cancelled";

export interface Seating {
  readonly seats: number;
  readonly arrivedMs: number;
  queue: Queue | undefined;
  startedMs: number;
  /** How long this process has been at it, while others waited. */
  ranMs: number;
  /** R when it came to wait. */
  arrivalR: number;
  /** Is told each time it was its turn and too few seats were free. */
  readonly unaccommodated?: (() => void) | undefined;
  /** Ends the wait, one way or the other. */
  settle?: ((refusal: Refusal | undefined) => void) | undefined;
}

/** Asked only if somebody has to wait. */
export interface Patience {
  hash(): bigint;
  /** How long at the most. */
  waitMs(): number;
}

/** turns.ts */
export interface TurnEnd {
  /** These have seats to give back at the end of this turn, or requests that get them. */
  wake(queues: QueueSet): void;
}

export interface Queue { readonly index: number; readonly waiting: Seating[]; nextDispatchR: number; executing: number; seatsInUse: number }

export class QueueSet {
  readonly #clock: Clock;
  readonly #turns: TurnEnd;
  /** Served; their seats are free when the turn is over. */
  #done: { readonly seating: Seating; readonly endedMs: number }[] = [];
  #doneSeats = 0;
  readonly #seated: Seating[] = [];
  #queuing: QueuingConfiguration | undefined;
  #queues: Queue[] = [];
  #limit = 0;
  #seatsInUse = 0;
  #executing = 0;
  #waiting = 0;
  #r = 0;
  #lastServed = -1;
  /** Milliseconds of this process for each seat: turns.ts. */
  used = 0;

  constructor(clock: Clock, turns: TurnEnd) {
    this.#clock = clock;
    this.#turns = turns;
  }

  get seatsInUse(): number { return this.#seatsInUse; }
  get waiting(): number { return this.#waiting; }
  get limit(): number { return this.#limit; }
  get queues(): readonly Queue[] { return this.#queues; }
  get currentR(): number { return this.#r; }
  /** Waited, have seats, and are to be served. */
  get seated(): number { return this.#seated.length; }
  get isIdle(): boolean { return this.#executing === this.#done.length && this.#waiting === 0; }

  /** Undefined: what finds no seat is refused. Queues that are taken away are served until they are empty. */
  configure(queuing: QueuingConfiguration | undefined): void {
    this.#queuing = queuing;
    const wanted = queuing?.queues ?? 0;
    for (let index = this.#queues.length; index < wanted; index++) this.#queues.push({ index, waiting: [], nextDispatchR: this.#r, executing: 0, seatsInUse: 0 });
    while (this.#queues.length > wanted && this.#queues.at(-1)!.waiting.length === 0) this.#queues.pop();
  }

  setLimit(limit: number): void {
    this.#limit = limit;
    if (this.#waiting > 0) this.#turns.wake(this);
  }

  /** "seated", or what the request waits for, or why it is refused at once. */
  enter(seating: Seating, { hash, waitMs }: Patience, signal: AbortSignal): "seated" | Promise<Refusal | undefined> | Refusal {
    const isFree = this.#waiting === 0 && this.#fits(seating.seats);
    if (isFree && (this.#seatsInUse + seating.seats) * 2 <= this.#limit) {
      this.#seat(seating, undefined);
      return "seated";
    }
    const queuing = this.#queuing;
    if (!queuing) {
      if (!this.#fits(seating.seats)) return "concurrency-limit";
      this.#seat(seating, undefined);
      return "seated";
    }
    const queue = this.#choose(hash(), queuing);
    if (isFree) {
      this.#wake(queue);
      this.#seat(seating, queue);
      return "seated";
    }
    if (this.#seatsInUse - this.#doneSeats >= this.#limit && queue.waiting.length >= (queuing.queueLengthLimit ?? 50)) return "queue-full";
    this.#wake(queue);
    return this.#wait(seating, { queue, ms: waitMs() }, signal);
  }

  leave(seating: Seating, endedMs: number): void {
    this.#done.push({ seating, endedMs });
    this.#doneSeats += seating.seats;
    if (this.#waiting > 0 || !this.#queuing || this.#doneSeats * 2 > this.#limit) this.#turns.wake(this);
  }

  /** The turn is over: seats of what is done go to those who wait. Returns how many have theirs, and are to be served. */
  giveBack(): number {
    const done = this.#done;
    this.#done = [];
    this.#doneSeats = 0;
    for (const { seating, endedMs } of done) this.#free(seating, Math.max(seating.ranMs, endedMs - seating.startedMs) / 1000);
    while (this.#waiting > 0 && this.#seatNext());
    return this.#seated.length;
  }

  #free({ seats, queue }: Seating, seconds: number): void {
    this.#executing--;
    this.#seatsInUse -= seats;
    if (!queue) return;
    const active = this.#queues.reduce((sum, { waiting, executing }) => sum + (waiting.length > 0 || executing > 0 ? 1 : 0), 0);
    this.#r += (seats * seconds) / Math.max(1, active); // its own queue may have been taken away
    queue.executing--;
    queue.seatsInUse -= seats;
    queue.nextDispatchR -= seats * (GUESSED_SECONDS - seconds);
    this.#bound(queue);
  }

  /** Nobody saves up from before he came. */
  #bound(queue: Queue): void {
    const first = queue.waiting[0];
    if (first && queue.nextDispatchR < first.arrivalR) queue.nextDispatchR = first.arrivalR;
  }

  /** So long has this process been at a request of these seats. */
  use(ms: number): void { this.used += ms / Math.max(1, this.#limit); }

  /** One that is too wide has all of them to itself. Where nobody waits one at a time is served even if there are none. */
  #fits(seats: number): boolean {
    return seats > this.#limit ? this.#executing === 0 && (this.#limit > 0 || !this.#queuing) : this.#seatsInUse + seats <= this.#limit;
  }

  #seat(seating: Seating, queue: Queue | undefined): void {
    this.#executing++;
    this.#seatsInUse += seating.seats;
    seating.startedMs = this.#clock.uptimeMs();
    seating.queue = queue;
    if (!queue) return;
    queue.executing++;
    queue.seatsInUse += seating.seats;
    queue.nextDispatchR += seating.seats * GUESSED_SECONDS;
  }

  /** A queue that was idle has not been saving up. */
  #wake(queue: Queue): void {
    if (queue.waiting.length === 0 && queue.executing === 0) queue.nextDispatchR = this.#r;
  }

  #choose(hash: bigint, { queues = 1, handSize = 1 }: QueuingConfiguration): Queue {
    let best: Queue | undefined;
    let least = Number.POSITIVE_INFINITY;
    for (const index of dealHand(hash, queues, handSize)) {
      const queue = this.#queues[index]!;
      const work = queue.seatsInUse + queue.waiting.reduce((sum, { seats }) => sum + seats, 0);
      if (work >= least) continue;
      least = work;
      best = queue;
    }
    return best!;
  }

  #wait(seating: Seating, { queue, ms }: { readonly queue: Queue; readonly ms: number }, signal: AbortSignal): Promise<Refusal | undefined> {
    return new Promise((resolve) => {
      const late = this.#clock.after(ms, () => this.#withdraw(seating, queue, "time-out"));
      const gone = (): void => this.#withdraw(seating, queue, "cancelled");
      seating.settle = (refusal) => {
        late.cancel();
        signal.removeEventListener("abort", gone);
        seating.settle = undefined;
        resolve(refusal);
      };
      seating.queue = queue;
      seating.arrivalR = this.#r;
      queue.waiting.push(seating);
      this.#bound(queue);
      this.#waiting++;
      signal.addEventListener("abort", gone, { once: true });
      if (signal.aborted) return void gone(); // while it was found out who asks
      const first = this.#next()?.waiting[0];
      if (first && (this.#doneSeats > 0 || this.#fits(first.seats))) this.#turns.wake(this);
      else if (first) this.#passOver(first);
    });
  }

  #withdraw(seating: Seating, queue: Queue, refusal: Refusal): void {
    const at = queue.waiting.indexOf(seating);
    if (at < 0) return;
    queue.waiting.splice(at, 1);
    this.#bound(queue);
    this.#waiting--;
    if (at === 0 && this.#waiting > 0) this.#turns.wake(this); // seats that were kept for it may be enough for others
    seating.settle?.(refusal);
  }

  #seatNext(): boolean {
    const queue = this.#next()!, first = queue.waiting[0]!;
    if (!this.#fits(first.seats)) {
      this.#passOver(first);
      return false;
    }
    queue.waiting.shift();
    this.#waiting--;
    this.#lastServed = queue.index;
    this.#seat(first, queue);
    this.#bound(queue);
    this.#seated.push(first);
    return true;
  }

  /** Where no seat is free it is nobody's turn. */
  #passOver({ unaccommodated }: Seating): void { if (this.#seatsInUse < this.#limit) unaccommodated?.(); }

  /** The first of those that waited, and have seats now. */
  serve(): void {
    const first = this.#seated.shift();
    if (!first) return;
    first.startedMs = this.#clock.uptimeMs();
    first.settle?.(undefined);
  }

  /** The queue whose first request would be finished first; among equals, round and round. */
  #next(): Queue | undefined {
    let best: Queue | undefined;
    let earliest = Number.POSITIVE_INFINITY;
    const count = this.#queues.length;
    for (let step = 1; step <= count; step++) {
      const queue = this.#queues[(this.#lastServed + step + count) % count]!;
      const first = queue.waiting[0];
      if (!first) continue;
      const finish = queue.nextDispatchR + first.seats * GUESSED_SECONDS;
      if (finish >= earliest) continue;
      earliest = finish;
      best = queue;
    }
    return best;
  }
}
