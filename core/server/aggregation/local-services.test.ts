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
  const resource = { create: async ({ metadata }: APIService) => void created.push(metadata.name) } as unknown as ResourceClient<APIService>;
  const clock = { ...systemClock, sleep: (_: number, signal: AbortSignal) => new Promise<void>((resolve) => { asleep.push(resolve); signal.addEventListener("abort", () => resolve()); }) };
  const done = localServices({ registry, apiServices: staticInformer<APIService>(), resource, clock, log: silentLog }).run(stop.signal, () => {});
  const settle = async (): Promise<void> => { for (let i = 0; i < 20; i++) await Promise.resolve(); await Bun.sleep(1); };
  await settle();
  expect([created.filter((name) => name === "v1.example.com").length, created.includes("v1.built.in"), asleep.length]).toEqual([1, true, 1]);
  asleep.shift()!();
  await settle();
  expect(asleep.length).toBe(0);
  const before = created.length;
  rows.push({ group: "example.org", version: "v2", custom: {} });
  changed();
  await settle();
  expect([created.includes("v2.example.org"), asleep.length]).toEqual([true, 1]);
  expect(created.slice(before).toSorted()).toEqual(["v1.example.com", "v2.example.org"]); // not v1.built.in, which is not there either: those of the built-in API are made at the start alone
  stop.abort();
  await done;
  expect(listened).toBe(false);
});
