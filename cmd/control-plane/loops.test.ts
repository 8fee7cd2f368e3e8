import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { informerFactory } from "../../core/client/informer-factory.ts";
import { CRON_JOBS, EVENTS, NAMESPACES, PODS } from "../../core/client/resources.ts";
import { aborted } from "../../core/lifecycle/aborted.ts";
import { systemClock as clock } from "../../core/lifecycle/clock.ts";
import { systemRandom as random } from "../../core/lifecycle/random.ts";
import { type Runnable, runAll } from "../../core/lifecycle/run-all.ts";
import { silentLog as log } from "../../core/observe/log.ts";
import { metricsRegistry } from "../../core/observe/metrics.ts";
import { inProcessServer } from "../../test/in-process-server.ts";
import { SchedulingExplainer } from "../../core/scheduler/explainer.ts";
import { loadSettings } from "../config/config.ts";
import { LoopsState } from "./components.ts";
import { loopsOf } from "./loops.ts";

test("controllers and the scheduler tell their events each in its own name", async () => {
  const stop = new AbortController(), { signal } = stop;
  const server = await inProcessServer({ signal });
  const [loopback, controllers, schedules] = ["loopback", "kube-controller-manager", "kube-scheduler"].map((name) => server.client(name)) as [ReturnType<typeof server.client>, ReturnType<typeof server.client>, ReturnType<typeof server.client>];
  const informers = informerFactory({ client: loopback, clock, random, log });
  const settings = loadSettings("server", { argv: ["--disable", "dns,network,servicelb,ingress,local-storage"], env: {}, readFile: () => undefined });
  const loops = loopsOf({
    settings, paths: { manifests: mkdtempSync(join(tmpdir(), "loops-")) }, controlling: { runs: (name: string) => name === "cronjob-controller" } as never, scheduling: {} as never, explainer: new SchedulingExplainer({ informers, profiles: [], clock }), state: new LoopsState(), gates: new Set<string>(), election: undefined, storageVersions: undefined, isShared: false, nodeName: "n1", serverNames: () => [], pki: undefined as never, onReload: () => () => undefined, legacyTokenKey: undefined,
    clients: { loopback, controllers, scheduler: schedules }, informers, clock, random, log, metrics: metricsRegistry(),
  });
  const running = runAll([informers, ...loops], signal);
  await loopback.resource(NAMESPACES).create({ apiVersion: "v1", kind: "Namespace", metadata: { name: "default" } } as never, { signal });
  const template = { spec: { restartPolicy: "Never", containers: [{ name: "c", image: "i" }] } };
  await loopback.resource(CRON_JOBS).create({ apiVersion: "batch/v1", kind: "CronJob", metadata: { name: "c", namespace: "default" }, spec: { schedule: "0 0 31 2 *", jobTemplate: { spec: { template } } } } as never, { signal });
  await loopback.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: "default" }, spec: template.spec } as never, { signal });
  const told = async (): Promise<string[]> => (await loopback.resource(EVENTS).list({ namespace: "default" }, { signal })).items.map(({ reason, metadata }) => `${reason} ${metadata.managedFields?.map(({ manager }) => manager).join()}`).sort();
  while ((await told()).length < 2) await Bun.sleep(10);
  expect(await told()).toEqual(["FailedScheduling kube-scheduler", "InvalidSchedule kube-controller-manager"]);
  stop.abort();
  await Promise.allSettled([running, server.ended]);
});

test("a server without controllers, one of several, leaves their Lease to who has them", async () => {
  const stop = new AbortController(), { signal } = stop;
  const server = await inProcessServer({ signal });
  const client = server.client("loopback");
  const informers = informerFactory({ client, clock, random, log });
  const loopsWithout = (disable: string, election?: object): readonly Runnable[] => loopsOf({
    settings: loadSettings("server", { argv: ["--disable", disable], env: {}, readFile: () => undefined }), paths: { manifests: mkdtempSync(join(tmpdir(), "loops-")) }, controlling: {} as never, scheduling: {} as never,
    explainer: new SchedulingExplainer({ informers, profiles: [], clock }), state: new LoopsState(), gates: new Set<string>(), election, storageVersions: undefined, isShared: true, nodeName: "n1", serverNames: () => [], pki: undefined as never, onReload: () => () => undefined, legacyTokenKey: undefined,
    clients: { loopback: client, controllers: client, scheduler: client }, informers, clock, random, log, metrics: metricsRegistry(),
  });
  expect(loopsWithout("controllers,dns,scheduler").map(({ name }) => name)).toEqual(["events"]);
  expect(loopsWithout("controllers,scheduler").map(({ name }) => name)).toEqual(["events", "coracle-dns (while leader)"]);
  expect(loopsWithout("dns,scheduler").map(({ name }) => name)).toEqual(["events", "kube-controller-manager (while leader)"]);
  expect(loopsWithout("controllers,dns,scheduler", {}).map(({ name }) => name)).toEqual(["events", "leader-election-controller (while leader)"]);
  stop.abort();
  await Promise.allSettled([server.ended]);
});

test("the node that starts after them does not wait until controllers and the scheduler know the cluster: what can be read of it may depend on a pod of that node", async () => {
  const stop = new AbortController(), { signal } = stop;
  const server = await inProcessServer({ signal });
  const client = server.client("loopback");
  const informers = informerFactory({ client, clock, random, log }); // nobody runs them: nothing is ever known
  const state = new LoopsState();
  const loops = loopsOf({
    settings: loadSettings("server", { argv: ["--disable", "dns,network,servicelb,ingress,local-storage"], env: {}, readFile: () => undefined }), paths: { manifests: mkdtempSync(join(tmpdir(), "loops-")) }, controlling: { runs: (name: string) => name === "cronjob-controller" } as never, scheduling: {} as never,
    explainer: new SchedulingExplainer({ informers, profiles: [], clock }), state, gates: new Set<string>(), election: undefined, storageVersions: undefined, isShared: false, nodeName: "n1", serverNames: () => [], pki: undefined as never, onReload: () => () => undefined, legacyTokenKey: undefined,
    clients: { loopback: client, controllers: client, scheduler: client }, informers, clock, random, log, metrics: metricsRegistry(),
  });
  const begun = Promise.withResolvers<void>();
  const running = runAll([...loops, { name: "node", async run(end, ready) { ready(); begun.resolve(); await aborted(end); } }], signal);
  await begun.promise;
  expect(state.scheduler).toBe("starting");
  stop.abort();
  await Promise.allSettled([running, server.ended]);
});
