import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { aborted } from "../../core/lifecycle/aborted.ts";
import { systemClock } from "../../core/lifecycle/clock.ts";
import { silentLog } from "../../core/observe/log.ts";
import { type ContainerdOptions, stopContainerd, superviseContainerd } from "./containerd.ts";
import { trimLog } from "./log-file.ts";
import { identify, isAlive } from "./process-identity.ts";

const directory = mkdtempSync(join(tmpdir(), "containerd-"));
const program = join(directory, "containerd");
writeFileSync(program, '#!/bin/sh\necho "started with $*" >&2\nexec sleep 1000\n', { mode: 0o755 });
const processFile = join(directory, "process.json");
const logFile = join(directory, "log");
const deps = { clock: systemClock, log: silentLog };
afterAll(async () => {
  await stopContainerd(processFile, deps);
  rmSync(directory, { recursive: true });
});

function options(fingerprint: string, changes: Partial<ContainerdOptions> = {}): ContainerdOptions {
  return { program, configFile: "config", logFile, processFile, fingerprint, environment: { PATH: "/usr/bin:/bin" }, answers: async () => undefined, alive: async () => undefined, prepare: async () => undefined, ...changes };
}

/** A life of `coracle`: up to readiness, then `during`, then stopped. Returns the pid it ended with. */
async function live(what: ContainerdOptions, during: () => Promise<void> = async () => undefined): Promise<number> {
  const stop = new AbortController();
  const ready = Promise.withResolvers<void>();
  const life = superviseContainerd(what, deps, stop.signal, ready.resolve);
  await ready.promise;
  await during();
  stop.abort();
  await life;
  return pidNow();
}

test("the end of a containerd of our own is told, not found out", async () => {
  const slept: number[] = [];
  const patient = { ...deps, clock: { ...systemClock, sleep: (ms: number, signal: AbortSignal) => { slept.push(ms); return systemClock.sleep(ms, signal); } } };
  const stop = new AbortController(), ready = Promise.withResolvers<void>();
  const life = superviseContainerd(options("c"), patient, stop.signal, ready.resolve);
  await ready.promise;
  const first = pidNow();
  process.kill(first, "SIGKILL");
  while (pidNow() === first) await systemClock.sleep(20, AbortSignal.timeout(5_000));
  stop.abort();
  await life;
  expect(slept.filter((ms) => ms === 1_000)).toEqual([]);
  await stopContainerd(processFile, deps);
});

function pidNow(): number {
  return (JSON.parse(readFileSync(processFile, "utf8")) as { pid: number }).pid;
}

test("containerd outlives us, is taken over, restarted when something changed, and started again when it died", async () => {
  const first = await live(options("a"));
  expect(identify(first)).toBeDefined();
  expect(await live(options("a"))).toBe(first);

  const second = await live(options("b"));
  expect(second).not.toBe(first);
  expect(identify(first)).toBeUndefined();

  const third = await live(options("b"), async () => {
    process.kill(second, "SIGKILL");
    while (pidNow() === second) await systemClock.sleep(20, AbortSignal.timeout(5_000));
  });
  expect([third === second, identify(third) !== undefined]).toEqual([false, true]);
  expect(readFileSync(logFile, "utf8")).toContain("started with --config config\n");

  await stopContainerd(processFile, deps);
  expect([identify(third), existsSync(processFile)]).toEqual([undefined, false]);
});

test("a pid that was given to another process is not taken over", async () => {
  const stranger = identify(process.pid)!;
  expect([isAlive(stranger), isAlive({ ...stranger, startTicks: stranger.startTicks - 1 })]).toEqual([true, false]);
  writeFileSync(processFile, JSON.stringify({ pid: process.pid, startTicks: stranger.startTicks - 1, fingerprint: "a" }));
  expect(await live(options("a"))).not.toBe(process.pid);
  writeFileSync(processFile, JSON.stringify({ ...stranger, fingerprint: "a", boot: "another one" })); // which has the number since the machine was started anew, from the same moment on
  expect(await stopContainerd(processFile, deps)).toBeUndefined();
  writeFileSync(processFile, '{"pid": 1');
  await live(options("a"));
});

test("a disk without room for our notes and for a copy of its log is no reason to give up", async () => {
  await live(options("a"));
  const old = pidNow();
  mkdirSync(`${processFile}.new`); // as good as a full disk: it cannot be written
  mkdirSync(`${logFile}.1.new`);
  writeFileSync(logFile, "x".repeat((8 << 20) + 1));
  try {
    expect(await live(options(`a longer one ${"!".repeat(50)}`), async () => { while (statSync(logFile).size > 8 << 20) await systemClock.sleep(20, AbortSignal.timeout(5_000)); })).not.toBe(old);
    const next = pidNow();
    expect(await live(options("b"))).not.toBe(next); // a shorter note over a longer one
  } finally {
    for (const path of [`${processFile}.new`, `${logFile}.1.new`]) rmSync(path, { recursive: true, force: true });
  }
});

test("readiness waits for what must be prepared, which is tried again", async () => {
  let tries = 0;
  await live(options("a", { prepare: async () => { if (++tries < 2) throw new Error("disk full"); } }));
  expect(tries).toBe(2);
});

