import { mkdirSync, mkdtempSync, readlinkSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { silentLog } from "../../core/observe/log.ts";
import { systemMounts } from "../os/mount.ts";
import { knownPath, wellKnownDirectory } from "./well-known-directory.ts";

let root = "", ours = "", usual = "";
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "well-known-")));
  [ours, usual] = [join(root, "ours"), join(root, "var/usual")];
  mkdirSync(ours);
});
afterEach(() => {
  if (process.getuid?.() === 0) systemMounts().unmountAll(root);
  rmSync(root, { recursive: true });
});

const known = () => wellKnownDirectory(ours, { path: usual, log: silentLog });

test("the usual place becomes a link to ours, and stays one", async () => {
  expect([await known(), await known(), readlinkSync(usual), knownPath(join(ours, "pods/a"), ours, usual)]).toEqual([usual, usual, ours, join(usual, "pods/a")]);
});

test("a link by another name of ours is ours", async () => {
  symlinkSync(root, join(root, "other"));
  mkdirSync(join(root, "var"));
  symlinkSync(join(root, "other/ours"), usual);
  expect(await known()).toBe(usual);
});

test("another's is left alone", async () => {
  mkdirSync(usual, { recursive: true });
  writeFileSync(join(usual, "file"), "");
  expect(await known()).toBe(ours);
  rmSync(usual, { recursive: true });
  symlinkSync(root, usual);
  expect([await known(), knownPath(join(ours, "pods/a"), ours, ours)]).toEqual([ours, join(ours, "pods/a")]);
});

test.skipIf(process.platform !== "linux" || process.getuid?.() !== 0)("ours, mounted at the usual place, is ours", async () => {
  mkdirSync(usual, { recursive: true });
  systemMounts().bind(ours, usual);
  expect(await known()).toBe(usual);
});
