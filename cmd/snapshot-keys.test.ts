import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { systemClock } from "../core/lifecycle/clock.ts";
import { systemRandom } from "../core/lifecycle/random.ts";
import { silentLog } from "../core/observe/log.ts";
import { formatJoinToken } from "../core/pki/join-token.ts";
import { openPki } from "../core/pki/pki.ts";
import type { SealedBundle } from "../core/pki/shared-bundle.ts";
import { inspectBackup, saveBackup } from "../storage/backup.ts";
import { paths as pathsIn } from "./paths.ts";
import { planKeys } from "./snapshot-keys.ts";
import { KEYS_ROW, takeSnapshot } from "./snapshot-path.ts";

const directory = mkdtempSync(join(tmpdir(), "snapshot-keys-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

test("the file an administrator's encryption is told by goes along, sealed, and is put where the server can be told of it", async () => {
  const given = join(directory, "providers.yaml"), file = join(directory, "one.zst"), secret = "s".repeat(32);
  writeFileSync(given, "kind: EncryptionConfiguration # key-of-mine");
  const store = { list: async () => ({ rows: [], revision: 7, more: false }) } as never;
  await saveBackup(await takeSnapshot({ store, paths: pathsIn(join(directory, "lost")), providerFile: given, secret, settings: { "cluster-cidr": "10.42.7.1/16" }, random: systemRandom }), file);
  expect(Bun.zstdDecompressSync(readFileSync(file)).toString()).not.toContain("key-of-mine");
  const sealed = (await inspectBackup(file)).find(KEYS_ROW) as SealedBundle;
  const paths = pathsIn(join(directory, "new"));
  const plan = async (providerFile: string | undefined, secrets = [secret]) => await planKeys({ paths, providerFile, sealed, secrets, stamp: "then", settings: { "cluster-cidr": "10.42.0.0/16" } });
  await expect(plan(given, ["another"])).rejects.toThrow("--token must be the one that the snapshot's cluster had then");
  expect((await plan(given, ["another", secret])).told).toContain("the cluster's keys"); // it has been given another one since
  expect((await plan(given)).flags).toEqual([]); // this server has it
  const { flags, apply } = await plan(undefined);
  expect(flags).toEqual([`--kube-apiserver-arg encryption-provider-config=${paths.restoredProviders}`]);
  await apply();
  expect(readFileSync(paths.restoredProviders, "utf8")).toContain("key-of-mine");
  writeFileSync(paths.restoredProviders, "another");
  await (await plan(undefined)).apply();
  writeFileSync(paths.restoredProviders, "a third");
  await (await plan(undefined)).apply(); // within the same second
  expect(["", ".before-then", ".before-then-2"].map((ending) => readFileSync(paths.restoredProviders + ending, "utf8"))).toEqual([expect.stringContaining("key-of-mine"), "another", "a third"]);
});

test("a machine that becomes a server of the snapshot's cluster has its token, whatever it had before; one that is one keeps its own, which may be a newer one", async () => {
  const then = pathsIn(join(directory, "then")), file = join(directory, "two.zst"), secret = "s".repeat(32);
  await openPki({ dir: then.tls, names: () => ({ nodeName: "n", nodeIps: [], serviceIps: ["10.43.0.1"], clusterDomain: "cluster.local", extra: [] }), clock: systemClock, random: systemRandom, log: silentLog, releasedMs: 0 });
  const store = { list: async () => ({ rows: [], revision: 7, more: false }) } as never;
  await saveBackup(await takeSnapshot({ store, paths: then, providerFile: undefined, secret, settings: {}, random: systemRandom }), file);
  const sealed = (await inspectBackup(file)).find(KEYS_ROW) as SealedBundle;
  const now = pathsIn(join(directory, "now")), ours = formatJoinToken(readFileSync(join(then.tls, "server-ca.crt"), "utf8"), secret);
  const restored = async (had: string): Promise<string> => {
    mkdirSync(now.server, { recursive: true });
    writeFileSync(now.token, had);
    await (await planKeys({ paths: now, providerFile: undefined, sealed, secrets: [secret], stamp: "then", settings: {} })).apply();
    return readFileSync(now.token, "utf8").trim();
  };
  expect([await restored("another cluster's"), readFileSync(`${now.token}.before-then`, "utf8")]).toEqual([ours, "another cluster's"]);
  expect(await restored("newer")).toBe("newer");
  rmSync(now.tls, { recursive: true });
  rmSync(now.token);
  await (await planKeys({ paths: now, providerFile: undefined, sealed, secrets: [secret], stamp: "then", settings: {} })).apply();
  expect(readFileSync(now.token, "utf8").trim()).toBe(ours);
});
