/** Windows has no control groups: what a container may use is the runtime's business alone (job objects). Of the whole machine, the kernel's own figures. */
import { cpus, freemem, totalmem } from "node:os";
import type { Cgroups } from "./cgroup.ts";

export function windowsCgroups(): Cgroups {
  return {
    version: 2, countsSwap: false, ensure: () => undefined, remove: () => true, kill: () => undefined, exists: () => false, pids: () => 0, children: () => [],
    usage(path) {
      if (path !== "/") return undefined;
      const busyMs = cpus().reduce((sum, { times }) => sum + times.user + times.sys + times.irq, 0);
      const memoryBytes = totalmem() - freemem();
      return { cpuNs: busyMs * 1e6, memoryBytes, workingSetBytes: memoryBytes, rssBytes: memoryBytes, pageFaults: 0, majorPageFaults: 0 };
    },
  };
}
