import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { stringify } from "yaml";
import { systemRandom } from "../core/lifecycle/random.ts";
import { backupStream, saveBackup } from "../storage/backup.ts";
import { fileHash, newKey, ownConfiguration, stateFile } from "./encryption.ts";
import { secretsEncrypt } from "./secrets-encrypt.ts";
import { snapshot } from "./snapshot.ts";

const installed = vi.hoisted(() => new Map<string, string>());
vi.mock("./config/config.ts", async (original) => ({ ...(await original<object>()), readText: (path: string) => installed.get(path) }));

test("the keys are those of the server that is installed here, wherever it was told to keep its data", async () => {
  const directory = mkdtempSync(join(tmpdir(), "secrets-encrypt-")), told: string[] = [];
  using _ = vi.spyOn(console, "log").mockImplementation((text: string) => void told.push(text));
  try {
    mkdirSync(join(directory, "server"));
    writeFileSync(join(directory, "server/encryption.yaml"), stringify(ownConfiguration([newKey("key7", systemRandom)], { enabled: true })));
    installed.set("/etc/coracle/coracle.args", `'server' '--data-dir' '${directory}' '--secrets-encryption'`);
    expect(await secretsEncrypt(["status"])).toBe(0);
    expect(told).toEqual(["Encryption: enabled", "Everything as it should be: not yet", "* secretbox  key7"]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("no key is forgotten between a restore and the start of the server: under which keys the objects are that were restored nobody knows yet", async () => {
  const directory = mkdtempSync(join(tmpdir(), "secrets-encrypt-")), own = join(directory, "server/encryption.yaml"), file = join(directory, "one.zst");
  using _ = vi.spyOn(console, "log").mockReturnValue();
  try {
    mkdirSync(join(directory, "server"));
    const text = stringify(ownConfiguration([newKey("key2", systemRandom), newKey("key1", systemRandom)], { enabled: true }));
    writeFileSync(own, text);
    writeFileSync(stateFile(own), JSON.stringify({ file: fileHash(text), at: "2026-01-01T00:00:00.000Z", rewritten: 1, rows: { "k8s:enc:secretbox:v1:key2:": 1 } }));
    await saveBackup(await backupStream({ list: async () => ({ rows: [], revision: 7 }) } as never), file);
    await snapshot(["restore", file, "--data-dir", directory, "--keep-keys"]);
    await expect(secretsEncrypt(["prune", "--data-dir", directory])).rejects.toThrow("not yet");
  } finally {
    rmSync(directory, { recursive: true });
  }
});
