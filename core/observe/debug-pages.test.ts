import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { systemClock } from "../lifecycle/clock.ts";
import { cpuProfiler } from "./cpu-profile.ts";
import { type DebugAnswer, debugPages } from "./debug-pages.ts";

function pages(profile: (ms: number) => Promise<Uint8Array | undefined> = () => Promise.resolve(Uint8Array.of(1))) {
  const set: number[] = [];
  const answer = debugPages({ profiler: { profile }, verbosity: { set: (value) => void set.push(value) } });
  const ask = async (method: string, url: string, body = ""): Promise<DebugAnswer | undefined> => {
    const [path = "", query] = url.split("?");
    return await answer({ method, path, query: new URLSearchParams(query), body: () => Promise.resolve(body), signal: new AbortController().signal });
  };
  return { set, ask, text: async (method: string, url: string, body?: string) => { const found = await ask(method, url, body); return found && `${found.status} ${String(found.body)}`; } };
}

test("how much is logged is set as upstream's components have it, in their words", async () => {
  const { text, set } = pages();
  expect(await text("PUT", "/debug/flags/v", "4")).toBe("200 successfully set klog.logging.verbosity to 4\n");
  expect(await text("PUT", "/debug/flags/v", "x")).toBe('400 strconv.ParseUint: parsing "x": invalid syntax\n');
  expect(await text("PUT", "/debug/flags/v", "-1")).toBe('400 strconv.ParseUint: parsing "-1": invalid syntax\n');
  expect(await text("PUT", "/debug/flags/v", "99999999999")).toBe('400 strconv.ParseUint: parsing "99999999999": value out of range\n');
  expect(await text("GET", "/debug/flags/v")).toBe("406 unsupported http method\n");
  expect(await text("GET", "/debug/flags")).toContain("<tr>v<br>\n</table>");
  expect(set).toEqual([4]);
});

test("of profiles there is that of the processor's time; what Go's runtime tells of itself nobody knows", async () => {
  const asked: number[] = [];
  const { ask, text } = pages((ms) => { asked.push(ms); return Promise.resolve(ms === 7000 ? undefined : Uint8Array.of(1)); });
  expect(await ask("GET", "/debug/pprof")).toMatchObject({ status: 302, headers: { location: "/debug/pprof/" } });
  expect(await text("GET", "/debug/pprof/")).toContain("<a href='profile?debug=1'>profile</a>");
  for (const name of ["heap", "goroutine", "cmdline", "trace"]) expect(await text("GET", `/debug/pprof/${name}`)).toBe("404 Unknown profile\n");
  expect(await ask("GET", "/debug/pprof/profile?seconds=5")).toMatchObject({ status: 200, contentType: "application/octet-stream", headers: { "content-disposition": 'attachment; filename="profile"' } });
  for (const seconds of ["0", "x", "-3"]) await ask("GET", `/debug/pprof/profile?seconds=${seconds}`);
  expect(asked).toEqual([5000, 30_000, 30_000, 30_000]);
  expect(await text("GET", "/debug/pprof/profile?seconds=7")).toBe("500 Could not enable CPU profiling: cpu profiling already in use\n");
  expect(await text("GET", "/debug/pprof/profile?seconds=86400")).toBe("400 profile duration exceeds server's WriteTimeout\n");
  expect(await ask("GET", "/metrics")).toBeUndefined();
});

test("a profile names the functions that ran", async () => {
  const profiler = cpuProfiler(systemClock), { signal } = new AbortController();
  let ended = false;
  const profile = profiler.profile(1_000, signal).finally(() => { ended = true; });
  expect(await profiler.profile(1_000, signal)).toBeUndefined(); // one at a time
  for (; !ended; await Bun.sleep(1)) spinning(200_000);
  expect(gunzipSync((await profile)!).toString("latin1")).toContain("spinning");
});

function spinning(times: number): number {
  let sum = 0;
  for (let i = 0; i < times; i++) sum += Math.sqrt(i);
  return sum;
}
