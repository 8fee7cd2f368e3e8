/** The engine's own memory, for core/lifecycle/give-back.ts. */
import { readFileSync } from "node:fs";
import type { GiveBackOptions } from "../core/lifecycle/give-back.ts";
import { ifThereSync } from "../core/lifecycle/if-there.ts";

export const engineMemory: Pick<GiveBackOptions, "cpuMs" | "waitedMs" | "heapBytes" | "collect" | "shrink"> = {
  cpuMs: () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  },
  waitedMs: () => Number(ifThereSync(() => readFileSync("/proc/self/schedstat", "utf8"))?.split(" ")[1] ?? 0) / 1e6, // of the main thread: nanoseconds it ran, nanoseconds it waited to run, turns
  heapBytes: () => process.memoryUsage().heapUsed,
  collect: () => Bun.gc(false), // beside what runs: at once it would hold everything for a second where there are objects of a gigabyte
  shrink: () => Bun.shrink(), // deprecated, and the only way to let go of compiled code: Bun.gc keeps it
};
