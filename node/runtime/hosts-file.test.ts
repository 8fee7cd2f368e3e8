import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { silentLog } from "../../core/observe/log.ts";
import { ensureHostsFile } from "./hosts-file.ts";

test("a machine without a hosts file gets one, for no pod starts without; one that is there stays, and where none can be written it is told", () => {
  const directory = mkdtempSync(join(tmpdir(), "hosts-file-"));
  const path = join(directory, "hosts");
  const told: string[] = [];
  const log = { ...silentLog, error: (message: string) => void told.push(message) };
  ensureHostsFile(path, log);
  expect(readFileSync(path, "utf8")).toContain("127.0.0.1 localhost\n");
  writeFileSync(path, "10.0.0.1 mine\n");
  ensureHostsFile(path, log);
  expect(readFileSync(path, "utf8")).toBe("10.0.0.1 mine\n");
  expect(told).toEqual([]);
  ensureHostsFile(join(directory, "none/hosts"), log);
  expect(told).toEqual(["this machine has no hosts file, and none can be written: no pod starts until there is one"]);
  rmSync(directory, { recursive: true });
});
