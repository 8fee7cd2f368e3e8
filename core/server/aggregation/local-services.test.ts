import { expect, test } from "vitest";
import { staticInformer } from "../../../test/static-informer.ts";
import type { ResourceClient } from "../../client/client.ts";
import { systemClock } from "../../lifecycle/clock.ts";
import { silentLog } from "../../observe/log.ts";
import type { APIService } from "../../registry/apiregistration/api-service.ts";
import type { Registry } from "../../registry/registry.ts";
import { localServices } from "./local-services.ts";

test("what comes to be served is registered, and nobody is woken while nothing does", async () => {
  const stop = new AbortController(), asleep: (() => void)[] = [];
  const rows: object[] = [{ group: "example.com", version: "v1", custom: {} }, { group: "built.in", version: "v1" }];
  let changed = (): void => {}, listened = false;
  const registry = { rows: () => rows, onChange: (listener: () => void) => { changed = listener; listened = true; return () => { listened = false; }; } } as unknown as Registry;
  const created: string[] = [];
  let refuses = true;
  const resource = { create: async ({ metadata }: APIService) => { if (refuses) throw new Error("no"); created.push(metadata.name); } } as unknown as ResourceClient<APIService>;
  const clock = { ...systemClock, sleep: (_: number, signal: AbortSignal) => new Promise<void>((resolve) => { asleep.push(resolve); signal.addEventListener("abort", () => resolve()); }) };
  const services = localServices({ registry, apiServices: staticInformer<APIService>(), resource, clock, log: silentLog });
  const done = services.run(stop.signal, () => {});
  const settle = async (): Promise<void> => { for (let i = 0; i < 20; i++) await Promise.resolve(); await Bun.sleep(1); };
  await settle();
  expect(services.done).toBe(false);
  refuses = false;
  asleep.shift()!();
  await settle();
  expect(services.done).toBe(true);
  expect([created.filter((name) => name === "v1.example.com").length, created.includes("v1.built.in"), asleep.length]).toEqual([1, true, 0]);
  const before = created.length;
  rows.push({ group: "example.org", version: "v2", custom: {} });
  changed();
  await settle();
  expect([created.includes("v2.example.org"), asleep.length]).toEqual([true, 0]);
  expect(created.slice(before).toSorted()).toEqual(["v1.example.com", "v2.example.org"]); // not v1.built.in, which is not there either: those of the built-in API are made at the start alone
  stop.abort();
  await done;
  expect(listened).toBe(false);
});

test("what goes is unregistered at once; what somebody else wants otherwise is put right once a second", async () => {
  const stop = new AbortController(), asleep: (() => void)[] = [], done: string[] = [];
  const row = { group: "example.com", version: "v1", custom: {} };
  const registry = { rows: () => rows, onChange: () => () => undefined } as unknown as Registry;
  let rows: object[] = [row];
  const object = (groupPriorityMinimum: number): APIService => ({ metadata: { name: "v1.example.com", labels: { "kube-aggregator.kubernetes.io/automanaged": "true" } }, spec: { group: "example.com", version: "v1", groupPriorityMinimum, versionPriority: 100 } }) as unknown as APIService;
  const apiServices = staticInformer<APIService>(object(1000));
  const resource = {
    create: async () => undefined,
    update: async ({ metadata }: APIService) => void done.push(`update ${metadata.name}`),
    delete: async ({ metadata }: APIService) => void done.push(`delete ${metadata.name}`),
  } as unknown as ResourceClient<APIService>;
  const clock = { ...systemClock, sleep: (_: number, signal: AbortSignal) => new Promise<void>((resolve) => { asleep.push(resolve); signal.addEventListener("abort", () => resolve()); }) };
  const running = localServices({ registry, apiServices, resource, clock, log: silentLog }).run(stop.signal, () => {});
  const settle = async (): Promise<void> => { for (let i = 0; i < 20; i++) await Promise.resolve(); await Bun.sleep(1); };
  await settle();
  for (const priority of [1, 2]) {
    apiServices.put(object(priority));
    await settle();
  }
  expect([done, asleep.length]).toEqual([["update v1.example.com", "update v1.example.com"], 1]);
  rows = [];
  apiServices.put(object(1000));
  asleep.shift()!();
  await settle();
  expect([done.slice(2), asleep.length]).toEqual([["delete v1.example.com"], 0]);
  stop.abort();
  await running;
});
