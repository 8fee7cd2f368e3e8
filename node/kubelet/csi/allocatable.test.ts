import { expect, test } from "vitest";
import { CSI_DRIVERS } from "../../../core/client/resources.ts";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { systemRandom } from "../../../core/lifecycle/random.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { fakeApi } from "../../../test/fake-api.ts";
import { csiAllocatable } from "./allocatable.ts";

test("a driver is asked again how many volumes the node takes as often as its object says, even where no double holds that", async () => {
  const api = fakeApi(), stop = new AbortController(), { signal } = stop;
  for (const [name, nodeAllocatableUpdatePeriodSeconds] of [["often", 60], ["hardly", 2n ** 63n - 1n]] as const)
    await api.client.resource(CSI_DRIVERS).create({ apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name }, spec: { nodeAllocatableUpdatePeriodSeconds } } as never, { signal });
  const asked: string[] = [], known = new Set<string>();
  let uptimeMs = 0;
  const clock = {
    ...systemClock, uptimeMs: () => uptimeMs,
    async *every(ms: number) {
      for (let i = 0; i < 13; i++, uptimeMs += ms) {
        yield;
        if (i === 0) await expect.poll(() => known.size).toBe(2);
      }
    },
  };
  const drivers = { names: () => ["often", "hardly"], isOwed: () => false, refresh: async (name: string) => void asked.push(`${name} ${uptimeMs / 1000}`) };
  const run = csiAllocatable({ client: api.client, drivers: drivers as never, clock, random: systemRandom, log: silentLog, onChange: ({ metadata }) => void known.add(metadata.name) }).run(signal, () => undefined);
  await expect.poll(() => asked).toEqual(["often 60", "often 120"]);
  stop.abort();
  await run;
});
