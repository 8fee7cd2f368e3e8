import { once } from "node:events";
import { mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { afterAll, expect, test } from "vitest";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { type KubeletApi, KubeletApiError } from "../kubelet-api.ts";
import { containerLogs } from "./container-logs.ts";

const directory = mkdtempSync(join(tmpdir(), "container-logs-"));
afterAll(() => rmSync(directory, { recursive: true }));
const path = join(directory, "0.log");
writeFileSync(path, "2026-01-02T03:04:05Z stdout F one\n");

const api = {
  pod: () => ({ metadata: { name: "web", namespace: "shop", uid: "u" }, spec: { containers: [{ name: "c" }] } }),
  logFile: () => ({ path, running: () => true }),
} as unknown as KubeletApi;

/** How often the log is open in this process. */
function timesOpen(): number {
  return readdirSync("/proc/self/fd").filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === path;
    } catch {
      return false; // what read the directory
    }
  }).length;
}

test.each([["before it is read", false], ["while it is read", true]])("a log whose reader goes away %s is closed", async (_, reads) => {
  const gone = new AbortController();
  const { body } = await containerLogs(api, { namespace: "shop", pod: "web", container: "c", query: new URLSearchParams("follow=true"), signal: gone.signal }, systemClock) as { readonly body: Readable };
  expect(timesOpen()).toBe(1);
  if (reads) expect(String((await once(body, "data"))[0])).toBe("one\n");
  gone.abort();
  body.destroy();
  await once(body, "close");
  await expect.poll(timesOpen).toBe(0);
});

async function logOf(query: string, pod = "web", splits = false): Promise<string> {
  const known = { ...api, pod: ({ name }: { name: string }) => (name === "web" ? api.pod({ namespace: "shop", name }) : undefined) };
  const { status, body } = await containerLogs(known, { namespace: "shop", pod, container: "c", query: new URLSearchParams(query), splits, signal: new AbortController().signal }, systemClock);
  let text = typeof body === "string" ? body : "";
  if (typeof body !== "string") for await (const chunk of body as Readable) text += String(chunk);
  return `${status} ${text}`;
}

test.each([["", "200"], ["tailLines=0", "200 "], ["tail=0", "200 "], ["tail=all&tailLines=0", "200"], ["tail=1&tailLines=0", "200"], ["tail=0&tailLines=1", "200 "], ["tailLines=all", '400 {"message": "Unable to decode query."}'], ["tail=-1", '422 {"message": "Invalid request."}']])("how much of a log is wanted: %s", async (query, answer) => {
  expect(await logOf(query)).toBe(answer === "200" ? "200 one\n" : answer);
});

test("what is asked of a log is read as Go reads it: numbers are whole and decimal, times have a zone, and what is neither 0 nor false is true", async () => {
  const unreadable = '400 {"message": "Unable to decode query."}', wrong = '422 {"message": "Invalid request."}';
  for (const query of ["tailLines=", "tailLines=1e1", "limitBytes=0x10", "sinceSeconds=+", "sinceTime=2026-01-02", "sinceTime=Fri, 02 Jan 2026 03:04:05 GMT"]) expect(await logOf(query), query).toBe(unreadable);
  for (const query of ["limitBytes=0", "sinceSeconds=0", "sinceSeconds=5&sinceTime=2026-01-02T03:04:05Z", "stream=Both", "stream=Stdout&tailLines=1"]) expect(await logOf(query), query).toBe(wrong);
  for (const query of ["tailLines=%2b1", "sinceTime=", "sinceTime=2026-01-02T03:04:05%2b00:00", "timestamps=0", "timestamps=False"]) expect(await logOf(query), query).toBe("200 one\n");
  for (const query of ["timestamps", "timestamps=yes", "timestamps=1"]) expect(await logOf(query), query).toBe("200 2026-01-02T03:04:05.000000000Z one\n");
  expect(await logOf("stream=Stdout")).toBe('400 unable to return the given log stream: "Stdout". Please enable PodLogsQuerySplitStreams feature gate in kubelet');
  expect(await logOf("stream=Stdout", "other")).toBe('404 pod "other" does not exist');
});

test.each([["Stdout", "200 one\n"], ["Stderr", "200 "], ["All", "200 one\n"], ["Both", '422 {"message": "Invalid request."}']])("where streams may be asked for apart: %s", async (stream, told) => expect(await logOf(`stream=${stream}`, "web", true)).toBe(told));

test("of a container that has run and whose log is gone it is told so in place of the log; one that has none yet is refused, and so is standard error alone", async () => {
  const told = async (error: KubeletApiError, query = ""): Promise<string> => {
    const answered = containerLogs({ ...api, logFile: () => { throw error; } }, { namespace: "shop", pod: "web", container: "c", query: new URLSearchParams(query), splits: true, signal: new AbortController().signal }, systemClock);
    return await answered.then(({ status, body }) => `${status} ${String(body)}`, ({ code }: KubeletApiError) => code);
  };
  const gone = new KubeletApiError("no-log", "unable to retrieve container logs for containerd://a");
  expect(await told(gone)).toBe("200 unable to retrieve container logs for containerd://a");
  expect(await told(gone, "stream=Stderr")).toBe("no-log");
  expect(await told(new KubeletApiError("bad-request", "waiting to start"))).toBe("bad-request");
  const lost = { ...api, logFile: () => ({ path: `${path}.gone`, running: () => false }) };
  const { status, body } = await containerLogs(lost, { namespace: "shop", pod: "web", container: "c", query: new URLSearchParams(), signal: new AbortController().signal }, systemClock);
  expect(`${status} ${String(body)}`).toBe(`200 failed to try resolving symlinks in path "${path}.gone": lstat ${path}.gone: no such file or directory`);
});
