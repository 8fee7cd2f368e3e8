import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemClock } from "../core/lifecycle/clock.ts";
import { type Log, silentLog } from "../core/observe/log.ts";
import { adminKubeconfig } from "./admin-kubeconfig.ts";

let directory: string;
beforeAll(() => { directory = mkdtempSync(join(tmpdir(), "admin-")); });
afterAll(() => rmSync(directory, { recursive: true }));

const content = () => ({ server: "https://127.0.0.1:6443", certificateAuthorityPem: "CA", user: { token: "t" } });

test("it is there with its mode, and one that is as it should be is not touched: a disk that can only be read is no reason not to start", async () => {
  const path = join(directory, "etc/admin.yaml");
  const file = adminKubeconfig({ path, mode: 0o640, content }, { clock: systemClock, log: silentLog });
  await file.write();
  expect([readFileSync(path, "utf8").includes('token: "t"'), statSync(path).mode & 0o777]).toEqual([true, 0o640]);
  const { ctimeMs } = statSync(path);
  await file.write();
  expect(statSync(path).ctimeMs).toBe(ctimeMs); // which a chmod would change, too
  chmodSync(path, 0o600);
  await file.write();
  expect(statSync(path).mode & 0o777).toBe(0o640);
});

test("where none can be written the server ends if there is none, and goes on with an old one, which is told and tried again, whatever becomes of it", async () => {
  const path = join(directory, "old.yaml"), told: string[] = [], stop = new AbortController();
  const log: Log = { ...silentLog, error: (message, fields) => void told.push(`${message}: ${((fields!["error"] as Error).cause as Error).message}`) };
  let tries = 0, isReady = false;
  const clock = { ...systemClock, sleep: async () => { expect(isReady).toBe(true); } };
  const put = async (): Promise<void> => { rmSync(path, { force: true }); if (++tries < 3) throw new Error("EROFS: read-only file system"); stop.abort(); };
  const run = (): Promise<void> => adminKubeconfig({ path, mode: 0o600, content }, { clock, log, put }).run(stop.signal, () => { isReady = true; });
  await expect(run()).rejects.toThrow(`the administrator's kubeconfig cannot be written to ${path}: choose another place`);
  expect([isReady, existsSync(path)]).toEqual([false, false]);

  await adminKubeconfig({ path, mode: 0o600, content }, { clock, log }).write();
  tries = 0;
  await run();
  expect([tries, told]).toEqual([3, Array.from({ length: 2 }, () => "the administrator's kubeconfig is an old one, which will not be good for ever: trying again: EROFS: read-only file system")]);
});
