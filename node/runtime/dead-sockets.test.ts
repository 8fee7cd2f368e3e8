import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { silentLog } from "../../core/observe/log.ts";
import { removeDeadSockets } from "./dead-sockets.ts";

test.skipIf(process.platform !== "linux")("what a killed shim leaves is removed when it is found twice; what somebody listens on stays", async () => {
  const directory = mkdtempSync(join(tmpdir(), "sockets-"));
  const living = createServer().listen(join(directory, "living"));
  await once(living, "listening");
  const killed = spawn(process.execPath, ["-e", `require("node:net").createServer().listen(${JSON.stringify(join(directory, "killed"))}, () => console.log("up"))`], { stdio: ["ignore", "pipe", "ignore"] });
  try {
    await once(killed.stdout, "data");
    killed.kill("SIGKILL");
    await once(killed, "exit");
    const looks: string[][] = [];
    const clock = { async *every() { for (let look = 0; look < 3; look++) { looks.push(readdirSync(directory).toSorted()); yield; } } };
    await removeDeadSockets({ directory }, { clock, log: silentLog }, new AbortController().signal);
    expect(looks).toEqual([["killed", "living"], ["killed", "living"], ["living"]]);
  } finally {
    living.close();
    rmSync(directory, { recursive: true });
  }
});
