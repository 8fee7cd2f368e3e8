import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { eventually } from "../../../test/fake-api.ts";
import { logindNotices } from "./logind.ts";

let directory = "";
const path = process.env["PATH"];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "logind-"));
  process.env["PATH"] = `${directory}:${path}`;
});
afterEach(() => {
  process.env["PATH"] = path;
  rmSync(directory, { recursive: true });
});

/** A program of systemd's, as far as we use it. */
function program(name: string, script: string): void {
  writeFileSync(join(directory, name), `#!/bin/sh\n${script}\n`);
  chmodSync(join(directory, name), 0o755);
}

test("logind is asked to wait, told when pods have ended, and asked again when the machine stays up", async () => {
  const at = (name: string): string => join(directory, name);
  program("systemd-inhibit", `echo "$*" >> "${at("locks")}"; trap 'echo released >> "${at("locks")}"; exit' TERM; while true; do sleep 0.02; done`);
  program("busctl", `while [ ! -e "${at("down")}" ]; do sleep 0.02; done
echo '{"type":"signal","interface":"org.freedesktop.login1.Manager","member":"PrepareForShutdown","payload":{"type":"b","data":[true]}}'
while [ ! -e "${at("up")}" ]; do sleep 0.02; done
echo '{"type":"signal","payload":{"type":"b","data":[false]}}'
exec sleep 10`);
  const locks = (): string[] => (existsSync(at("locks")) ? readFileSync(at("locks"), "utf8").split("\n").slice(0, -1) : []); // a line is there with its end
  const told: string[] = [];
  const stop = new AbortController();
  const exec = async () => ({ exitCode: 0, stdout: "t 5000000\n", stderr: "" }); // it waits 5 s for anybody, which is enough
  const running = logindNotices({ exec, clock: systemClock, log: silentLog }).run(async (down) => { told.push(`${down} with ${locks().length} lines`); }, 4000, stop.signal);
  await eventually(() => locks().length, (count) => count === 1);
  expect(locks()[0]).toBe("--what=shutdown --mode=delay --who=kubelet --why=Kubelet needs time to handle node shutdown cat");
  writeFileSync(at("down"), "");
  await eventually(locks, (lines) => lines.length === 2);
  expect([told, locks()[1]]).toEqual([["true with 1 lines"], "released"]);
  writeFileSync(at("up"), "");
  await eventually(locks, (lines) => lines.length === 3);
  expect(told).toEqual(["true with 1 lines", "false with 2 lines"]);
  stop.abort();
  await running;
  await eventually(locks, (lines) => lines.length === 4); // nothing holds the machine up any more
});

test("a lock that cannot be asked for again, as on a machine out of memory, ends no process", async () => {
  const at = (name: string): string => join(directory, name);
  program("systemd-inhibit", "exec sleep 100");
  program("busctl", `for data in true false; do echo '{"type":"signal","payload":{"type":"b","data":['$data']}}'; while [ ! -e "${at("up")}" ]; do sleep 0.02; done; done\nexec sleep 10`);
  const stop = new AbortController(), warned: string[] = [];
  const exec = async () => ({ exitCode: 0, stdout: "t 5000000\n", stderr: "" });
  const running = logindNotices({ exec, clock: systemClock, log: { ...silentLog, warn: (message) => void warned.push(message) } }).run(async (down) => {
    process.env["PATH"] = "/nowhere";
    if (down) writeFileSync(at("up"), "");
  }, 4000, stop.signal);
  await eventually(() => warned, (all) => all.length > 0);
  expect(warned).toEqual(["logind will not wait for pods"]);
  stop.abort();
  await running;
});

test("killed, it leaves nobody behind who holds the machine up, nor one who listens", async () => {
  const at = (name: string): string => join(directory, name);
  program("systemd-inhibit", `shift 4; echo $$ >> "${at("pids")}"; exec "$@"`);
  program("busctl", `echo $$ >> "${at("pids")}"; exec sleep 100`);
  writeFileSync(at("node.ts"), `
    import { logindNotices } from "${import.meta.dirname}/logind.ts";
    import { systemClock } from "${import.meta.dirname}/../../../core/lifecycle/clock.ts";
    import { silentLog } from "${import.meta.dirname}/../../../core/observe/log.ts";
    const exec = async () => ({ exitCode: 0, stdout: "t 5000000\\n", stderr: "" });
    await logindNotices({ exec, clock: systemClock, log: silentLog }).run(async () => undefined, 4000, new AbortController().signal);`);
  const node = spawn(process.execPath, [at("node.ts")], { stdio: "ignore" });
  const pids = (): string[] => (existsSync(at("pids")) ? readFileSync(at("pids"), "utf8").trim().split("\n") : []);
  await eventually(pids, (found) => found.length === 2);
  node.kill("SIGKILL");
  await eventually(() => pids().filter((pid) => existsSync(`/proc/${pid}`) && !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ")), (left) => left.length === 0);
});

test("its limit is raised to what pods have, which is told where it stays lower", async () => {
  const at = (name: string): string => join(directory, name);
  program("systemd-inhibit", `echo locked >> "${at("locks")}"; exec sleep 100`);
  program("busctl", "exec sleep 100");
  const clock = { ...systemClock, sleep: (ms: number, signal: AbortSignal) => systemClock.sleep(ms / 100, signal) };
  async function limited(obeys: boolean): Promise<{ readonly ran: readonly string[]; readonly warned: readonly string[] }> {
    const ran: string[] = [];
    const warned: string[] = [];
    let limit = 5_000_000;
    const exec = async (name: string, args: readonly string[]) => {
      ran.push(name);
      if (name === "systemctl" && obeys) limit = 30_000_000;
      if (name === "systemctl") expect(args).toEqual(["kill", "-s", "HUP", "systemd-logind"]);
      return { exitCode: 0, stdout: `t ${limit}\n`, stderr: "" };
    };
    const stop = new AbortController();
    rmSync(at("locks"), { force: true });
    const running = logindNotices({ exec, clock, log: { ...silentLog, warn: (message) => void warned.push(message) }, configuration: at("conf.d") }).run(async () => undefined, 30_000, stop.signal);
    await eventually(() => existsSync(at("locks")), Boolean);
    stop.abort();
    await running;
    return { ran, warned };
  }
  expect(await limited(true)).toEqual({ ran: ["busctl", "systemctl", "busctl"], warned: [] });
  expect(readFileSync(at("conf.d/99-kubelet.conf"), "utf8")).toContain("[Login]\nInhibitDelayMaxSec=30\n");
  expect((await limited(false)).warned).toEqual([expect.stringContaining("logind does not wait for pods as long as shutdownGracePeriod says")]);
});
