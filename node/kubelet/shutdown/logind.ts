/**
 * systemd's logind: asked to wait for us before the machine goes down, and listened to.
 *
 * Both by systemd's own programs, which hold the lock and the bus for us: a lock is a file descriptor that comes over the bus, which we cannot receive.
 * They end with us, however we end: a lock that nobody is left to release would hold every later shutdown up for as long as logind waits.
 *
 * API: https://www.freedesktop.org/wiki/Software/systemd/inhibit/
 */
import { type ChildProcess, type ChildProcessByStdio, spawn } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { aborted } from "../../../core/lifecycle/aborted.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { Exec } from "../../os/exec.ts";
import type { ShutdownNotices } from "./shutdown.ts";

const CONFIGURATION = "/etc/systemd/logind.conf.d";
const RETRY_MS = 10_000;
/** Its configuration is read in its own time. Source: nodeshutdown_manager_linux.go */
const READ_MS = [100, 200, 400, 800, 1600];

export function logindNotices({ exec, clock, log, configuration = CONFIGURATION }: { readonly exec: Exec; readonly clock: Clock; readonly log: Log; readonly configuration?: string | undefined }): ShutdownNotices {
  async function limitMs(signal: AbortSignal): Promise<number> {
    const { stdout } = await exec("busctl", ["get-property", "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager", "InhibitDelayMaxUSec"], { signal });
    return Number(stdout.trim().split(" ")[1]) / 1000;
  }

  /** It waits no longer than its own limit for anybody: which is raised to what we need. */
  async function raiseLimit(delayMs: number, signal: AbortSignal): Promise<void> {
    if ((await limitMs(signal)) >= delayMs) return;
    mkdirSync(configuration, { recursive: true });
    writeFileSync(join(configuration, "99-kubelet.conf"), `# Kubelet logind override, by Coracle\n[Login]\nInhibitDelayMaxSec=${Math.ceil(delayMs / 1000)}\n`);
    await exec("systemctl", ["kill", "-s", "HUP", "systemd-logind"], { signal });
    for (const ms of READ_MS) {
      if ((await limitMs(signal)) >= delayMs) return;
      await clock.sleep(ms, signal);
    }
    log.warn("logind does not wait for pods as long as shutdownGracePeriod says: another file of its configuration says less (InhibitDelayMaxSec)", { wantedMs: delayMs, directory: configuration });
  }

  /** The lock is held while the child lives: until it is killed, or nobody has the other end of its input any more. */
  function inhibit(): ChildProcess {
    return spawn("systemd-inhibit", ["--what=shutdown", "--mode=delay", "--who=kubelet", "--why=Kubelet needs time to handle node shutdown", "cat"], { stdio: ["pipe", "ignore", "ignore"] })
      .on("error", (error) => log.warn("logind will not wait for pods", { error }));
  }

  /** Ends when its input does; its output when busctl has ended. */
  function listen(): ChildProcessByStdio<Writable, Readable, null> {
    return spawn("sh", ["-c", `busctl monitor --json=short --match="$0" </dev/null & exec >/dev/null; cat; kill $!`, "type='signal',interface='org.freedesktop.login1.Manager',member='PrepareForShutdown'"], { stdio: ["pipe", "pipe", "ignore"] });
  }

  return {
    async run(on, delayMs, signal) {
      if (delayMs === 0) return await aborted(signal);
      while (!signal.aborted) {
        let lock: ChildProcess | undefined;
        const monitor = listen();
        const stop = (): void => void monitor.stdin.end();
        signal.addEventListener("abort", stop, { once: true });
        const failed = new Promise<Error>((resolve) => monitor.on("error", resolve));
        try {
          await raiseLimit(delayMs, signal);
          lock = inhibit();
          for await (const line of createInterface({ input: monitor.stdout })) {
            const down = /"data"\s*:\s*\[\s*(true|false)/.exec(line)?.[1];
            if (down === undefined) continue;
            await on(down === "true");
            lock.kill();
            if (down === "false") lock = inhibit();
          }
          throw await Promise.race([failed, Promise.resolve(new Error("busctl monitor has ended"))]);
        } catch (error) {
          if (!signal.aborted) log.warn("the machine's shutdown would not be noticed, next try soon", { error });
          await clock.sleep(RETRY_MS, signal);
        } finally {
          signal.removeEventListener("abort", stop);
          stop();
          lock?.kill();
        }
      }
    },
  };
}

/** systemd runs this machine. */
export function hasLogind(): boolean {
  return existsSync("/run/systemd/system");
}
