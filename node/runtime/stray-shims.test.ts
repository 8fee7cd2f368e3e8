import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { silentLog } from "../../core/observe/log.ts";
import { isAlive, type ProcessIdentity } from "./process-identity.ts";
import { endStrayShims, strayShims } from "./stray-shims.ts";

test.skipIf(process.platform !== "linux")("a shim whose task's directory is gone is a stray; one of another containerd is not ours", async () => {
  const directory = mkdtempSync(join(tmpdir(), "shims-"));
  const program = join(directory, "containerd-shim-runc-v2"), socket = join(directory, "containerd.sock");
  copyFileSync("/bin/bash", program);
  const shims = (["lost", "kept", "foreign"] as const).map((id) => {
    const cwd = join(directory, id);
    mkdirSync(cwd);
    // with a child, as a shim has; what comes after the script is what a shim is started with
    return spawn(program, ["-c", "sh -c 'echo up; exec sleep 1000' & wait", "shim", "-namespace", "k8s.io", "-id", id, "-address", id === "foreign" ? "/another.sock" : socket], { cwd, detached: true, stdio: ["ignore", "pipe", "ignore"] });
  });
  try {
    await Promise.all(shims.map((shim) => once(shim.stdout!, "data")));
    for (const id of ["lost", "foreign"]) rmSync(join(directory, id), { recursive: true });
    expect(strayShims(socket).map(({ id }) => id)).toEqual(["lost"]);
    const [lost] = strayShims(socket);
    expect(isAlive(lost!)).toBe(true);
    const clock = { async *every() { yield; yield; } };
    await endStrayShims({ socket }, { clock, log: silentLog }, new AbortController().signal);
    await Promise.all([once(shims[0]!, "exit"), once(shims[0]!.stdout!, "close")]); // its child had the pipe as well
    expect([strayShims(socket), shims[1]!.exitCode, shims[2]!.exitCode]).toEqual([[], null, null]);
  } finally {
    for (const shim of shims.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)) process.kill(-shim.pid!, "SIGKILL");
    rmSync(directory, { recursive: true });
  }
});

test("who is found twice is ended; who is about to end is left to it, and so is another process of the same number", async () => {
  const stray = (pid: number, startTicks: number) => ({ pid, startTicks, id: String(pid) });
  const looks = [[stray(1, 1)], [stray(2, 2), stray(3, 3)], [stray(2, 2), stray(3, 4)], []];
  const ended: ProcessIdentity[] = [];
  const clock = { async *every() { for (const _ of [...looks]) yield; } };
  await endStrayShims({ socket: "", find: () => looks.shift() ?? [], end: (process) => ended.push(process) }, { clock, log: silentLog }, new AbortController().signal);
  expect(ended).toEqual([stray(2, 2)]);
});
