import { expect, test } from "vitest";
import { systemClock } from "../core/lifecycle/clock.ts";
import { systemRandom } from "../core/lifecycle/random.ts";
import { silentLog } from "../core/observe/log.ts";
import { metricsRegistry } from "../core/observe/metrics.ts";
import { memoryStore } from "../storage/memory.ts";
import { openEncryption } from "./encryption.ts";

test("a file that is not there cannot be read again when it changes", async () => {
  const open = async (reload: boolean) => await openEncryption({ beneath: await memoryStore({}), on: false, given: undefined, reload, own: "/nowhere/encryption.yaml", isShared: false, clock: systemClock, random: systemRandom, log: silentLog, metrics: metricsRegistry() });
  await expect(open(true)).rejects.toThrow("encryption-provider-config-automatic-reload must be set with --encryption-provider-config");
  expect((await open(false)).parts).toEqual([]);
});
