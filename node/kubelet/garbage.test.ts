import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { silentLog } from "../../core/observe/log.ts";
import { garbageOf, removeContainer, removeGarbage } from "./garbage.ts";
import type { Kept } from "./kept.ts";
import type { RuntimeContainer, RuntimePod } from "./runtime-pod.ts";

/** Newest first: "a:running:s2 a:exited:s1". */
function runtime(text: string, sandboxes: readonly string[]): RuntimePod {
  const containers = text.split(" ").map((word, i) => {
    const [name = "", state = "", sandboxId = ""] = word.split(":");
    return { id: `${name}${i}`, name, state, sandboxId, finishedAtMs: -1000 * i } as RuntimeContainer; // each a second before
  });
  return { uid: "u", name: "p", namespace: "d", containers, sandboxes: sandboxes.map((id, i) => ({ id, ready: i === 0 })) } as unknown as RuntimePod;
}

const ids = (seen: RuntimePod, exists: boolean, kept: Kept = { perContainer: 1, ageMinMs: 0 }) => { const { containers, sandboxes } = garbageOf(seen, exists ? { ...kept, nowMs: 0 } : undefined); return [...containers, ...sandboxes].map(({ id }) => id); };

test("of each container one dead predecessor is kept, with its log; older ones go, and sandboxes nothing is left of", () => {
  expect(ids(runtime("a:running:s2 a:exited:s2 a:exited:s1 b:exited:s2 b:exited:s1", ["s2", "s1"]), true)).toEqual(["a2", "b4", "s1"]);
  expect(ids(runtime("a:exited:s1 b:running:s2", ["s2", "s1"]), true)).toEqual([]); // its status and its log are still asked for
  expect(ids(runtime("a:exited:s1 a:exited:s1 b:running:s1", ["s1"]), false)).toEqual(["a0", "a1"]);
});

test("as many dead ones of each container are kept as the settings say, and those that have ended lately", () => {
  const seen = runtime("a:running:s1 a:exited:s1 a:exited:s1 a:exited:s1 a:exited:s1", ["s1"]);
  const left = (perContainer: number, ageMinMs: number) => ids(seen, true, { perContainer, ageMinMs });
  expect([left(1, 0), left(2, 0), left(-1, 0), left(1, 3_000), left(3, 5_000)]).toEqual([["a2", "a3", "a4"], ["a3", "a4"], [], ["a3", "a4"], []]);
  expect(ids(seen, false, { perContainer: 3, ageMinMs: 5_000 })).toEqual(["a1", "a2", "a3", "a4"]);
});

test("what ended before the clock was set back, in a time to come, ended long ago", () => {
  const seen = runtime("a:running:s1 a:exited:s1 a:exited:s1 a:exited:s1", ["s1"]);
  expect(garbageOf(seen, { perContainer: 1, ageMinMs: 60_000, nowMs: -1e12 }).containers.map(({ id }) => id)).toEqual(["a2", "a3"]);
});

test("a sandbox is stopped before it goes, and stays while it cannot be", async () => {
  const calls: string[] = [];
  const call = async (method: string, request: { readonly pod_sandbox_id?: string }): Promise<object> => {
    calls.push(`${method.replace("RuntimeService/", "")} ${request.pod_sandbox_id}`);
    if (method.endsWith("/StopPodSandbox") && request.pod_sandbox_id === "s1") throw new Error("no network");
    return {};
  };
  const context = { cri: { call }, settings: {}, log: silentLog } as unknown as Parameters<typeof removeGarbage>[0];
  await expect(removeGarbage(context, garbageOf({ ...runtime("a:running:s0", ["s0", "s1", "s2"]) }, { perContainer: 1, ageMinMs: 0, nowMs: 0 }), new AbortController().signal)).rejects.toThrow("no network");
  expect(calls.toSorted()).toEqual(["RemovePodSandbox s2", "StopPodSandbox s1", "StopPodSandbox s2"]);
});

test("of containers that go and are counted on the last one's log stays, however often that happens", async () => {
  const directory = mkdtempSync(join(tmpdir(), "logs-"));
  const context = { cri: { call: async () => ({}) }, settings: { containerLogsDir: "" }, log: silentLog } as unknown as Parameters<typeof removeContainer>[0];
  const remove = (count: number, keepLog: boolean) => removeContainer(context, { id: "c", logPath: join(directory, `${count}.log`) } as RuntimeContainer, new AbortController().signal, { keepLog });
  try {
    for (const name of ["8.log", "9.log", "9.log.20260101-000000.gz", "10.log", "10.log.20260102-000000", "11.log", "notes"]) writeFileSync(join(directory, name), "");
    await remove(10, true);
    expect(readdirSync(directory).toSorted()).toEqual(["10.log", "10.log.20260102-000000", "11.log", "notes"]);
    await remove(11, false);
    expect(readdirSync(directory)).toEqual(["notes"]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
