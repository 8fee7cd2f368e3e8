/** What tests put into the directory for temporary files is gone after them: they have one of their own. vitest calls this before it starts workers, which inherit the environment. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export default function setUp(): () => void {
  const directory = mkdtempSync(join(tmpdir(), "t-")); // short: the paths of sockets below it have their limit
  process.env["TMPDIR"] = directory;
  return () => rmSync(directory, { recursive: true, force: true });
}
