import { expect, test } from "vitest";
import type { LifecycleHandler, Pod } from "../../core/api/gen/core.v1.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { silentLog } from "../../core/observe/log.ts";
import { type ContainerKill, killContainer, type KillDeps, killPod } from "./kill.ts";
import type { RuntimePod } from "./runtime-pod.ts";

/** Time passes when somebody waits for it. */
async function killed(preStop: LifecycleHandler, exec: (signal: AbortSignal) => Promise<object>, graceSeconds: number | bigint = 30): Promise<{ readonly calls: readonly string[]; readonly events: readonly string[] }> {
  let nowMs = 0;
  const calls: string[] = [];
  const events: string[] = [];
  const clock = { uptimeMs: () => nowMs, sleep: (ms: number, signal: AbortSignal) => new Promise<void>((resolve) => setTimeout(() => { if (!signal.aborted) nowMs += ms; resolve(); })) } as unknown as Clock;
  const cri = {
    call(method: string, { timeout }: { timeout?: number }, { signal }: { signal: AbortSignal }) {
      calls.push(`${method.replace("RuntimeService/", "")}${timeout === undefined ? "" : ` ${timeout}`} at ${nowMs / 1000}`);
      if (method !== "RuntimeService/ExecSync") return Promise.resolve({});
      signal.addEventListener("abort", () => calls.push(`aborted after ${calls.at(-1)}`));
      return exec(signal);
    },
  };
  const deps = { cri, clock, log: silentLog, version: "v", events: { event: (_about: object, type: string, reason: string) => void events.push(`${type} ${reason}`) } } as unknown as KillDeps;
  const container = { name: "c", lifecycle: { preStop } };
  const pod = { metadata: { name: "p", namespace: "n", uid: "u" }, spec: { containers: [container] } } as unknown as Pod;
  const kill = { pod, runtime: { sandboxes: [], containers: [] }, container: { id: "1", name: "c", state: "running" }, spec: { kind: "container", index: 0, container }, graceSeconds } as unknown as ContainerKill;
  await killContainer(deps, kill, new AbortController().signal);
  return { calls, events };
}

const endless = (signal: AbortSignal): Promise<never> => new Promise((_, reject) => { signal.addEventListener("abort", () => reject(new Error("aborted"))); });

test("preStop: what takes all the time that there is goes on while the container is stopped, and has failed then", async () => {
  expect(await killed({ exec: { command: ["loop"] } }, endless)).toEqual({ calls: ["ExecSync at 0", "StopContainer 2 at 30", "aborted after StopContainer 2 at 30"], events: ["Normal Killing", "Warning FailedPreStopHook"] });
});

test("preStop: what is done leaves the rest of the time to the container", async () => {
  expect(await killed({ exec: { command: ["true"] } }, async () => ({}))).toMatchObject({ calls: expect.arrayContaining(["StopContainer 30 at 0"]), events: ["Normal Killing"] });
  expect(await killed({ exec: { command: ["false"] } }, async () => ({ exit_code: 1 }))).toMatchObject({ events: ["Normal Killing", "Warning FailedPreStopHook"] });
});

test("a grace that is longer than the runtime can reckon with, or no double holds, is 292 years, not none", async () => {
  for (const graceSeconds of [2n ** 63n - 1n, 10 ** 13]) expect((await killed({ exec: { command: ["true"] } }, async () => ({}), graceSeconds)).calls).toContain("StopContainer 9223372036 at 0");
});

test("sidecars are stopped once the containers are gone that need them: one that was put in to look around is none", async () => {
  const stopped: string[] = [];
  const debuggerEnds = Promise.withResolvers<void>();
  const clock = { uptimeMs: () => 0, sleep: (_ms: number, signal: AbortSignal) => new Promise<void>((resolve) => { signal.addEventListener("abort", () => resolve()); }) } as unknown as Clock;
  const cri = {
    async call(method: string, { container_id }: { container_id?: string }) {
      if (method !== "RuntimeService/StopContainer") return {};
      stopped.push(container_id!);
      if (container_id === "debugger") await debuggerEnds.promise;
      if (container_id === "first") debuggerEnds.resolve();
      return {};
    },
  };
  const deps = { cri, clock, log: silentLog, version: "v", events: { event: () => undefined } } as unknown as KillDeps;
  const sidecar = (name: string) => ({ name, restartPolicy: "Always" });
  const pod = { metadata: { name: "p", namespace: "n", uid: "u" }, spec: { initContainers: [sidecar("first"), sidecar("second")], containers: [{ name: "app" }], ephemeralContainers: [{ name: "debugger" }] } } as unknown as Pod;
  const runtime = { sandboxes: [], containers: ["debugger", "first", "second", "app"].map((name) => ({ id: name, name, state: "running" })) } as unknown as RuntimePod;
  await killPod(deps, pod, runtime, { graceSeconds: 30, signal: new AbortController().signal });
  expect(stopped).toEqual(["debugger", "app", "second", "first"]);
});
