/**
 * The seats of one priority level, and who waits for them.
 *
 * A request that finds a seat takes it. One that finds none waits in a queue of its flow's hand, the one with the least work before it; when a seat
 * becomes free, the queue whose first request would be finished first, if every queue were served bit by bit at the same speed, is served.
 *
 *   R    how far such a service would have got in each queue; it advances while anything is served
 *   nextDispatchR    of a queue: where its next request would begin. Until a request is done, how long it takes is guessed.
 *
 * While less than half of the seats are taken nobody keeps books: there is nothing to be fair about.
 *
 * Source: kubernetes v1.36 apiserver/pkg/util/flowcontrol/fairqueuing/queueset/{queueset,queue}.go
 */
import type { QueuingConfiguration } from "../../api/gen/flowcontrol.v1.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import { dealHand } from "./shuffle-shard.ts";

/** Source: queueset.go newQueueSetFactory, 3 ms */
const GUESSED_SECONDS = 0.003;
/** Source: cmd/kube-apiserver: a quarter of --request-timeout */
const WAIT_MS_MAX = 15_000;

export type Refusal = "queue-full" | "concurrency-limit" | "time-out" | "cancelled";

export interface Seating {
  readonly seats: number;
  readonly arrivedMs: number;
  queue: Queue | undefined;
  startedMs: number;
  /** Is told each time it was its turn and there was no seat. */
  readonly unaccommodated?: (() => void) | undefined;
  /** Ends the wait, one way or the other. */
  settle?: ((refusal: Refusal | undefined) => void) | undefined;
}

export interface Queue { readonly index: number; readonly waiting: Seating[]; nextDispatchR: number; executing: number; seatsInUse: number }

export class QueueSet {
  readonly #clock: Clock;
  #queuing: QueuingConfiguration | undefined;
  #queues: Queue[] = [];
  #limit = 0;
  #seatsInUse = 0;
  #executing = 0;
  #waiting = 0;
  #r = 0;
  #rAtMs: number;
  #lastServed = -1;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#rAtMs = clock.uptimeMs();
  }

  get seatsInUse(): number { return this.#seatsInUse; }
  get waiting(): number { return this.#waiting; }
  get limit(): number { return this.#limit; }
  get queues(): readonly Queue[] { return this.#queues; }
  get currentR(): number { return this.#r; }
  get isIdle(): boolean { return this.#executing === 0 && this.#waiting === 0; }

  /** Undefined: what finds no seat is refused. Queues that are taken away are served until they are empty. */
  configure(queuing: QueuingConfiguration | undefined): void {
    this.#queuing = queuing;
    const wanted = queuing?.queues ?? 0;
    for (let index = this.#queues.length; index < wanted; index++) this.#queues.push({ index, waiting: [], nextDispatchR: this.#r, executing: 0, seatsInUse: 0 });
    while (this.#queues.length > wanted && this.#queues.at(-1)!.waiting.length === 0) this.#queues.pop();
  }

  setLimit(limit: number): void {
    this.#limit = limit;
    this.#dispatch();
  }

  /** "seated", or what the request waits for, or why it is refused at once. `hash` is asked only if somebody has to wait. */
  enter(seating: Seating, hash: () => bigint, signal: AbortSignal): "seated" | Promise<Refusal | undefined> | Refusal {
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
    this.#advance();
    const queue = this.#choose(hash(), queuing);
    if (isFree) {
      this.#wake(queue);
      this.#seat(seating, queue);
      return "seated";
    }
    if (queue.waiting.length >= (queuing.queueLengthLimit ?? 50)) return "queue-full";
    this.#wake(queue);
    return this.#wait(seating, queue, signal);
  }

  leave(seating: Seating, nowMs: number): void {
    this.#executing--;
    this.#seatsInUse -= seating.seats;
    const { queue } = seating;
    if (queue) {
      this.#advance();
      queue.executing--;
      queue.seatsInUse -= seating.seats;
      queue.nextDispatchR -= seating.seats * (GUESSED_SECONDS - (nowMs - seating.startedMs) / 1000);
    }
    if (this.#waiting > 0) this.#dispatch();
  }

  #fits(seats: number): boolean {
    return seats > this.#limit ? this.#executing === 0 && this.#limit > 0 : this.#seatsInUse + seats <= this.#limit;
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

  /** R moves with the speed at which each of the queues in use would be served. */
  #advance(): void {
    const nowMs = this.#clock.uptimeMs();
    const passed = (nowMs - this.#rAtMs) / 1000;
    this.#rAtMs = nowMs;
    if (passed <= 0) return;
    let active = 0;
    let demand = 0;
    for (const { waiting, executing, seatsInUse } of this.#queues) {
      if (waiting.length === 0 && executing === 0) continue;
      active++;
      demand += seatsInUse + waiting.reduce((sum, { seats }) => sum + seats, 0);
    }
    if (active > 0) this.#r += (passed * Math.min(demand, this.#limit)) / active;
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

  #wait(seating: Seating, queue: Queue, signal: AbortSignal): Promise<Refusal | undefined> {
    return new Promise((resolve) => {
      const late = this.#clock.after(WAIT_MS_MAX, () => this.#withdraw(seating, queue, "time-out"));
      const gone = (): void => this.#withdraw(seating, queue, "cancelled");
      seating.settle = (refusal) => {
        late.cancel();
        signal.removeEventListener("abort", gone);
        seating.settle = undefined;
        resolve(refusal);
      };
      seating.queue = queue;
      queue.waiting.push(seating);
      this.#waiting++;
      signal.addEventListener("abort", gone, { once: true });
      this.#dispatch();
    });
  }

  #withdraw(seating: Seating, queue: Queue, refusal: Refusal): void {
    const at = queue.waiting.indexOf(seating);
    if (at < 0) return;
    queue.waiting.splice(at, 1);
    this.#waiting--;
    seating.settle?.(refusal);
  }

  #dispatch(): void {
    while (this.#waiting > 0) {
      const queue = this.#next();
      const first = queue?.waiting[0];
      if (!queue || !first) return;
      if (!this.#fits(first.seats)) {
        first.unaccommodated?.();
        return;
      }
      queue.waiting.shift();
      this.#waiting--;
      this.#lastServed = queue.index;
      this.#seat(first, queue);
      first.settle?.(undefined);
    }
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
