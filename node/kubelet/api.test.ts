import { expect, test } from "vitest";
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
