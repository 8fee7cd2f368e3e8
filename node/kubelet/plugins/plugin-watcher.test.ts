import { existsSync, mkdtempSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually } from "../../../test/fake-api.ts";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { runAll } from "../../../core/lifecycle/run-all.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { metricsRegistry } from "../../../core/observe/metrics.ts";
import { serviceMethods } from "../../cri/facts.ts";
import { rpcServer } from "../../cri/rpc-server.ts";
import type { Methods } from "./gen/registration.v1.ts";
import { type PluginHandler, pluginWatcher } from "./plugin-watcher.ts";
import registrationFacts from "./registration-facts.txt" with { type: "text" };

let directory = "";
beforeEach(() => { directory = mkdtempSync(join(tmpdir(), "plugins-")); });
afterEach(() => rmSync(directory, { recursive: true }));

const quick = { ...systemClock, sleep: (ms: number, signal: AbortSignal) => systemClock.sleep(Math.min(ms, 20), signal) };

/** A plugin of one name that is served at `instance`, until it is stopped. `told`: hears what came of its registration. */
function startPlugin(instance: string, { type = "DRAPlugin", name = "gpu.example.com", told = () => undefined }: { readonly type?: string; readonly name?: string; readonly told?: (problem: string | undefined) => void } = {}): () => Promise<void> {
  const stop = new AbortController();
  const ended = runAll([rpcServer<Methods>({
    name: instance, socket: join(directory, `${instance}-reg.sock`), methods: serviceMethods(registrationFacts, "pluginregistration"), log: silentLog,
    calls: {
      "Registration/GetInfo": () => ({ type, name, endpoint: `/${instance}.sock`, supported_versions: ["v1.DRAPlugin"] }),
      "Registration/NotifyRegistrationStatus": ({ error }) => { told(error); return {}; },
    },
  })], stop.signal);
  return async () => {
    stop.abort();
    await ended;
    rmSync(join(directory, `${instance}-reg.sock`), { force: true });
  };
}

test.each([
  ["the old one goes: the new one stays", "old", ["register /old.sock", "register /new.sock", "deregister /new.sock"]],
  ["the new one goes: the old one is served again", "new", ["register /old.sock", "register /new.sock", "register /old.sock", "deregister /old.sock"]],
])("a plugin is updated: two of its name are there, and %s", async (_, first, expected) => {
  const calls: string[] = [];
  const handler: PluginHandler = { type: "DRAPlugin", validate: () => undefined, register: async ({ endpoint }) => void calls.push(`register ${endpoint}`), deregister: async ({ endpoint }) => void calls.push(`deregister ${endpoint}`) };
  const stop = new AbortController();
  const steps: string[] = [];
  const metrics = metricsRegistry();
  const known = (state: string): number => metrics.render().split("\n").filter((line) => line.startsWith("plugin_manager_total_plugins{") && line.includes(`state="${state}"`)).length;
  const log = { ...silentLog, info: (message: string) => void steps.push(message) };
  const ended = runAll([pluginWatcher({ directory, handlers: [handler], clock: quick, log, metrics })], stop.signal);
  const plugins = new Map<string, () => Promise<void>>();
  for (const name of ["old", "new"]) {
    plugins.set(name, startPlugin(name));
    await eventually(() => steps.filter((step) => step === "plugin registered").length, (count) => count === plugins.size);
  }
  expect([known("desired_state_of_world"), known("actual_state_of_world")]).toEqual([2, 2]);
  await plugins.get(first)!();
  await eventually(() => calls.length, (count) => count >= expected.length - 1);
  await plugins.get(first === "old" ? "new" : "old")!();
  await eventually(() => calls.at(-1), (call) => call === expected.at(-1));
  expect(calls).toEqual(expected);
  stop.abort();
  await ended;
});

test("a plugin that is not taken is told why; one that cannot be told that it was is not counted on", async () => {
  const calls: string[] = [];
  const handler: PluginHandler = { type: "DRAPlugin", validate: ({ endpoint }) => { if (endpoint === "/wrong.sock") throw new Error("no"); }, register: async ({ endpoint }) => void calls.push(`register ${endpoint}`), deregister: async ({ endpoint }) => void calls.push(`deregister ${endpoint}`) };
  const stop = new AbortController();
  const ended = runAll([pluginWatcher({ directory, handlers: [handler], clock: systemClock, log: silentLog, metrics: metricsRegistry() })], stop.signal);
  const problems: (string | undefined)[] = [];
  const plugins = [
    startPlugin("wrong", { told: (problem) => void problems.push(problem) }), startPlugin("other", { type: "Other", told: (problem) => void problems.push(problem) }),
    startPlugin("deaf", { told: () => { throw new Error("not now"); } }),
  ];
  await eventually(() => [...calls, ...problems], (all) => all.length === 4);
  expect(problems.toSorted()).toEqual([`RegisterPlugin error -- no handler registered for plugin type: Other at socket ${join(directory, "other-reg.sock")}`, "RegisterPlugin error -- plugin validation failed with err: no"]);
  expect(calls).toEqual(["register /deaf.sock", "deregister /deaf.sock"]);
  stop.abort();
  await ended;
  for (const end of plugins) await end();
});

