import { expect, test } from "vitest";
import { unlessHeard } from "./unless-heard.ts";

/** Alarms that go off when told. */
function alarms() {
  const due = new Set<() => void>();
  return { due, after(_ms: number, work: () => void) { due.add(work); return { cancel: () => void due.delete(work) }; }, ring() { for (const work of [...due]) if (due.delete(work)) work(); } };
}

test("who is heard of is not given up, who falls silent is, once; who is let off is not", () => {
  const clock = alarms();
  let count = 0, lost = 0;
  unlessHeard(clock, 100, () => count, () => { lost++; });
  for (let i = 0; i < 50; i++) {
    count++;
    clock.ring();
  }
  expect([lost, clock.due.size]).toEqual([0, 1]);
  for (let i = 0; i < 25; i++) clock.ring();
  expect([lost, clock.due.size]).toEqual([1, 0]);
  const second = unlessHeard(clock, 100, () => ++count, () => { lost++; });
  for (let i = 0; i < 15; i++) clock.ring();
  second.cancel();
  expect([lost, clock.due.size]).toEqual([1, 0]);
});