test("one that runs and only refuses is ended and started again; one that has answered is not, whatever takes long", async () => {
  const pids: number[] = [];
  const refuses = async (): Promise<void> => {
    if (pids.at(-1) !== pidNow()) pids.push(pidNow());
    if (pids.length < 3) throw new Error("unknown service runtime.v1.RuntimeService");
  };
  let prepared = 0;
  await live(options("refuses", { answers: refuses, answerMs: 300, prepare: async () => { if (prepared++ < 2) throw new Error("not yet"); } }));
  expect([pids.length, prepared, pidNow() === pids[2]]).toEqual([3, 3, true]);
  let first = 0, second = 0; // which refuses; and there is another one without anybody's help
  const later = await live(options("later", { answerMs: 300, async answers() {
    if (first !== 0 && pidNow() !== first) second ||= pidNow();
    if (pidNow() === second) throw new Error("unknown service");
  } }), async () => {
    first = pidNow();
    process.kill(first, "SIGKILL");
    while (pidNow() === first || pidNow() === second || second === 0) await systemClock.sleep(20, AbortSignal.timeout(10_000));
  });
  expect([first, second]).not.toContain(later);
});

test("one that answered once and hangs is ended and started again, also where it does not end by itself; one that refuses, or goes when it is asked, is left alone", async () => {
  let first = 0, asked = 0;
  const hangs = async (signal: AbortSignal): Promise<void> => {
    asked++;
    if (pidNow() === first) await aborted(signal);
    throw new Error("not now");
  };
  const stubborn = join(directory, "stubborn");
  writeFileSync(stubborn, "#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 1; done\n", { mode: 0o755 });
  const quick = { ...deps, clock: { ...systemClock, uptimeMs: () => systemClock.uptimeMs() * 20 } };
  const stop = new AbortController(), ready = Promise.withResolvers<void>();
  const life = superviseContainerd(options("h", { program: stubborn, silentMs: 100, alive: hangs }), quick, stop.signal, ready.resolve);
  await ready.promise;
  first = pidNow();
  await expect.poll(pidNow, { timeout: 30_000 }).not.toBe(first);
  const second = pidNow(), before = asked;
  await expect.poll(() => asked, { timeout: 30_000 }).toBeGreaterThan(before + 2);
  expect([identify(first), pidNow()]).toEqual([undefined, second]);
  stop.abort();
  await life;
  await stopContainerd(processFile, quick);
});

test("one that hangs and does not end keeps nobody who is stopped from ending", async () => {
  const stubborn = join(directory, "undying");
  writeFileSync(stubborn, "#!/bin/sh\ntrap 'echo asked' TERM\nwhile :; do sleep 0.1; done\n", { mode: 0o755 });
  const timeless = { ...deps, clock: { ...systemClock, uptimeMs: () => 0 } }; // it is not killed
  const stop = new AbortController(), ready = Promise.withResolvers<void>();
  const life = superviseContainerd(options("u", { program: stubborn, silentMs: 100, alive: aborted }), timeless, stop.signal, ready.resolve);
  await ready.promise;
  await expect.poll(() => readFileSync(logFile, "utf8"), { timeout: 30_000 }).toContain("asked");
  stop.abort();
  await life;
  const pid = pidNow();
  expect(identify(pid)).toBeDefined();
  process.kill(pid, "SIGKILL");
  await stopContainerd(processFile, deps);
});

test("one that does not stay up is healed before it is started again, by what it said; and why it ended is told, not the end of its stack", async () => {
  const panics = join(directory, "panics");
  writeFileSync(panics, `#!/bin/sh\necho 'level=info msg="loading plugin"'; echo 'panic: page 3'; for i in 1 2 3 4 5; do echo "go.etcd.io/bbolt.Open($i)"; done; exit 2\n`, { mode: 0o755 });
  const stop = new AbortController(), healed: [number, string[]][] = [], told: unknown[] = [];
  const log = { ...silentLog, warn: (_: string, fields?: Readonly<Record<string, unknown>>) => void told.push((fields?.["lastLines"] as string[] | undefined)?.[0]) };
  const heal = async (failures: number, lines: readonly string[]): Promise<void> => {
    healed.push([failures, lines.slice(-2)]);
    if (failures === 2) stop.abort();
  };
  rmSync(logFile, { force: true });
  await superviseContainerd(options("p", { program: panics, heal }), { ...deps, log }, stop.signal, () => undefined);
  const end = ["go.etcd.io/bbolt.Open(4)", "go.etcd.io/bbolt.Open(5)"];
  expect([healed, told]).toEqual([[[1, end], [2, end]], ["panic: page 3", "panic: page 3"]]);
});

test("a program that cannot be started is no reason to give up", async () => {
  await stopContainerd(processFile, deps);
  const missing = join(directory, "later");
  const pid = live(options("c", { program: missing }));
  await systemClock.sleep(50, AbortSignal.timeout(5_000));
  writeFileSync(missing, "#!/bin/sh\nexec sleep 1000\n", { mode: 0o755 });
  expect(identify(await pid)).toBeDefined();
});

test("a log that has grown too big is cut, its content kept once", async () => {
  const path = join(directory, "big.log");
  writeFileSync(path, "x".repeat(100));
  expect([await trimLog(path, 100), await trimLog(path, 99), statSync(path).size, statSync(`${path}.1`).size]).toEqual([false, true, 0, 100]);
});