test.each([
  ["another plugin: the one before is gone", "other.example.com", [], ["register gpu.example.com", "register other.example.com", "deregister gpu.example.com", "deregister other.example.com"]],
  ["one that is not taken: the one before is gone with it", "gpu.example.com", ["gpu.example.com"], ["register gpu.example.com", "refuse gpu.example.com", "deregister gpu.example.com"]],
])("a socket is made anew for %s", async (_, next, refused, expected) => {
  const calls: string[] = [];
  let refuses: readonly string[] = [];
  const handler: PluginHandler = {
    type: "DRAPlugin", validate: () => undefined, deregister: async ({ name }) => void calls.push(`deregister ${name}`),
    async register({ name }) {
      calls.push(`${refuses.includes(name) ? "refuse" : "register"} ${name}`);
      if (refuses.includes(name)) throw new Error("no");
    },
  };
  const stop = new AbortController();
  const steps: string[] = [];
  const log = { ...silentLog, info: (message: string) => void steps.push(message) };
  const ended = runAll([pluginWatcher({ directory, handlers: [handler], clock: quick, log, metrics: metricsRegistry() })], stop.signal);
  const first = startPlugin("one");
  await eventually(() => steps, (all) => all.includes("plugin registered")); // and has been told so
  refuses = refused;
  const second = startPlugin(".next", { name: next }); // where nobody looks
  const [hidden, shown] = [".next", "one"].map((instance) => join(directory, `${instance}-reg.sock`));
  await eventually(() => existsSync(hidden!), (served) => served);
  renameSync(hidden!, shown!);
  await eventually(() => calls.length, (count) => count >= expected.length - 1);
  rmSync(shown!);
  await second();
  await eventually(() => calls.at(-1), (call) => call === expected.at(-1));
  expect([...new Set(calls)]).toEqual(expected);
  stop.abort();
  await ended;
  await first();
});

test("a plugin that does not answer keeps no other from being taken, or from going; one behind a link is found", async () => {
  const calls: string[] = [];
  const held = Promise.withResolvers<void>();
  const handler: PluginHandler = {
    type: "DRAPlugin", validate: () => undefined, deregister: async ({ name }) => void calls.push(`deregister ${name}`),
    async register({ name }) {
      if (name === "slow") await held.promise;
      calls.push(`register ${name}`);
    },
  };
  const silent = createServer(() => undefined).listen(join(directory, "silent-reg.sock")); // takes connections, and says nothing
  symlinkSync("/nowhere", join(directory, "dangling.sock"));
  const stop = new AbortController();
  const ended = runAll([pluginWatcher({ directory, handlers: [handler], clock: quick, log: silentLog, metrics: metricsRegistry() })], stop.signal);
  const slow = startPlugin("slow", { name: "slow" });
  const hidden = startPlugin(".elsewhere", { name: "linked" });
  symlinkSync(join(directory, ".elsewhere-reg.sock"), join(directory, "linked-reg.sock"));
  await eventually(() => calls, ([call]) => call === "register linked");
  rmSync(join(directory, "linked-reg.sock"));
  await eventually(() => calls.at(-1), (call) => call === "deregister linked");
  rmSync(join(directory, "slow-reg.sock")); // while it is being taken
  await systemClock.sleep(100, stop.signal);
  held.resolve();
  await eventually(() => calls.slice(2), ({ length }) => length === 2);
  expect(calls.slice(2)).toEqual(["register slow", "deregister slow"]);
  stop.abort();
  silent.close();
  await ended;
  await Promise.all([hidden(), slow()]);
});

test("where nothing more can be watched plugins are found by looking", async () => {
  const calls: string[] = [];
  const handler: PluginHandler = { type: "DRAPlugin", validate: () => undefined, register: async ({ endpoint }) => void calls.push(endpoint), deregister: async () => undefined };
  const stop = new AbortController();
  const watch = (): never => { throw Object.assign(new Error("EMFILE: too many open files, watch"), { code: "EMFILE" }); };
  const ended = runAll([pluginWatcher({ directory, handlers: [handler], clock: quick, log: silentLog, metrics: metricsRegistry(), watch })], stop.signal);
  const end = startPlugin("one");
  await eventually(() => calls, (all) => all.length > 0);
  stop.abort();
  await ended;
  await end();
});
