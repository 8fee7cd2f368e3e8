/** install.ps1 and uninstall.ps1, run by a PowerShell on a machine that only pretends (scripts.test.ps1), where there is a PowerShell. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const PWSH = Bun.which("pwsh");
if (PWSH === null) console.warn("installers/windows: there is no pwsh, the scripts are not run");

test.each(["install.ps1", "uninstall.ps1"])("%s is ASCII: Windows PowerShell takes a file without a byte order mark for its code page's", (name) => {
  expect(readFileSync(join(import.meta.dirname, name), "utf8").match(/[^\x00-\x7f].*/g)).toBeNull();
});

test.skipIf(PWSH === null || process.platform === "win32")("installs, upgrades, refuses and takes everything away again", { timeout: 300_000 }, () => {
  const { status, stdout, stderr } = spawnSync(PWSH!, ["-NoProfile", "-NonInteractive", "-File", join(import.meta.dirname, "scripts.test.ps1")], { encoding: "utf8" });
  expect({ status, failed: `${stdout}${stderr}`.split("\n").filter((line) => !line.startsWith("ok ")) }).toEqual({ status: 0, failed: ["0 failed", ""] });
});
