import { expect, test } from "vitest";
import { aborted } from "../core/lifecycle/aborted.ts";
import { systemClock as clock } from "../core/lifecycle/clock.ts";
import { runAll, type Runnable } from "../core/lifecycle/run-all.ts";
import { shutdownDelay } from "./shutdown-delay.ts";

function part(name: string, ends: string[]): Runnable {
  return { name, async run(signal, ready) { ready(); await aborted(signal); ends.push(name); } };
}

test("what serves ends after the delay, what tells others of it at once; it is known to be leaving meanwhile", async () => {
  const asked = new AbortController(), ends: string[] = [];
  const stop = shutdownDelay({ asked: asked.signal, ms: 50, clock });
  const running = runAll([part("serving", ends), stop.leftEarly(part("telling", ends))], stop.signal);
  expect([stop.isLeaving(), stop.signal.aborted]).toEqual([false, false]);
  asked.abort(new Error("SIGTERM"));
  await expect.poll(() => ends).toEqual(["telling"]);
  expect([stop.isLeaving(), stop.signal.aborted]).toEqual([true, false]);
  await running;
  expect([ends, (stop.signal.reason as Error).message]).toEqual([["telling", "serving"], "SIGTERM"]);
});

test("without a delay there is none", () => {
  const { signal } = new AbortController();
  expect(shutdownDelay({ asked: signal, ms: 0, clock }).signal).toBe(signal);
});
