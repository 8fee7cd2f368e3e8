import { expect, test } from "vitest";
import type { ContainerStatus } from "../../core/api/gen/core.v1.ts";
import { systemClock } from "../../core/lifecycle/clock.ts";
import { kubeletApi } from "./api.ts";
import { emptyRuntimePod } from "./runtime-pod.ts";

test("a container that does not run cannot be checkpointed, and one that the pod does not have is not there", async () => {
  const pod = { metadata: { name: "web", namespace: "shop", uid: "u", creationTimestamp: "" }, spec: { containers: [{ name: "c" }] } };
  const manager = { workers: () => [{ pod, runtime: emptyRuntimePod("u", "web", "shop"), status: {} }] };
  const api = kubeletApi({ context: { settings: {}, clock: systemClock }, manager } as never);
  const tried = (container: string) => api.checkpoint({ namespace: "shop", name: "web" }, container, 0, new AbortController().signal).catch(({ code, message }) => `${code}: ${message}`);
  expect(await tried("c")).toBe("unavailable: checkpointing of shop/web/c failed (container c not found)");
  expect(await tried("d")).toBe("container-not-found: container d does not exist");
});

const ID = "containerd://1";
const ended = { terminated: { exitCode: 0, containerID: ID } };

test.each<[string, Partial<ContainerStatus> | undefined, string, string]>([
  ["nothing is told of it", undefined, "is not available", "previous"],
  ["it ran when the runtime was seen last", { state: { running: {} }, containerID: ID }, ID, "previous"],
  ["it has ended, and was removed", { state: ended }, ID, "previous"],
  ["it has ended, nobody knows which", { state: { terminated: { exitCode: 137 } } }, "is terminated", "previous"],
  ["one before it has ended, and was removed", { state: { waiting: { reason: "CrashLoopBackOff" } }, lastState: ended }, ID, ID],
  ["one before it was lost", { state: { terminated: { exitCode: 137 } }, lastState: ended }, ID, ID],
  ["it waits", { state: { waiting: { reason: "ContainerCreating" } } }, "is waiting to start: ContainerCreating", "previous"],
  ["it waits for its image", { state: { waiting: { reason: "ErrImagePull" } } }, "is waiting to start: image can't be pulled", "previous"],
  ["it waits for its image to be tried again", { state: { waiting: { reason: "ImagePullBackOff" } } }, "is waiting to start: trying and failing to pull image", "previous"],
  ["its state is not told", { state: {} }, "is waiting to start - no logs yet", "previous"],
])("where the runtime has nothing of a container, and %s, its log cannot be had for that", (_, said, now, before) => {
  const pod = { metadata: { name: "web", namespace: "shop", uid: "u", creationTimestamp: "" }, spec: { containers: [{ name: "c" }] } };
  const status = { containerStatuses: said ? [{ name: "c", ...said }] : [] };
  const api = kubeletApi({ context: { settings: {} }, manager: { workers: () => [{ pod, status, runtime: emptyRuntimePod("u", "web", "shop") }] } } as never);
  const asked = (previous: boolean) => () => api.logFile({ namespace: "shop", name: "web" }, "c", { previous });
  const text = (what: string): string => (what === ID ? `unable to retrieve container logs for ${ID}` : what === "previous" ? 'previous terminated container "c" in pod "web" not found' : `container "c" in pod "web" ${what}`);
  expect(asked(false)).toThrow(text(now));
  expect(asked(true)).toThrow(text(before));
});

test.each<[string, Partial<ContainerStatus>, readonly string[], string]>([
  ["it has ended, the only one", { state: ended }, ["1"], "none"],
  ["it has ended, after another", { state: ended }, ["1", "0"], "0"],
  ["it has ended, which is not told yet", { state: { running: {} }, containerID: ID }, ["1", "0"], "0"],
  ["it waits to start again", { state: { waiting: { reason: "CrashLoopBackOff" } }, lastState: ended }, ["1", "0"], "1"],
  ["it is lost, and the one before is there", { state: { terminated: { exitCode: 137 } }, lastState: ended }, ["1"], "1"],
])("the log of the one before an init container is that, too: %s", (_, said, there, previous) => {
  const pod = { metadata: { name: "web", namespace: "shop", uid: "u", creationTimestamp: "" }, spec: { initContainers: [{ name: "i" }], containers: [{ name: "c" }] } };
  const runtime = { ...emptyRuntimePod("u", "web", "shop"), containers: there.map((id) => ({ id, name: "i", state: "exited", logPath: id })) };
  for (const kind of ["initContainerStatuses", "containerStatuses"]) {
    const api = kubeletApi({ context: { settings: {} }, manager: { workers: () => [{ pod, status: { [kind]: [{ name: "i", ...said }] }, runtime }] } } as never);
    const path = (): string => { try { return api.logFile({ namespace: "shop", name: "web" }, "i", { previous: true }).path; } catch { return "none"; } };
    expect([kind, path()]).toEqual([kind, previous]);
  }
});

test("what does not run cannot be reached: that is the node's answer, not that there is no such thing", async () => {
  const pod = { metadata: { name: "web", namespace: "shop", uid: "u", creationTimestamp: "" }, spec: { containers: [{ name: "c" }] } };
  const api = kubeletApi({ context: { settings: {} }, manager: { workers: () => [{ pod, status: {}, runtime: emptyRuntimePod("u", "web", "shop") }] } } as never);
  const name = { namespace: "shop", name: "web" }, { signal } = new AbortController();
  const said = async (tried: Promise<unknown>): Promise<string> => await tried.then(() => "", ({ code, message }) => `${code}: ${message}`);
  expect([await said(api.exec(name, "c", ["true"], {}, signal)), await said(api.run(name, "c", ["true"], signal)), await said(api.attach(name, "c", {}, signal)), await said(api.portForward(name, [80], signal))]).toEqual([
    'unavailable: container not found ("c")', 'unavailable: container not found ("c")', "unavailable: container c not found in pod web_shop", 'unavailable: pod not found ("web_shop")',
  ]);
});
