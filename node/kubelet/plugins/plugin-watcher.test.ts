import { mkdtempSync, rmSync } from "node:fs";
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

/** A plugin of one name that is served at `instance`, until it is stopped. */
function startPlugin(instance: string): () => Promise<void> {
  const stop = new AbortController();
  const ended = runAll([rpcServer<Methods>({
    name: instance, socket: join(directory, `${instance}-reg.sock`), methods: serviceMethods(registrationFacts, "pluginregistration"), log: silentLog,
    calls: {
      "Registration/GetInfo": () => ({ type: "DRAPlugin", name: "gpu.example.com", endpoint: `/${instance}.sock`, supported_versions: ["v1.DRAPlugin"] }),
      "Registration/NotifyRegistrationStatus": () => ({}),
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
  const ended = runAll([pluginWatcher({ directory, handlers: [handler], clock: { ...systemClock, sleep: (ms, signal) => systemClock.sleep(Math.min(ms, 20), signal) }, log, metrics })], stop.signal);
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
