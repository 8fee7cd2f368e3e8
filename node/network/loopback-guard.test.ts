import { expect, test } from "vitest";
import { oldNftDiesOf } from "../../test/old-nft.ts";
import { systemClock as clock } from "../../core/lifecycle/clock.ts";
import { silentLog as log } from "../../core/observe/log.ts";
import { loopbackGuard, loopbackGuardText } from "./loopback-guard.ts";

test("nothing reaches the loopback from elsewhere, but for answers and what was addressed to a port of the host", () => {
  expect(loopbackGuardText().split("\n").filter((line) => line.startsWith("add rule")).map((line) => line.replace("add rule ip coracle-loopback input ", ""))).toEqual([
    'iifname "lo" accept', "ip daddr != 127.0.0.0/8 accept", "ct state established,related accept", "ct status dnat accept", "counter drop",
  ]);
  expect(oldNftDiesOf(loopbackGuardText())).toEqual([]);
});

test("it is written at the start, whatever another version has left, and again when somebody has flushed it; what is there is left alone", async () => {
  let there = "chain input { counter drop }", times = 0;
  const stop = new AbortController();
  let looked = 0;
  const nft = { chain: async () => { looked++; return there; }, apply: async (text: string) => { there = text; times++; } };
  const quick = { ...clock, every: (ms: number, signal: AbortSignal) => clock.every(ms / 3_000, signal) };
  const life = loopbackGuard({ nft, clock: quick, log }).run(stop.signal, () => undefined);
  await expect.poll(() => times).toBe(1);
  await expect.poll(() => looked).toBeGreaterThan(2);
  expect([times, there]).toEqual([1, loopbackGuardText()]);
  there = "chain input {}"; // as flushed
  await expect.poll(() => times).toBe(2);
  stop.abort();
  await life;
});

test("it is looked after as soon as tables are others", async () => {
  let there = "", tell: () => void = () => undefined, times = 0;
  const stop = new AbortController();
  const nft = { chain: async () => there, apply: async (text: string) => { there = text; times++; } };
  const life = loopbackGuard({ nft, onTables: (look) => { tell = look; return () => undefined; }, clock, log }).run(stop.signal, () => undefined);
  await expect.poll(() => times).toBe(1);
  there = "";
  tell();
  await expect.poll(() => times).toBe(2);
  stop.abort();
  await life;
});
