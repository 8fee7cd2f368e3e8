import { expect, test } from "vitest";
import { runAll, type Runnable } from "./run-all.ts";
import { startEarly } from "./start-early.ts";

function part(name: string, trace: string[], life?: () => Promise<void>): Runnable {
  return {
    name,
    async run(signal, ready) {
      trace.push(`start ${name}`);
      ready();
      await (life?.() ?? new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve())));
      trace.push(`stop ${name}`);
    },
  };
}

test("parts start in order and stop in reverse", async () => {
  const trace: string[] = [];
  const stop = new AbortController();
  const done = runAll([part("storage", trace), part("server", trace)], stop.signal);
  await Bun.sleep(1);
  stop.abort();
  await done;
  expect(trace).toEqual(["start storage", "start server", "stop server", "stop storage"]);
});

test("a part that fails stops the others and names itself", async () => {
  const trace: string[] = [];
  const broken = part("server", trace, () => Promise.reject(new Error("port in use")));
  const done = runAll([part("storage", trace), broken], new AbortController().signal);
  await expect(done).rejects.toThrow("server failed");
  expect(trace).toEqual(["start storage", "start server", "stop storage"]);
});

test("a part that ends early is a failure", async () => {
  const trace: string[] = [];
  await expect(runAll([part("proxy", trace, async () => {})], new AbortController().signal)).rejects.toThrow("proxy ended on its own");
});

test("an abort during start leaves the rest unstarted", async () => {
  const trace: string[] = [];
  const stop = new AbortController();
  const slow: Runnable = { name: "slow", run: (signal) => new Promise((resolve) => signal.addEventListener("abort", () => resolve())) };
  const done = runAll([slow, part("late", trace)], stop.signal);
  stop.abort();
  await done;
  expect(trace).toEqual([]);
});

test("an error while stopping is not lost", async () => {
  const stop = new AbortController();
  const clumsy: Runnable = {
    name: "clumsy",
    async run(signal, ready) {
      ready();
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      throw new Error("disk full");
    },
  };
  const done = runAll([clumsy], stop.signal);
  await Bun.sleep(1);
  stop.abort();
  await expect(done).rejects.toThrow("clumsy failed");
});

test("a slow part is begun early, and waited for where it is needed", async () => {
  const trace: string[] = [];
  const stop = new AbortController();
  const slow: Runnable = {
    name: "slow",
    async run(signal, ready) {
      trace.push("slow begins");
      await Bun.sleep(5);
      trace.push("slow is ready");
      ready();
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    },
  };
  const [begun, ready] = startEarly(slow);
  const done = runAll([begun, part("independent", trace), ready, part("dependent", trace)], stop.signal);
  await Bun.sleep(20);
  stop.abort();
  await done;
  expect(trace).toEqual(["slow begins", "start independent", "slow is ready", "start dependent", "stop dependent", "stop independent"]);
});
