import { expect, test } from "vitest";
import { pinoLog } from "./log.ts";

const NEVER = { cancel: () => undefined };

test("an error is written with its fields and its causes, and left as it was: it may be frozen, and so may what it holds", () => {
  const lines: string[] = [];
  const log = pinoLog({ level: "info", write: (line) => void lines.push(line) });
  const loop = new Error("around");
  loop.cause = loop;
  const answer = Object.freeze({ message: "pods \"a\" not found", code: 404 });
  log.warn("refused", { error: Object.freeze(Object.assign(new TypeError("no", { cause: new Error("why") }), { status: answer })) });
  log.warn("many", { error: new AggregateError([new Error("one")], "several") });
  log.warn("a loop", { error: loop });
  log.warn("no error", { error: "text" });
  expect(lines.map((line) => (JSON.parse(line) as { error: unknown }).error)).toEqual([
    { type: "TypeError", message: "no", stack: expect.stringContaining("no"), status: answer, cause: { type: "Error", message: "why", stack: expect.any(String) } },
    expect.objectContaining({ type: "AggregateError", message: "several", aggregateErrors: [expect.objectContaining({ message: "one" })] }),
    expect.objectContaining({ message: "around" }),
    "text",
  ]);
});

test("an error that tells its own fields is told by those; why it came is told as before", () => {
  const lines: string[] = [];
  const log = pinoLog({ level: "info", write: (line) => void lines.push(line) });
  log.warn("refused", { error: Object.assign(new TypeError("no", { cause: new Error("why") }), { body: "long", logFields: () => ({ message: "no", code: 403 }) }) });
  expect((JSON.parse(lines[0]!) as { error: unknown }).error).toEqual({ type: "TypeError", message: "no", code: 403, cause: { type: "Error", message: "why", stack: expect.any(String) } });
});

test("a line has the keys of upstream's JSON logs: when it was, how verbose, what, and what went wrong", () => {
  const lines: Record<string, unknown>[] = [];
  const log = pinoLog({ level: "debug", write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) });
  log.info("pod started", { pod: { name: "a", namespace: "b" } });
  log.debug("looked");
  log.warn("pull failed", { error: new Error("pull busybox", { cause: new Error("no route") }) });
  log.error("refused", { error: "text" });
  expect(lines.map(({ ts, v, msg, err, pod }) => [typeof ts, v, msg, err, pod])).toEqual([
    ["number", 0, "pod started", undefined, { name: "a", namespace: "b" }], ["number", 4, "looked", undefined, undefined],
    ["number", undefined, "pull failed", "pull busybox: no route", undefined], ["number", undefined, "refused", "text", undefined],
  ]);
  expect(lines[0]!["ts"]).toBe(Date.parse(lines[0]!["time"] as string)); // in milliseconds
});

test("how much is logged can be changed while it runs, of all that were made of the log: 4 and more tells all, less what there was, and what is informational", () => {
  const lines: string[] = [];
  const log = pinoLog({ level: "warn", write: (line) => void lines.push((JSON.parse(line) as { msg: string }).msg) });
  const part = log.with({ part: "a" });
  const all = (mark: string): void => { for (const level of ["debug", "info", "warn", "error"] as const) part[level](`${level} ${mark}`); };
  all("1");
  log.verbosity.set(4);
  all("2");
  log.verbosity.set(2);
  all("3");
  expect(lines).toEqual(["warn 1", "error 1", "debug 2", "info 2", "warn 2", "error 2", "warn 3", "error 3"]);
});

test("what is wrong for long is not said at each try, but to who wants to know all there is; what differs in a field is not the same", () => {
  const lines: string[] = [];
  let nowMs = 0;
  const log = pinoLog({ level: "info", clock: { uptimeMs: () => nowMs, after: () => NEVER }, write: (line) => { const { level, msg, server, err, repeated } = JSON.parse(line) as Record<string, unknown>; lines.push([level, msg, server, err, repeated].filter((one) => one !== undefined).join(" ")); } });
  const tunnel = log.with({ part: "tunnel" });
  const fail = (server: string, why = "refused"): void => tunnel.warn("no tunnel", { server, error: Object.assign(new Error(why), { big: 1n }) });
  for (let i = 0; i < 5; i++) fail("a");
  fail("b");
  fail("a", "no route");
  for (let i = 0; i < 5; i++) tunnel.info("looked");
  const itself: Record<string, unknown> = {};
  itself["self"] = itself;
  for (let i = 0; i < 4; i++) tunnel.warn("who knows", { itself });
  log.verbosity.set(4);
  fail("a");
  log.verbosity.set(0);
  nowMs = 600_000;
  fail("a");
  expect(lines).toEqual([...Array.from({ length: 3 }, () => "warn no tunnel a refused"), "warn no tunnel b refused", "warn no tunnel a no route", ...Array.from({ length: 5 }, () => "info looked"), ...Array.from({ length: 4 }, () => "warn who knows"), "debug no tunnel a refused", "warn no tunnel a refused 3"]);
});

test("of what fails in many places the places are looked at, and what is long is said each time: it is not for keeping", () => {
  const lines: string[] = [];
  const log = pinoLog({ level: "info", clock: { uptimeMs: () => 0, after: () => NEVER }, write: (line) => { lines.push((JSON.parse(line) as { msg: string }).msg); } });
  const fail = (...whys: string[]): void => log.warn("sync", { error: new Error("pods", { cause: new AggregateError(whys.map((why) => new Error(why)), "2 of 3 failed") }) });
  for (let i = 0; i < 5; i++) fail("no room", "no image");
  expect(lines.splice(0)).toHaveLength(3);
  fail("no room", "no such host");
  expect(lines.splice(0)).toHaveLength(1);
  for (let i = 0; i < 5; i++) fail("x".repeat(10_000));
  expect(lines).toHaveLength(5);
});
