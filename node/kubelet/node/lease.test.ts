import { expect, test } from "vitest";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { silentLog } from "../../../core/observe/log.ts";
import type { Client } from "../../../core/client/client.ts";
import { nodeLease } from "./lease.ts";

test("the lease is renewed four times in its life; after a failure sooner, then later and later, seven seconds at most", async () => {
  const stop = new AbortController();
  const waits: number[] = [];
  let periodMs = 0;
  let tries = 0;
  const clock = {
    ...systemClock,
    sleep: async (ms: number) => { waits.push(ms); if (waits.length === 8) stop.abort(); },
    async *every(ms: number) { periodMs = ms; yield; },
  };
  const client = { resource: () => ({ get: async () => { tries++; throw new Error("no route to host"); } }) } as unknown as Client;
  await nodeLease({ client, clock, log: silentLog, nodeName: "n1", durationSeconds: 40, nodeUid: () => undefined }).run(stop.signal, () => undefined);
  expect([periodMs, tries, waits]).toEqual([10_000, 8, [200, 400, 800, 1_600, 3_200, 6_400, 7_000, 7_000]]);
});
