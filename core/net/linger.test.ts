import { Duplex } from "node:stream";
import { expect, test } from "vitest";
import type { Clock } from "../lifecycle/clock.ts";
import { endLingering } from "./linger.ts";

/** A clock that goes on when told, and a connection whose other side takes what it is sent when told. */
function slowLink() {
  const alarms = new Set<{ readonly dueMs: number; readonly work: () => void }>();
  let nowMs = 0;
  const clock = { after(ms: number, work: () => void) { const alarm = { dueMs: nowMs + ms, work }; alarms.add(alarm); return { cancel: () => void alarms.delete(alarm) }; } } as unknown as Clock;
  const pass = async (ms: number): Promise<void> => {
    nowMs += ms;
    for (const alarm of [...alarms]) if (alarm.dueMs <= nowMs && alarms.delete(alarm)) alarm.work();
    await Bun.sleep(5);
  };
  let taken: (() => void) | undefined;
  const socket = new Duplex({ read: () => undefined, write(_chunk, _encoding, done) { taken = done; } });
  socket.resume();
  socket.write("the last words");
  endLingering(socket, clock);
  return { socket, pass, alarms, async take() { taken!(); await Bun.sleep(5); } };
}

test("who is on a slow link gets all that came before the end, and then some time to end itself", async () => {
  const { socket, pass, take, alarms } = slowLink();
  await pass(59_000);
  expect(socket.destroyed).toBe(false); // it takes its time
  await take();
  await pass(29_000);
  expect(socket.destroyed).toBe(false);
  await pass(2_000);
  expect(socket.destroyed).toBe(true);
  expect(alarms.size).toBe(0);
});

test("while something is heard of it, it still reads: a reset would overtake the data; not for ever", async () => {
  const { socket, pass, take, alarms } = slowLink();
  await take();
  for (let seconds = 0; seconds < 595; seconds += 5) {
    socket.push("ping");
    await pass(5_000);
  }
  expect(socket.destroyed).toBe(false);
  socket.push("ping");
  await pass(5_000);
  expect(socket.destroyed).toBe(true);
  expect(alarms.size).toBe(0);
});

test("who takes nothing is not waited for; who has ended before is done with what it has taken", async () => {
  const deaf = slowLink();
  await deaf.pass(60_000);
  expect(deaf.socket.destroyed).toBe(true);
  const half = slowLink();
  half.socket.push(null);
  await half.take();
  expect([half.socket.destroyed, half.alarms.size]).toEqual([true, 0]);
});
