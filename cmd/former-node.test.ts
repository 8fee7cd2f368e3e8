import { spawn } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { eventually } from "../test/eventually.ts";
import { tellOfFormerNode } from "./former-node.ts";

test.skipIf(process.platform !== "linux")("a server without a node says that the pods of the node that was there go on", async () => {
  const directories = [1, 2].map(() => realpathSync(mkdtempSync(join(tmpdir(), "former-")))), [dataDir = "", other = ""] = directories;
  const told: unknown[] = [], log = { warn: (_: string, facts: object) => void told.push(facts) };
  const shim = spawn("sh", ["-c", "sleep 60; :", "-address", join(dataDir, "agent/run/containerd.sock")], { argv0: "/bin/containerd-shim-runc-v2", stdio: "ignore" });
  try {
    tellOfFormerNode({ dataDir: other }, log as never);
    expect(told).toEqual([]);
    await eventually("it is told of", async () => {
      tellOfFormerNode({ dataDir }, log as never);
      return told.length > 0;
    });
    expect(told).toEqual([{ pods: 1 }]);
  } finally {
    shim.kill("SIGKILL");
    for (const directory of directories) rmSync(directory, { recursive: true });
  }
});
