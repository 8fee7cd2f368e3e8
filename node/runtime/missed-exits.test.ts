import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { silentLog } from "../../core/observe/log.ts";
import type { Cri } from "../cri/client.ts";
import { endShimsThatMissedExits } from "./missed-exits.ts";
import { parentOf } from "./process-identity.ts";

interface Started { readonly id: string; readonly shim: ChildProcess; readonly pause: number; readonly app: number }

const twoLooks = { async *every() { yield; yield; } };

test.skipIf(process.platform !== "linux")("a shim that has not told of an end is ended with what is left of its pod; one whose containers live, have been told of or are not containerd's is left", async () => {
  const directory = mkdtempSync(join(tmpdir(), "shims-"));
  const program = join(directory, "containerd-shim-runc-v2"), socket = join(directory, "containerd.sock");
  copyFileSync("/bin/bash", program);
  const task = (id: string, pid: number, sandbox?: string): void => {
    mkdirSync(join(directory, id), { recursive: true });
    if (pid > 0) writeFileSync(join(directory, id, "init.pid"), String(pid));
    if (sandbox) writeFileSync(join(directory, id, "sandbox"), sandbox);
  };
  // each with two children, as a shim has; what comes after the script is what a shim is started with
  const shims = await Promise.all(["hangs", "well", "told", "foreign"].map(async (id): Promise<Started> => {
    mkdirSync(join(directory, id));
    const shim = spawn(program, ["-c", "sleep 1000 & pause=$!; sleep 1000 & echo $pause $!; wait", "shim", "-namespace", "k8s.io", "-id", id, "-address", id === "foreign" ? "/another.sock" : socket], { cwd: join(directory, id), detached: true, stdio: ["ignore", "pipe", "ignore"] });
    const [pause = 0, app = 0] = String((await once(shim.stdout!, "data"))[0]).split(" ").map(Number);
    task(id, pause);
    task(`${id}-app`, app, id);
    return { id, shim, pause, app };
  }));
  const [hangs, well, told, foreign] = shims as [Started, Started, Started, Started];
  const running = ["hangs", "hangs-app", "well", "well-app", "well-starts", "told", "foreign", "foreign-app"];
  const cri = { call: async (method: string) => (method.endsWith("ListContainers") ? { containers: running.filter((id) => id.includes("-")).map((id) => ({ id })) } : { items: running.filter((id) => !id.includes("-")).map((id) => ({ id })) }) } as unknown as Pick<Cri, "call">;
  try {
    task("well-starts", 0, "well"); // it has no process yet
    for (const { shim, app } of [hangs, told, foreign]) {
      shim.kill("SIGSTOP"); // it hears of nothing
      process.kill(app, "SIGKILL");
      await expect.poll(() => parentOf(app)).toBeUndefined();
    }
    const warned: unknown[] = [];
    const log = { ...silentLog, warn: (_: string, facts?: object) => void warned.push(facts) };
    await endShimsThatMissedExits({ socket }, { cri, clock: twoLooks, log }, new AbortController().signal);
    await expect.poll(() => [hangs.shim.signalCode, parentOf(hangs.pause)]).toEqual(["SIGKILL", undefined]);
    expect(warned).toEqual([{ id: "hangs-app", sandbox: "hangs", pid: hangs.shim.pid }]);
    expect([well, told, foreign].map(({ shim }) => [shim.exitCode, shim.signalCode])).toEqual([[null, null], [null, null], [null, null]]);
  } finally {
    for (const { shim } of shims.filter(({ shim }) => shim.exitCode === null && shim.signalCode === null)) process.kill(-shim.pid!, "SIGKILL");
    rmSync(directory, { recursive: true });
  }
});
