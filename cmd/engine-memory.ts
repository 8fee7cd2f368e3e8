/** The engine's own memory, for core/lifecycle/give-back.ts. */
import type { GiveBackOptions } from "../core/lifecycle/give-back.ts";

export const engineMemory: Pick<GiveBackOptions, "cpuMs" | "collect" | "shrink"> = {
  cpuMs: () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  },
  collect: () => Bun.gc(true),
  shrink: () => Bun.shrink(), // deprecated, and the only way to let go of compiled code: Bun.gc keeps it
};
