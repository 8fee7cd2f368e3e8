import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";

const say = `
  import { endWithReader } from "${import.meta.dirname}/gone-reader.ts";
  endWithReader(process);
  for (let i = 0; i < 60_000; i++) { process.stdout.write("a line\\n"); await Bun.sleep(1); }
`;

test.skipIf(process.platform !== "linux").each([
  ["whose reader has gone ends without a word", "| head -1", { stdout: "a line\n141\n", stderr: "" }],
  ["whose output finds no room says so", ">/dev/full", { stdout: "1\n", stderr: "coracle: standard output: ENOSPC: no space left on device, write\n" }],
])("a command %s", (_, where, told) => {
  const { stdout, stderr } = spawnSync("bash", ["-c", `"$0" -e "$1" ${where}; echo "\${PIPESTATUS[0]}"`, process.execPath, say], { encoding: "utf8", timeout: 60_000 });
  expect({ stdout, stderr }).toEqual(told);
});
