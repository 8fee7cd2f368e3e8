import { expect, test } from "vitest";
import { systemClock } from "../../core/lifecycle/clock.ts";
import { silentLog } from "../../core/observe/log.ts";
import { type Cri, CriError } from "../cri/client.ts";
import { memoryRuntime } from "../cri/memory-runtime.ts";
import { POD_UID } from "./containers/labels.ts";
import { runtimeWatch } from "./runtime-watch.ts";

/** Time that passes as fast as it is waited for. */
function hastyClock() {
  let nowMs = 0;
  const sleep = async (ms: number, signal: AbortSignal): Promise<void> => {
    await new Promise((resolve) => setImmediate(resolve));
    if (!signal.aborted) nowMs += ms;
  };
  return {
    ...systemClock, uptimeMs: () => nowMs, sleep,
    async *every(periodMs: number, signal: AbortSignal) { for (; !signal.aborted; await sleep(periodMs, signal)) yield; },
  };
}

test("a runtime without events is listed every second, told of once, and asked for events again after some minutes", async () => {
  const runtime = memoryRuntime({ nowMs: () => 0 });
  const asked: number[] = [], told: string[] = [], changed: string[] = [], lists: number[] = [];
  const clock = hastyClock();
  const cri: Cri = {
    ...runtime,
    events() {
      asked.push(clock.uptimeMs());
      const refuse = () => Promise.reject(new CriError({ method: "RuntimeService/GetContainerEvents", code: "Unimplemented", detail: "unknown method GetContainerEvents" }));
      return { [Symbol.asyncIterator]: () => ({ next: refuse }) };
    },
  };
  const stop = new AbortController();
  const watch = runtimeWatch({
    cri, clock, onChange: (uid) => changed.push(uid), metrics: { relisted: () => undefined },
    log: { ...silentLog, info: (message) => told.push(message), warn: (message) => told.push(`warning: ${message}`) },
    onList: () => {
      lists.push(clock.uptimeMs());
      if (lists.length === 5) void runtime.call("RuntimeService/RunPodSandbox", { config: { metadata: { name: "web", namespace: "default", uid: "uid-1" }, labels: { [POD_UID]: "uid-1" } } });
      if (lists.length === 700) stop.abort();
    },
  });
  await watch.run(stop.signal, () => undefined);
  expect(changed).toEqual(["uid-1"]);
  expect(told).toEqual(["the runtime tells no events, asking it every second instead"]);
  expect(asked.length).toBe(3);
  expect(Math.max(...lists.slice(1).map((ms, i) => ms - lists[i]!))).toBeLessThanOrEqual(2000);
});

test("while a runtime's events are followed it is known what happens there, however long ago it was listed", async () => {
  const runtime = memoryRuntime({ nowMs: () => 0 });
  let nowMs = 0;
  const stop = new AbortController();
  const listed = Promise.withResolvers<void>();
  const watch = runtimeWatch({ cri: runtime, clock: { ...systemClock, uptimeMs: () => nowMs }, log: silentLog, metrics: { relisted: () => undefined }, onChange: () => undefined, onList: () => listed.resolve() });
  expect([watch.lastListMs(), watch.activeMs()]).toEqual([0, 0]);
  const ended = watch.run(stop.signal, () => undefined);
  await listed.promise;
  nowMs = 60_000;
  expect([watch.lastListMs(), watch.activeMs()]).toEqual([0, 60_000]);
  stop.abort();
  await ended;
  expect(watch.activeMs()).toBe(0);
});
