import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemMounts } from "../../os/mount.ts";
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

test.skipIf(process.getuid?.() !== 0)("what is mounted in it stays as it is, though nobody knew", async () => {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "tree-"))), volume = join(directory, "volume"), mounted = join(directory, "pod/volumes/v");
  mkdirSync(volume);
  writeFileSync(join(volume, "file"), "x");
  mkdirSync(mounted, { recursive: true });
  systemMounts().bind(volume, mounted);
  await expect(removeTree(join(directory, "pod"))).rejects.toThrow(`still mounted: ${mounted}`);
  expect(readdirSync(volume)).toEqual(["file"]);
  systemMounts().unmount(mounted);
  await removeTree(join(directory, "pod"));
  rmSync(directory, { recursive: true });
});

test("who swaps directories for links while they are removed has nothing else removed", async () => {
  const directory = mkdtempSync(join(tmpdir(), "tree-")), kept = join(directory, "kept");
  mkdirSync(kept);
  for (let i = 0; i < 50; i++) writeFileSync(join(kept, `file-${i}`), "x");
  const swapping = spawn(process.execPath, ["-e", SWAPS, directory], { env: { ...process.env, BUN_BE_BUN: "1" }, stdio: ["ignore", "pipe", "inherit"] });
  await once(swapping.stdout, "data");
  for (let tries = 0; tries < 300; tries++) {
    await removeTree(join(directory, "pod")).catch((error: NodeJS.ErrnoException) => expect(["EISDIR", "ENOTDIR", "ENOTEMPTY", "EPERM"]).toContain(error.code));
    if (readdirSync(kept).length < 50) break;
  }
  swapping.kill();
  await once(swapping, "exit");
  expect(readdirSync(kept).length).toBe(50);
  await removeTree(join(directory, "pod"));
  expect(existsSync(join(directory, "pod"))).toBe(false);
  rmSync(directory, { recursive: true });
});

/** In the directory it is told, for as long as it lives. */
const SWAPS = `
  const fs = require("node:fs"), at = process.argv.at(-1), pod = at + "/pod", quietly = (work) => { try { work(); } catch {} };
  for (let i = 0; ; i = (i + 1) % 64) {
    const one = pod + "/d" + i;
    quietly(() => fs.mkdirSync(pod));
    if (i === 0) quietly(() => fs.writeSync(1, "."));
    try {
      fs.rmdirSync(one);
      quietly(() => fs.symlinkSync(at + "/kept", one));
    } catch {
      quietly(() => fs.unlinkSync(one));
      quietly(() => fs.mkdirSync(one));
    }
  }`;

test("a link in the directory's place is not followed", async () => {
  const directory = mkdtempSync(join(tmpdir(), "tree-"));
  mkdirSync(join(directory, "kept/inner"), { recursive: true });
  symlinkSync(join(directory, "kept"), join(directory, "pod"));
  await expect(removeTree(join(directory, "pod"))).rejects.toThrow();
  expect(existsSync(join(directory, "kept/inner"))).toBe(true);
  rmSync(directory, { recursive: true });
});
