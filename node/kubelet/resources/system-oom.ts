/**
 * Tells, as an event of the node, when the machine as a whole ran out of memory and the kernel ended a process for it. A group that took more than its limit is not meant.
 *
 * Source: kubernetes v1.36 pkg/kubelet/oom/oom_watcher_linux.go, google/cadvisor utils/oomparser/oomparser.go
 */
import type { ObjectReference } from "../../../core/api/gen/core.v1.ts";
import type { EventRecorder } from "../../../core/client/events.ts";
import { aborted } from "../../../core/lifecycle/aborted.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import type { Log } from "../../../core/observe/log.ts";
import { trouble } from "../../../core/observe/trouble.ts";
import { type KernelLog, kernelLog } from "../../os/kernel-log.ts";

const LOOK_MS = 10_000;

interface Deps { readonly events: EventRecorder; readonly node: ObjectReference; readonly clock: Clock; readonly log: Log; readonly open?: (() => KernelLog | undefined) | undefined }

export function systemOom({ events, node, clock, log, open = kernelLog }: Deps): Runnable {
  return {
    name: "system-oom",
    async run(signal, ready) {
      let kernel: KernelLog | undefined;
      const victimIn = oomReader(), unread = trouble("the kernel's log cannot be read: that memory runs out is not told until it can", { log, clock });
      /** False: this machine has none. */
      const look = (): boolean => {
        try {
          kernel ??= open();
          for (const victim of kernel?.lines().flatMap((line) => victimIn(line) ?? []) ?? []) events.event(node, "Warning", "SystemOOM", `System OOM encountered, victim process: ${victim.name}, pid: ${victim.pid}`);
          unread.over();
          return kernel !== undefined;
        } catch (error) {
          unread.tell(error);
          kernel?.close();
          kernel = undefined;
          return true;
        }
      };
      const hasLog = look();
      ready();
      if (!hasLog) return await aborted(signal);
      try {
        for await (const _ of clock.every(LOOK_MS, signal)) look();
      } finally {
        kernel?.close();
      }
    },
  };
}

/** Takes the kernel's lines one after the other; gives the process it ended once a line says so. */
export function oomReader(): (line: string) => { readonly name: string; readonly pid: number } | undefined {
  let isReading = false; // between the first line of one and its last
  let ofGroup = false;
  return (line) => {
    if (line.includes("invoked oom-killer:")) {
      isReading = true;
      ofGroup = false;
      return undefined;
    }
    if (!isReading) return undefined;
    if (/^oom-kill:constraint=.*,oom_memcg=/.test(line)) {
      isReading = false;
      return undefined;
    }
    const limited = /Task in .* killed as a result of limit of (.*)/.exec(line)?.[1]; // kernels before 5.0
    if (limited !== undefined) ofGroup = limited !== "/";
    const [, pid, name] = /Killed process (\d+) \((.+)\)/.exec(line) ?? [];
    if (pid === undefined || name === undefined) return undefined;
    isReading = false;
    return ofGroup ? undefined : { name, pid: Number(pid) };
  };
}
