import { expect, test } from "vitest";
import { systemClock } from "../../lifecycle/clock.ts";
import { QueueSet, type Seating } from "./queue-set.ts";

const QUEUING = { queues: 4, handSize: 1, queueLengthLimit: 2 };
const NEVER = new AbortController().signal;

/** Of `limit` seats. Turns end when it is told so. */
function queues(limit: number): { readonly set: QueueSet; readonly served: string[]; enter(name: string, queue: bigint, seats?: number): { readonly entered: unknown; readonly seating: Seating }; pass(ms: number): void } {
  let nowMs = 0;
  const served: string[] = [];
  const set = new QueueSet({ ...systemClock, uptimeMs: () => nowMs, after: () => ({ cancel: () => undefined }) }, { wake: () => undefined });
  set.configure(QUEUING);
  set.setLimit(limit);
  return {
    set, served, pass: (ms) => void (nowMs += ms),
    enter(name, queue, seats = 1) {
      const seating: Seating = { seats, arrivedMs: nowMs, queue: undefined, startedMs: nowMs, ranMs: 0, arrivalR: 0 };
      const entered = set.enter(seating, { hash: () => queue, waitMs: () => 15_000 }, NEVER);
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
  for (const name of ["wide", "a", "b", "c"]) expect(enter(name, 0n, name === "wide" ? 3 : 1).entered).toBeInstanceOf(Promise);
  set.setLimit(3);
  expect(enter("d", 0n).entered).toBe("queue-full");
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
