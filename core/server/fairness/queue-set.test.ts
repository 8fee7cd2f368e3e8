import { expect, test } from "vitest";
import { systemClock } from "../../lifecycle/clock.ts";
import { QueueSet, type Seating } from "./queue-set.ts";

const QUEUING = { queues: 4, handSize: 1, queueLengthLimit: 2 };
const NEVER = new AbortController().signal;

/** Of `limit` seats. Turns end when it is told so. */
function queues(limit: number): { readonly set: QueueSet; readonly served: string[]; /** There were too few seats for them when it was their turn. */ readonly passedOver: string[]; /** How often it wanted to be looked at when the turn is over. */ woken(): number; enter(name: string, queue: bigint, more?: { readonly seats?: number; readonly signal?: AbortSignal }): { readonly entered: unknown; readonly seating: Seating }; pass(ms: number): void } {
  let nowMs = 0, woken = 0;
  const served: string[] = [], passedOver: string[] = [];
  const set = new QueueSet({ ...systemClock, uptimeMs: () => nowMs, after: () => ({ cancel: () => undefined }) }, { wake: () => void woken++ });
  set.configure(QUEUING);
  set.setLimit(limit);
  return {
    set, served, passedOver, woken: () => woken, pass: (ms) => void (nowMs += ms),
    enter(name, queue, { seats = 1, signal = NEVER } = {}) {
      const seating: Seating = { seats, arrivedMs: nowMs, queue: undefined, startedMs: nowMs, ranMs: 0, arrivalR: 0, unaccommodated: () => void passedOver.push(name) };
      const entered = set.enter(seating, { hash: () => queue, waitMs: () => 15_000 }, signal);
      const settle = seating.settle;
      if (settle) seating.settle = (refusal) => {
        served.push(refusal ?? name);
        settle(refusal);
      };
      return { entered, seating };
    },
  };
}

test("queues may be taken away while requests of theirs are served, and others take their place", () => {
  const { set, enter, pass, served } = queues(1);
  const { seating } = enter("a", 3n);
  set.configure(undefined);
  pass(10);
  set.leave(seating, 10);
  set.giveBack();
  expect(Number.isFinite(set.currentR)).toBe(true);
  set.configure(QUEUING);
  const next = enter("b", 0n);
  enter("c", 1n);
  set.leave(next.seating, 20);
  set.giveBack();
  set.serve();
  expect(served).toEqual(["c"]);
});

test("a queue that is full takes more while seats are free that its first request is too wide for", () => {
  const { set, enter } = queues(4);
  for (let i = 0n; i < 3n; i++) enter(`at once ${i}`, i);
  for (const name of ["wide", "a", "b", "c"]) expect(enter(name, 0n, { seats: name === "wide" ? 3 : 1 }).entered).toBeInstanceOf(Promise);
  set.setLimit(3);
  expect(enter("d", 0n).entered).toBe("queue-full");
});

test("who waits behind one that wants many seats is served as soon as that one waits no longer", () => {
  const { set, enter, served, woken } = queues(4);
  for (let i = 0n; i < 2n; i++) enter(`at once ${i}`, i);
  const gone = new AbortController();
  enter("wide", 0n, { seats: 4, signal: gone.signal });
  enter("next", 0n);
  const before = woken();
  gone.abort();
  expect(woken()).toBe(before + 1);
  set.giveBack();
  set.serve();
  expect(served).toEqual(["cancelled", "next"]);
});

test("who has gone before it came to wait does not wait", async () => {
  const { set, enter } = queues(1);
  enter("first", 0n);
  const { entered } = enter("gone", 0n, { signal: AbortSignal.abort() });
  expect(await entered).toBe("cancelled");
  expect([set.waiting, set.queues[0]!.waiting]).toEqual([0, []]);
});

test("a request too wide for the seats that are free is counted each time it would have been its turn; where none is free it is nobody's turn", () => {
  const { set, enter, passedOver } = queues(4);
  const held = [0n, 1n, 2n].map((queue) => enter("at once", queue).seating);
  enter("wide", 0n, { seats: 3 });
  expect(passedOver).toEqual(["wide"]);
  set.setLimit(3);
  enter("next", 0n);
  expect(passedOver).toEqual(["wide"]);
  set.leave(held[0]!, 10);
  set.giveBack();
  expect(passedOver).toEqual(["wide", "wide"]);
});

test("a queue that is never empty saves nothing up from before its first request came", () => {
  const { set, enter, pass } = queues(3);
  enter("at once", 2n);
  const slow = enter("slow", 1n).seating;
  enter("own", 0n);
  pass(1000);
  set.leave(slow, 1000);
  set.giveBack();
  enter("other", 1n);
  enter("late", 0n);
  expect([set.waiting, set.currentR > 0, set.queues[0]!.nextDispatchR >= set.currentR]).toEqual([1, true, true]);
});

test("who is answered may ask again at once: a queue is not full while the seat of one that is done waits for the turn's end", () => {
  const { set, enter } = queues(1);
  const { seating } = enter("first", 0n);
  for (const name of ["second", "third"]) expect(enter(name, 0n).entered).toBeInstanceOf(Promise);
  expect(enter("too many", 0n).entered).toBe("queue-full");
  set.leave(seating, 10);
  expect(enter("again", 0n).entered).toBeInstanceOf(Promise);
});
