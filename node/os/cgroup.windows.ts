/** Windows has no control groups: what a container may use is the runtime's business alone (job objects). Of the whole machine, the kernel's own figures. */
import { cpus, freemem, totalmem } from "node:os";
import type { Cgroups } from "./cgroup.ts";
import { type CommitCharge, commitCharge } from "./commit-charge.windows.ts";

export function windowsCgroups(chargeNow: () => CommitCharge | undefined = commitCharge): Cgroups {
  return {
    version: 2, countsSwap: false, ensure: () => undefined, remove: () => true, kill: () => undefined, exists: () => false, pids: () => 0, children: () => [], text: () => undefined,
    usage(path) {
      if (path !== "/") return undefined;
      const busyMs = cpuTimes().reduce((sum, { user, sys, irq }) => sum + user + sys + irq, 0);
      const memoryBytes = totalmem() - freemem();
      const charge = chargeNow();
      return { cpuNs: busyMs * 1e6, memoryBytes, workingSetBytes: memoryBytes, ...(charge ? { availableBytes: Math.max(0, charge.limitBytes - charge.totalBytes) } : {}), rssBytes: memoryBytes, pageFaults: 0, majorPageFaults: 0 };
    },
  };
}

function cpuTimes(): readonly { readonly user: number; readonly sys: number; readonly irq: number }[] {
  try {
    return cpus().map(({ times }) => times);
  } catch {
    return []; // counters that are switched off: usage stays unknown, nothing else depends on it
  }
}
