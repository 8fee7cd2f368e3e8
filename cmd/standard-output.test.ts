import { spawnSync } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { expect, test } from "vitest";

test.skipIf(process.platform !== "linux")("a disk without room for what is told there does not end the process", () => {
  const full = openSync("/dev/full", "w");
  const say = `
    import { standardOutput } from "${import.meta.dirname}/standard-output.ts";
    const lines = standardOutput(process.stdout);
    for (let i = 0; i < 5; i++) await lines.write("an event");
    setTimeout(() => process.exit(42), 50);
  `;
  expect(spawnSync(process.execPath, ["-e", say], { stdio: ["ignore", full, "ignore"], timeout: 60_000 }).status).toBe(42);
  closeSync(full);
});
