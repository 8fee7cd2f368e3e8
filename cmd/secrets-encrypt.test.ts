import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { stringify } from "yaml";
import { systemRandom } from "../core/lifecycle/random.ts";
import { newKey, ownConfiguration } from "./encryption.ts";
import { secretsEncrypt } from "./secrets-encrypt.ts";

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
