import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { removeTree } from "./remove-tree.ts";

test("a directory goes with all that is in it, however deep, and nothing else", async () => {
  const directory = mkdtempSync(join(tmpdir(), "tree-"));
  const root = join(directory, "pod");
  mkdirSync(join(root, "a/b"), { recursive: true });
  mkdirSync(join(directory, "kept"));
  writeFileSync(join(directory, "kept/file"), "x");
  mkdirSync(join(root, "z"));
  for (let i = 0; i < 3; i++) mkdirSync(join(root, `.removed-${i}/full`), { recursive: true }); // names of ours
  symlinkSync(join(directory, "kept"), join(root, "a/link"));
  const name = "d".repeat(200);
  spawnSync("sh", ["-c", `cd "$1"; i=0; while [ $i -lt 60 ]; do mkdir ${name} && cd -P ${name} || exit 1; i=$((i + 1)); done; echo x > deep`, "sh", join(root, "a/b")]);
  await removeTree(root);
  expect([existsSync(root), readFileSync(join(directory, "kept/file"), "utf8")]).toEqual([false, "x"]);
  await removeTree(root); // it is gone
  rmSync(directory, { recursive: true });
});
