import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { stringify } from "yaml";
import { systemClock } from "../core/lifecycle/clock.ts";
import { systemRandom } from "../core/lifecycle/random.ts";
import { silentLog } from "../core/observe/log.ts";
import { metricsRegistry } from "../core/observe/metrics.ts";
import { isSealed, prefixOf } from "../storage/encryption/encryption.ts";
import { memoryStore } from "../storage/memory.ts";
import { type Store, StoreError } from "../storage/store.ts";
import { type Encryption, newKey, openEncryption, ownConfiguration, stateFile } from "./encryption.ts";

test("a file that is not there cannot be read again when it changes", async () => {
  const open = async (reload: boolean) => await openEncryption({ beneath: await memoryStore({}), on: false, given: undefined, reload, own: "/nowhere/encryption.yaml", isShared: false, serverId: "apiserver-x", clock: systemClock, random: systemRandom, log: silentLog, metrics: metricsRegistry() });
  await expect(open(true)).rejects.toThrow("encryption-provider-config-automatic-reload must be set with --encryption-provider-config");
  expect((await open(false)).parts).toEqual([]);
});

test("the key of Secrets that a disk has damaged, or that is gone, is that of its copy", async () => {
  const directory = mkdtempSync(join(tmpdir(), "encryption-")), own = join(directory, "encryption.yaml");
  try {
    const beneath = await memoryStore();
    const open = (): Promise<Encryption> => openEncryption({ beneath, on: true, given: undefined, reload: false, own, isShared: false, serverId: "apiserver-x", clock: systemClock, random: systemRandom, log: silentLog, metrics: metricsRegistry() });
    const key = "/registry/core/secrets/default/s", value = { data: { password: "aHVudGVyMg==" } };
    await (await open()).store.put(key, value, 0);
    const text = readFileSync(own, "utf8");
    for (const damaged of ["", text.slice(0, text.length / 2), "\0".repeat(text.length)]) {
      writeFileSync(own, damaged);
      expect((await (await open()).store.get(key))?.value).toEqual(value);
      expect(readFileSync(own, "utf8")).toBe(text);
    }
    rmSync(own); // another key would take the place of its copy, too
    expect((await (await open()).store.get(key))?.value).toEqual(value);
    expect(readFileSync(own, "utf8")).toBe(text);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("a file that cannot be used is counted each time and told once; the one before holds until there is one that can be used", async () => {
  const directory = mkdtempSync(join(tmpdir(), "encryption-")), file = join(directory, "given.yaml");
  const stop = new AbortController();
  const metrics = metricsRegistry(), told: unknown[] = [];
  const log = { ...silentLog, error: (_: string, fields: { readonly error: Error }) => void told.push(fields.error.message) } as unknown as typeof silentLog;
  const clock = { ...systemClock, every: (_: number, signal: AbortSignal) => systemClock.every(5, signal) };
  const configuration = (provider: string): string => `apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources: [{resources: [secrets], providers: [${provider}]}]\n`;
  const counted = (): string[] => metrics.render().split("\n").filter((line) => /^apiserver_encryption_config_controller_(automatic_reloads|last_config)/.test(line)).map((line) => line.replace(/.*controller_/, "").replace(/sha256:([0-9a-f]{4})[0-9a-f]+/g, "$1"));
  try {
    writeFileSync(file, configuration("identity: {}"));
    const { parts, trouble } = await openEncryption({ beneath: await memoryStore(), on: false, given: file, reload: true, own: join(directory, "none.yaml"), isShared: false, serverId: "apiserver-x", clock, random: systemRandom, log, metrics });
    expect([typeof trouble, trouble?.()]).toEqual(["function", undefined]); // a file that comes later may name a key service
    expect(counted()).toEqual([expect.stringMatching(/^last_config_info\{apiserver_id_hash="b25b",hash="\w{4}"\} 1$/)]);
    const running = parts[0]!.run(stop.signal, () => undefined);
    writeFileSync(file, "");
    await expect.poll(() => counted().some((line) => /^automatic_reloads_total\{apiserver_id_hash="b25b",status="failure"\} ([3-9]|\d\d)/.test(line))).toBe(true);
    rmSync(file);
    await expect.poll(() => told.length).toBe(2);
    expect(told).toEqual([expect.stringContaining(`${file}: `), expect.stringContaining(`${file}: no such file`)]);
    writeFileSync(file, configuration("secretbox: {keys: [{name: a, secret: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=}]}"));
    await expect.poll(() => counted().some((line) => line === 'automatic_reloads_total{apiserver_id_hash="b25b",status="success"} 1')).toBe(true);
    stop.abort();
    await running;
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("keys that were changed while their copy could not be written are taken once it can: all is sealed anew then", async () => {
  const directory = mkdtempSync(join(tmpdir(), "encryption-")), own = join(directory, "encryption.yaml");
  const stop = new AbortController(), beneath = await memoryStore(), told: unknown[] = [];
  const key = "/registry/core/secrets/default/s", keys = ["key2", "key1"].map((name) => newKey(name, systemRandom));
  const clock = { ...systemClock, every: (_: number, signal: AbortSignal) => systemClock.every(5, signal) };
  const log = { ...silentLog, error: (message: string) => void told.push(message) };
  const name = async (): Promise<string> => Buffer.from(String((await beneath.get(key))!.value["sealed"] ?? JSON.stringify((await beneath.get(key))!.value))).toString();
  try {
    writeFileSync(own, stringify(ownConfiguration(keys.slice(1), { enabled: true })));
    const { store, parts } = await openEncryption({ beneath, on: true, given: undefined, reload: false, own, isShared: false, serverId: "apiserver-x", clock, random: systemRandom, log, metrics: metricsRegistry() });
    await store.put(key, { data: {} }, 0);
    const running = parts[0]!.run(stop.signal, () => undefined), before = await name();
    rmSync(join(directory, "copies"), { recursive: true });
    writeFileSync(join(directory, "copies"), ""); // as on a disk without room
    writeFileSync(own, stringify(ownConfiguration(keys, { enabled: true })));
    await expect.poll(() => told).toEqual(["the encryption configuration cannot be used; the one before still holds"]);
    rmSync(join(directory, "copies"));
    await expect.poll(name).not.toBe(before);
    expect(readFileSync(join(directory, "copies", "encryption.yaml"), "utf8")).toBe(readFileSync(own, "utf8"));
    expect((await store.get(key))?.value).toEqual({ data: {} });
    stop.abort();
    await running;
  } finally {
    stop.abort();
    rmSync(directory, { recursive: true });
  }
});

test("what is on its way to a slow disk while the key is replaced is under the new one before it is told that everything is", async () => {
  const directory = mkdtempSync(join(tmpdir(), "encryption-")), own = join(directory, "encryption.yaml");
  const stop = new AbortController(), memory = await memoryStore(), disk = Promise.withResolvers<void>();
  const key = "/registry/core/secrets/default/s", keys = ["key2", "key1"].map((name) => newKey(name, systemRandom));
  let begun = 0;
  const beneath: Store = { ...memory, get: (one) => memory.get(one), list: (options) => memory.list(options), async put(...given) {
    if (begun++ === 0) await disk.promise;
    return await memory.put(...given);
  } };
  const clock = { ...systemClock, every: (_: number, signal: AbortSignal) => systemClock.every(5, signal) }, read: string[] = [];
  const log = { ...silentLog, info: (message: string) => void read.push(message) };
  try {
    writeFileSync(own, stringify(ownConfiguration(keys.slice(1), { enabled: true })));
    const { store, parts } = await openEncryption({ beneath, on: true, given: undefined, reload: false, own, isShared: false, serverId: "apiserver-x", clock, random: systemRandom, log, metrics: metricsRegistry() });
    const running = parts[0]!.run(stop.signal, () => undefined);
    await expect.poll(() => existsSync(stateFile(own))).toBe(true);
    rmSync(stateFile(own));
    const put = store.put(key, { data: {} }, 0);
    writeFileSync(own, stringify(ownConfiguration(keys, { enabled: true })));
    await expect.poll(() => read).toContain("the encryption configuration was read again");
    await systemClock.sleep(50, stop.signal); // an empty store is soon looked through
    disk.resolve();
    await put;
    await expect.poll(() => existsSync(stateFile(own))).toBe(true);
    expect(JSON.parse(readFileSync(stateFile(own), "utf8"))).toMatchObject({ rows: { "k8s:enc:secretbox:v1:key2:": 1 } });
    expect(prefixOf((await memory.get(key))!.value)).toBe("k8s:enc:secretbox:v1:key2:");
    stop.abort();
    await running;
  } finally {
    stop.abort();
    rmSync(directory, { recursive: true });
  }
});

test.each([false, true])("what could not be sealed anew, as on a disk without room, is tried again (file read again: %s)", async (reload) => {
  const directory = mkdtempSync(join(tmpdir(), "encryption-")), file = join(directory, "given.yaml");
  const stop = new AbortController(), beneath = await memoryStore(), metrics = metricsRegistry();
  const key = "/registry/core/secrets/default/s";
  let uptimeMs = 0, isFull = true, tries = 0;
  const clock = { ...systemClock, uptimeMs: () => uptimeMs, every: (_: number, signal: AbortSignal) => systemClock.every(5, signal) };
  const full: Store = { ...beneath, get: (one) => beneath.get(one), list: (options) => beneath.list(options), async put(...given) {
    tries++;
    if (isFull) throw new StoreError("full");
    return await beneath.put(...given);
  } };
  try {
    await beneath.put(key, { data: {} }, 0);
    writeFileSync(file, "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources: [{resources: [secrets], providers: [secretbox: {keys: [{name: a, secret: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=}]}, identity: {}]}]\n");
    const { parts } = await openEncryption({ beneath: full, on: false, given: file, reload, own: join(directory, "none.yaml"), isShared: false, serverId: "apiserver-x", clock, random: systemRandom, log: silentLog, metrics });
    const running = parts[0]!.run(stop.signal, () => undefined);
    await expect.poll(() => tries).toBe(1);
    isFull = false;
    uptimeMs += 3_600_000;
    await expect.poll(async () => isSealed((await beneath.get(key))!.value)).toBe(true);
    expect(tries).toBe(2);
    stop.abort();
    await running;
  } finally {
    stop.abort();
    rmSync(directory, { recursive: true });
  }
});
