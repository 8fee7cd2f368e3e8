import { expect, test } from "vitest";
import type { Clock } from "../lifecycle/clock.ts";
import type { Answer } from "./answer.ts";
import { Deadlines } from "./deadline.ts";
import { requestInfo } from "./request-info.ts";
import type { ServerRequest } from "./request.ts";

const MAPS = "/api/v1/namespaces/a/configmaps";

function handClock() {
  let now = 0;
  const alarms = new Set<{ readonly atMs: number; readonly work: () => void }>();
  const clock = {
    uptimeMs: () => now,
    after: (ms: number, work: () => void) => {
      const alarm = { atMs: now + ms, work };
      alarms.add(alarm);
      return { cancel: () => void alarms.delete(alarm) };
    },
  } as unknown as Clock;
  const passTo = (ms: number) => {
    now = ms;
    for (const alarm of [...alarms]) if (alarm.atMs <= now && alarms.delete(alarm)) alarm.work();
  };
  return { clock, passTo, alarms };
}

function asked(path: string, more: Partial<ServerRequest> = {}): [ServerRequest, ReturnType<typeof requestInfo>] {
  const [pathname = "", search = ""] = path.split("?");
  const query = new URLSearchParams(search);
  const { method = "GET" } = more;
  return [{ method, path: pathname, query, signal: new AbortController().signal, ...more } as ServerRequest, requestInfo(method, pathname, query)];
}

const never = new Promise<Answer>(() => undefined);
const DONE: Answer = { type: "raw", status: 200, headers: {}, body: "" };

test("nobody waits longer than a minute, each from when it came, whatever it waits for", async () => {
  const { clock, passTo, alarms } = handClock();
  const deadlines = new Deadlines(clock, ({ group }) => group === "");
  const told: string[] = [];
  const ask = (name: string, path: string) => void deadlines.timed(...asked(path)).inTime(never).then(({ status }: Answer & { status?: number }) => told.push(`${name} ${status}`));
  ask("first", MAPS);
  ask("asks for more", `${MAPS}?timeout=2m`);
  ask("asks for none", `${MAPS}?timeout=0`);
  ask("soon", `${MAPS}?timeout=10s`);
  passTo(20_000);
  await Bun.sleep(0);
  expect(told).toEqual(["soon 504"]);
  ask("later", MAPS);
  passTo(60_000);
  await Bun.sleep(0);
  expect(told).toEqual(["soon 504", "first 504", "asks for more 504", "asks for none 504"]);
  passTo(79_999);
  await Bun.sleep(0);
  expect(told).toHaveLength(4);
  passTo(80_000);
  await Bun.sleep(0);
  expect(told.at(-1)).toBe("later 504");
  expect(alarms.size).toBe(0);
});

test("who was answered leaves no alarm behind, and what lasts, or is asked within the process, has none", async () => {
  const { clock, alarms } = handClock();
  const deadlines = new Deadlines(clock, ({ group }) => group === "");
  const within = deadlines.timed(...asked(MAPS));
  expect([await within.inTime(Promise.resolve(DONE)), alarms.size]).toEqual([DONE, 1]);
  within.done();
  expect(alarms.size).toBe(0);
  for (const path of [`${MAPS}?watch=1`, "/api/v1/namespaces/a/pods/x/log", "/healthz"]) deadlines.timed(...asked(path));
  deadlines.timed(...asked(MAPS, { user: { name: "x", groups: [] } }));
  expect(alarms.size).toBe(0);
});

test("a write is waited for 34 s at the most, and what it asks for has no longer", async () => {
  const { clock, passTo } = handClock();
  const deadlines = new Deadlines(clock, ({ group }) => group === "");
  passTo(1_000);
  const write = (method: string, path: string) => {
    const { request, inTime } = deadlines.timed(...asked(path, { method }));
    return { deadlineMs: request.deadlineMs, answer: inTime(never).then(({ status }: Answer & { status?: number }) => status, (error: Error) => error.message) };
  };
  const all = [write("POST", MAPS), write("DELETE", `${MAPS}/x?timeout=50s`), write("PATCH", `${MAPS}/x?timeout=10s`), write("DELETE", MAPS), write("POST", "/apis/elsewhere/v1/things")];
  expect(all.map(({ deadlineMs }) => deadlineMs)).toEqual([35_000, 35_000, 11_000, undefined, undefined]); // collections are not written to, one by one
  passTo(35_000);
  passTo(61_000);
  const late = "Timeout: request did not complete within requested timeout - context deadline exceeded";
  expect(await Promise.all(all.map(({ answer }) => answer))).toEqual([late, late, 504, 504, 504]);
});

test("where another time is set it is waited for, which a write has too if it is shorter than its own", async () => {
  const { clock, passTo } = handClock();
  const told: string[] = [];
  for (const requestMs of [300_000, 5_000]) {
    const deadlines = new Deadlines(clock, ({ group }) => group === "", requestMs);
    for (const [method, path] of [["GET", MAPS], ["GET", `${MAPS}?timeout=2m`], ["POST", MAPS]] as const)
      void deadlines.timed(...asked(path, { method })).inTime(never).then((answer) => told.push(`${requestMs} ${path.slice(-2)} ${method} ${(answer as { status: number }).status}`), () => told.push(`${requestMs} ${method} too late`));
  }
  const by = async (ms: number): Promise<string[]> => {
    passTo(ms);
    await Bun.sleep(0);
    return told.splice(0).sort();
  };
  expect(await by(5_000)).toEqual(["5000 2m GET 504", "5000 ps GET 504", "5000 ps POST 504"]);
  expect([await by(34_000), await by(120_000), await by(300_000)]).toEqual([["300000 POST too late"], ["300000 2m GET 504"], ["300000 ps GET 504"]]);
});
