import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { systemRandom } from "../core/lifecycle/random.ts";
import type { SealedBundle } from "../core/pki/shared-bundle.ts";
import { inspectBackup, saveBackup } from "../storage/backup.ts";
import { paths as pathsIn } from "./paths.ts";
import { planKeys } from "./snapshot-keys.ts";
import { KEYS_ROW, takeSnapshot } from "./snapshot-path.ts";

const directory = mkdtempSync(join(tmpdir(), "snapshot-keys-"));
afterEach(() => rmSync(directory, { recursive: true, force: true }));

test("the file an administrator's encryption is told by goes along, sealed, and is put where the server can be told of it", async () => {
  const given = join(directory, "providers.yaml"), file = join(directory, "one.zst"), secret = "s".repeat(32);
  writeFileSync(given, "kind: EncryptionConfiguration # key-of-mine");
  const store = { list: async () => ({ rows: [], revision: 7, more: false }) } as never;
  await saveBackup(await takeSnapshot({ store, paths: pathsIn(join(directory, "lost")), providerFile: given, secret, settings: { "cluster-cidr": "10.42.7.1/16" }, random: systemRandom }), file);
  expect(Bun.zstdDecompressSync(readFileSync(file)).toString()).not.toContain("key-of-mine");
  const sealed = (await inspectBackup(file)).find(KEYS_ROW) as SealedBundle;
  const paths = pathsIn(join(directory, "new"));
  const plan = async (providerFile: string | undefined) => await planKeys({ paths, providerFile, sealed, secret, stamp: "then", settings: { "cluster-cidr": "10.42.0.0/16" } });
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
