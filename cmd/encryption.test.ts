import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemClock } from "../core/lifecycle/clock.ts";
import { systemRandom } from "../core/lifecycle/random.ts";
import { silentLog } from "../core/observe/log.ts";
import { metricsRegistry } from "../core/observe/metrics.ts";
import { memoryStore } from "../storage/memory.ts";
import { type Encryption, openEncryption } from "./encryption.ts";

test("a file that is not there cannot be read again when it changes", async () => {
  const open = async (reload: boolean) => await openEncryption({ beneath: await memoryStore({}), on: false, given: undefined, reload, own: "/nowhere/encryption.yaml", isShared: false, clock: systemClock, random: systemRandom, log: silentLog, metrics: metricsRegistry() });
  await expect(open(true)).rejects.toThrow("encryption-provider-config-automatic-reload must be set with --encryption-provider-config");
  expect((await open(false)).parts).toEqual([]);
});

test("the key of Secrets that a disk has damaged is that of its copy", async () => {
  const directory = mkdtempSync(join(tmpdir(), "encryption-")), own = join(directory, "encryption.yaml");
  try {
    const beneath = await memoryStore();
    const open = (): Promise<Encryption> => openEncryption({ beneath, on: true, given: undefined, reload: false, own, isShared: false, clock: systemClock, random: systemRandom, log: silentLog, metrics: metricsRegistry() });
    const key = "/registry/core/secrets/default/s", value = { data: { password: "aHVudGVyMg==" } };
    await (await open()).store.put(key, value, 0);
    const text = readFileSync(own, "utf8");
    for (const damaged of ["", text.slice(0, text.length / 2), "\0".repeat(text.length)]) {
      writeFileSync(own, damaged);
      expect((await (await open()).store.get(key))?.value).toEqual(value);
      expect(readFileSync(own, "utf8")).toBe(text);
    }
  } finally {
    rmSync(directory, { recursive: true });
  }
});
