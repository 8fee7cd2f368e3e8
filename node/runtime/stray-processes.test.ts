import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { silentLog } from "../../core/observe/log.ts";
import type { Cri } from "../cri/client.ts";
import { parentOf } from "./process-identity.ts";
import { containersIn, endStrayProcesses } from "./stray-processes.ts";

const ONE = "ae5150afcb02a2c10a0a28b8f713d05ae01ddd30088206588abb1e2acdf593cf", OTHER = "f3b1545d92b4f718fe26509057c4c89585f52fa8ca1facacaffadeeb83922fc6";

test.each<[string, readonly string[]]>([
  [`9:name=systemd:/kubepods/besteffort/pod4988ee63-f93a-412d-8866-8bd28e23ba85/${ONE}\n0::/kubepods/besteffort/pod4988ee63-f93a-412d-8866-8bd28e23ba85/${ONE}\n`, [ONE]],
  [`0::/kubepods.slice/kubepods-pod4988ee63.slice/cri-containerd-${ONE}.scope\n`, [ONE]],
  [`0::/kubepods/pod4988ee63/${ONE}/docker/${OTHER}/init.scope\n`, [ONE, OTHER]],
  [`0::/k8s.io/${ONE}\n`, []],
  ["0::/system.slice/ssh.service\n", []],
])("whose control group it is: %j", (text, ids) => expect(containersIn(text)).toEqual(ids));

test.skipIf(process.platform !== "linux")("a process of a container that has ended, or that nobody knows, is ended beside those of containers that run, are to, or are no containers", async () => {
  const directory = mkdtempSync(join(tmpdir(), "shims-"));
  const program = join(directory, "containerd-shim-runc-v2"), socket = join(directory, "containerd.sock");
  copyFileSync("/bin/bash", program);
  mkdirSync(join(directory, "box"));
  const names = ["box", "runs", "made", "ended", "unknown", "within", "none"];
  // a child for each, as a shim has; what comes after the script is what a shim is started with
  const shim = spawn(program, ["-c", `for i in ${names.join(" ")}; do sleep 1000 & pids="$pids $!"; done; echo $pids; wait`, "shim", "-namespace", "k8s.io", "-id", "box", "-address", socket], { cwd: join(directory, "box"), detached: true, stdio: ["ignore", "pipe", "ignore"] });
  try {
    const pids = String((await once(shim.stdout!, "data"))[0]).trim().split(" ").map(Number);
    const containersOf = (pid: number): readonly string[] => {
      const name = names[pids.indexOf(pid)]!;
      return name === "none" ? [] : name === "within" ? ["runs", "within"] : [name];
    };
    const cri = { call: async (method: string) => (method.endsWith("ListContainers") ? { containers: [{ id: "runs", state: "CONTAINER_RUNNING" }, { id: "made" }, { id: "ended", state: "CONTAINER_EXITED" }] } : { items: [{ id: "box", state: "SANDBOX_NOTREADY" }] }) } as unknown as Pick<Cri, "call">;
    const warned: unknown[] = [];
    const look = (times: number): Promise<void> => endStrayProcesses({ socket, containersOf }, { cri, clock: { async *every() { for (let i = 0; i < times; i++) yield; } }, log: { ...silentLog, warn: (_: string, facts?: object) => void warned.push(facts) } }, new AbortController().signal);
    const alive = (): string[] => names.filter((_, i) => parentOf(pids[i]!) === shim.pid);
    await look(1);
    expect(alive()).toEqual(names); // it may be about to end
    await look(2);
    await expect.poll(alive).toEqual(["box", "runs", "made", "within", "none"]);
    expect(warned).toEqual(["ended", "unknown"].map((id) => ({ id, sandbox: "box", pid: pids[names.indexOf(id)] })));
  } finally {
    process.kill(-shim.pid!, "SIGKILL");
    rmSync(directory, { recursive: true });
  }
});
