import { linkSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { directoryUsage } from "./disk-usage.ts";

const signal = new AbortController().signal;

test("files count once, links are not followed, what is not there has nothing", async () => {
  const directory = mkdtempSync(join(tmpdir(), "usage-"));
  mkdirSync(join(directory, "d"));
  writeFileSync(join(directory, "d/file"), Buffer.alloc(100_000, 1));
  linkSync(join(directory, "d/file"), join(directory, "same"));
  symlinkSync("/", join(directory, "root"));
  const { bytes, inodes } = await directoryUsage(directory, signal);
  expect([bytes >= 100_000 && bytes < 150_000, inodes]).toEqual([true, 4]);
  expect(await directoryUsage(join(directory, "none"), signal)).toEqual({ bytes: 0, inodes: 0 });
  spawnSync("rm", ["-rf", directory]);
});

test("a pod that nests its directories deeper than a name may be long is counted, and fails nobody's figures", async () => {
  const directory = mkdtempSync(join(tmpdir(), "usage-"));
  const name = "x".repeat(200);
  spawnSync("sh", ["-c", `cd "$1"; i=0; while [ $i -lt 60 ]; do mkdir ${name} && cd -P ${name} || exit 1; i=$((i + 1)); done; head -c 100000 /dev/zero > deep`, "sh", directory]);
  const { bytes, inodes } = await directoryUsage(directory, signal);
  expect([inodes, bytes >= 100_000]).toEqual([62, true]);
  spawnSync("rm", ["-rf", directory]);
});
