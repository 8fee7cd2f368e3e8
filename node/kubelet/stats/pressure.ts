/**
 * How long tasks wait for processor, memory and disk (PSI), and what of them is swapped, as the kernel tells it of a control group; version 2 only. Undefined where it does not.
 *
 * API:    https://docs.kernel.org/accounting/psi.html
 * Source: kubernetes v1.36 pkg/kubelet/stats/helper.go (cadvisorInfoToSwapStats)
 */
import type { Cgroups } from "../../os/cgroup.ts";
import type { PsiStats, SwapStats } from "../kubelet-api.ts";

const NOTHING = { total: 0, avg10: 0, avg60: 0, avg300: 0 };

export interface Pressures { readonly cpu: PsiStats | undefined; readonly memory: PsiStats | undefined; readonly io: PsiStats | undefined }

export function pressuresOf(cgroups: Pick<Cgroups, "text" | "version">, path: string | undefined): Pressures {
  const of = (what: "cpu" | "memory" | "io"): PsiStats | undefined => {
    const text = path === undefined || cgroups.version === 1 ? undefined : cgroups.text(path, what, `${what}.pressure`);
    return text === undefined ? undefined : parsePressure(text);
  };
  return { cpu: of("cpu"), memory: of("memory"), io: of("io") };
}

/** What may still be swapped is told where there is a limit. */
export function swapOf(cgroups: Pick<Cgroups, "text" | "version">, path: string | undefined, time: string): SwapStats | undefined {
  const text = (file: string): string | undefined => (path === undefined || cgroups.version === 1 ? undefined : cgroups.text(path, "memory", file)?.trim());
  const [used, limit = "max"] = [text("memory.swap.current"), text("memory.swap.max")];
  return used === undefined ? undefined : { time, ...(limit === "max" ? {} : { swapAvailableBytes: Math.max(0, Number(limit) - Number(used)) }), swapUsageBytes: Number(used) };
}

/** The kernel counts microseconds, the API nanoseconds. */
export function parsePressure(text: string): PsiStats {
  const line = (name: "some" | "full"): PsiStats["some"] => {
    const [, avg10, avg60, avg300, total] = new RegExp(`^${name} avg10=([\\d.]+) avg60=([\\d.]+) avg300=([\\d.]+) total=(\\d+)`, "m").exec(text) ?? [];
    return total === undefined ? NOTHING : { total: Number(total) * 1000, avg10: Number(avg10), avg60: Number(avg60), avg300: Number(avg300) };
  };
  return { full: line("full"), some: line("some") };
}
