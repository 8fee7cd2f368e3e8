import { expect, test } from "vitest";
import { systemClock as clock } from "../../core/lifecycle/clock.ts";
import { silentLog as log } from "../../core/observe/log.ts";
import { attribute, joined, text } from "./netlink-message.ts";
import type { NetlinkSocket } from "./netlink-socket.ts";
import { tableWatch } from "./table-watch.ts";

const table = (name: string, handle: number): Uint8Array => joined([Uint8Array.of(2, 0, 0, 0), attribute(1, text(name)), attribute(4, Uint8Array.of(0, 0, 0, 0, 0, 0, 0, handle))]);

test("tables that go, come or are made anew are told of, in whatever order the kernel has them; a kernel that says nothing is asked less often", async () => {
  let there = [table("coracle", 1), table("filter", 2)], told = 0, asked = 0, ticks = 0, opened = 0, isMute = false;
  const socket = { dump: (type: number) => { asked++; if (isMute) throw new Error("no such device"); expect(type).toBe(0xa01); return there; }, close: () => undefined } as unknown as NetlinkSocket;
  const stop = new AbortController();
  const watch = tableWatch({ netlink: () => { opened++; return socket; }, clock: { ...clock, async *every(ms, signal) { for await (const tick of clock.every(ms / 1000, signal)) { ticks++; yield tick; } } }, log });
  const end = watch.onTables(() => void told++);
  const life = watch.run(stop.signal, () => undefined);
  const looksAgain = async (): Promise<void> => { const so = asked; await expect.poll(() => asked).toBeGreaterThan(so + 2); };
  await looksAgain();
  there = there.toReversed();
  await looksAgain();
  expect([told, opened]).toEqual([0, 1]);
  there = []; // nft flush ruleset
  await looksAgain();
  expect(told).toBeGreaterThan(0);
  there = [table("coracle", 3), table("filter", 4)];
  await looksAgain();
  told = 0;
  there = [table("coracle", 5), table("filter", 4)]; // deleted and made in one step
  await looksAgain();
  expect(told).toBe(1);
  isMute = true;
  const before = [asked, ticks];
  await expect.poll(() => asked).toBeGreaterThan(before[0]! + 3);
  expect(ticks - before[1]!).toBeGreaterThan(60);
  isMute = false;
  await looksAgain();
  expect([told, opened]).toEqual([1, 1]);
  end();
  there = [];
  await looksAgain();
  expect(told).toBe(1);
  stop.abort();
  await life;
});

test("a table that is gone again when it is looked for is told of again, and not for ever", async () => {
  let there = [table("coracle", 1), table("filter", 2)], told = 0, asked = 0;
  const socket = { dump: () => { asked++; return there; }, close: () => undefined } as unknown as NetlinkSocket;
  const stop = new AbortController();
  const watch = tableWatch({ netlink: () => socket, clock: { ...clock, every: (ms, signal) => clock.every(ms / 1000, signal) }, log });
  watch.onTables(() => {
    told++;
    if (told === 3) there = [table("coracle", 3), table("filter", 2)]; // what was made before was gone within the second
  });
  const life = watch.run(stop.signal, () => undefined);
  const looksAgain = async (): Promise<void> => { const so = asked; await expect.poll(() => asked).toBeGreaterThan(so + 30); };
  await looksAgain();
  there = [table("filter", 2)];
  await looksAgain();
  expect(told).toBe(4); // that it is there again, too
  there = [table("coracle", 3)]; // whose owner does not want it any more
  await looksAgain();
  expect(told).toBe(4 + 1 + 10);
  stop.abort();
  await life;
});

test("who looks for longer than others make tables is told once more when it has looked, not as often as they did", async () => {
  let handle = 0, asked = 0, begun = 0, looked: () => void = () => undefined;
  const socket = { dump: () => { asked++; return [table("filter", handle++ % 250)]; }, close: () => undefined } as unknown as NetlinkSocket;
  const stop = new AbortController();
  const watch = tableWatch({ netlink: () => socket, clock: { ...clock, every: (ms, signal) => clock.every(ms / 1000, signal) }, log });
  watch.onTables(() => { begun++; return new Promise((resolve) => { looked = resolve; }); });
  const life = watch.run(stop.signal, () => undefined);
  await expect.poll(() => asked).toBeGreaterThan(30);
  expect(begun).toBe(1);
  looked();
  await expect.poll(() => asked).toBeGreaterThan(60);
  expect(begun).toBe(2);
  stop.abort();
  await life;
});
