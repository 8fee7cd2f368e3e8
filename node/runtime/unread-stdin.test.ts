import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { silentLog } from "../../core/observe/log.ts";
import { readUnreadStdin } from "./unread-stdin.ts";

const looks = (count: number) => ({ async *every() { for (let i = 0; i < count; i++) { yield; await Bun.sleep(20); } } });

test.skipIf(process.platform !== "linux")("what a command has not read when it ends is read; of one that runs, or has left its stdin to another, nothing is", async () => {
  const state = mkdtempSync(join(tmpdir(), "stdin-")), socket = join(state, "containerd.sock");
  const program = join(state, "containerd-shim-runc-v2");
  copyFileSync("/bin/bash", program);
  const started: ChildProcess[] = [];
  /** A pod of one container with a command, whose stdin is full. `reads`: it has left somebody behind who has it; `beside`: so runs one in another container. */
  const pod = async (container: string, { runs = false, reads = false, beside = false }): Promise<ChildProcess> => {
    const task = join(state, "io.containerd.runtime.v2.task/k8s.io", container), io = join(state, "io.containerd.grpc.v1.cri/containers", container, "io");
    for (const directory of [join(task), join(io, "1"), join(io, "2")]) mkdirSync(directory, { recursive: true });
    const shim = spawn(program, ["-c", `exec 5> >(exec sleep 1000); init=$!; ${reads || beside ? "exec 6> >(exec sleep 1000);" : ""} echo $init $!; wait`, "shim", "-id", `${container}-pod`, "-address", socket], { cwd: task, detached: true, stdio: ["ignore", "pipe", "ignore"] });
    started.push(shim);
    const [init = "", other = ""] = String((await once(shim.stdout!, "data"))[0]).trim().split(" ");
    for (const [name, file, pid] of [[container, "init.pid", init], ...(beside ? [[`${container}-beside`, "other.pid", other]] as const : [])] as const) {
      mkdirSync(join(task, "..", name), { recursive: true });
      writeFileSync(join(task, "..", name, file), pid);
      writeFileSync(join(task, "..", name, "sandbox"), `${container}-pod`);
    }
    const command = spawn("sleep", [runs ? "1000" : "0"], { detached: true });
    started.push(command);
    writeFileSync(join(task, "command.pid"), String(command.pid));
    if (!runs) await once(command, "exit");
    for (const name of [`1/${container}-stdin`, "2/command-stdin"]) execFileSync("mkfifo", [join(io, name)]);
    const writer = spawn("bash", ["-c", `exec 3<>${join(io, "2/command-stdin")}; head -c 90000 /dev/zero >&3; echo written`], { detached: true, stdio: ["ignore", "pipe", "ignore"] });
    started.push(writer);
    return writer;
  };
  try {
    const [ended, besides, runs, readOn] = [await pod("ended", {}), await pod("besides", { beside: true }), await pod("runs", { runs: true }), await pod("read-on", { reads: true })];
    await Bun.sleep(200); // until what is written fills the pipes
    const written = [ended, besides].map((writer) => once(writer.stdout!, "data"));
    await readUnreadStdin({ state, socket }, { clock: looks(5), log: silentLog }, new AbortController().signal);
    expect((await Promise.all(written)).map(String)).toEqual(["written\n", "written\n"]);
    expect([runs.exitCode, readOn.exitCode]).toEqual([null, null]);
  } finally {
    for (const { pid, exitCode } of started) if (exitCode === null) process.kill(-pid!, "SIGKILL");
    rmSync(state, { recursive: true });
  }
});
