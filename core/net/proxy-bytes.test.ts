import { Duplex } from "node:stream";
import { expect, test } from "vitest";
import type { Clock } from "../lifecycle/clock.ts";
import { proxyBytes } from "./proxy-bytes.ts";

test("a client on a slow link gets all that came before the end, and then some time to end itself", async () => {
  const alarms = new Set<{ readonly dueMs: number; readonly work: () => void }>();
  let nowMs = 0;
  const clock = { after(ms: number, work: () => void) { const alarm = { dueMs: nowMs + ms, work }; alarms.add(alarm); return { cancel: () => void alarms.delete(alarm) }; } } as unknown as Clock;
  const pass = async (ms: number): Promise<void> => {
    nowMs += ms;
    for (const alarm of [...alarms]) if (alarm.dueMs <= nowMs && alarms.delete(alarm)) alarm.work();
    await Bun.sleep(5);
  };
  let taken: (() => void) | undefined;
  const client = new Duplex({ read: () => undefined, write(_chunk, _encoding, done) { taken = done; } });
  const server = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
  const over = proxyBytes(client, server, { clock });
  server.push("the last words");
  server.push(null);
  await Bun.sleep(5);
  await pass(30_000);
  expect(client.destroyed).toBe(false); // it takes its time
  taken!();
  await Bun.sleep(5);
  await pass(9_000);
  expect(client.destroyed).toBe(false);
  await pass(2_000);
  expect(client.destroyed).toBe(true);
  await pass(60_000);
  await over;
  expect(alarms.size).toBe(0);
});

test("a client that takes nothing is not waited for", async () => {
  const due: (() => void)[] = [];
  const clock = { after: (_: number, work: () => void) => { due.push(work); return { cancel: () => undefined }; } } as unknown as Clock;
  const client = new Duplex({ read: () => undefined, write: () => undefined });
  const server = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
  const over = proxyBytes(client, server, { clock });
  server.push("unheard");
  server.push(null);
  await Bun.sleep(5);
  for (let work = due.shift(); work; work = due.shift()) work();
  await Bun.sleep(5);
  for (let work = due.shift(); work; work = due.shift()) work();
  await over;
  expect([client.destroyed, server.destroyed]).toEqual([true, true]);
});
