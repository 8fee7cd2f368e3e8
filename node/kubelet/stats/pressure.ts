/**
 * How long tasks wait for processor, memory and disk (PSI; version 2 only), and what of them is swapped, as the kernel tells it of a control group. Undefined where it does not.
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

/** From here on a limit is none. */
const UNLIMITED = 2 ** 62;

/** What may still be swapped is told where there is a limit; a kernel that counts no swap lets nothing be swapped. In version 1 the limit is that of memory and swap together. */
export function swapOf(cgroups: Pick<Cgroups, "text" | "version">, path: string | undefined, time: string): SwapStats | undefined {
  const text = (file: string): string | undefined => (path === undefined ? undefined : cgroups.text(path, "memory", file)?.trim());
  const counts = text("memory.stat");
  if (counts === undefined) return undefined;
  const isFirst = cgroups.version === 1;
  const swapUsageBytes = Number((isFirst ? /^total_swap (\d+)$/m.exec(counts)?.[1] : text("memory.swap.current")) ?? 0);
  const limit = text(isFirst ? "memory.memsw.limit_in_bytes" : "memory.swap.max") ?? "0";
  return { time, ...(limit === "max" || Number(limit) >= UNLIMITED ? {} : { swapAvailableBytes: Math.max(0, Number(limit) - swapUsageBytes) }), swapUsageBytes };
}

/** The kernel counts microseconds, the API nanoseconds. */
export function parsePressure(text: string): PsiStats {
  const line = (name: "some" | "full"): PsiStats["some"] => {
    const [, avg10, avg60, avg300, total] = new RegExp(`^${name} avg10=([\\d.]+) avg60=([\\d.]+) avg300=([\\d.]+) total=(\\d+)`, "m").exec(text) ?? [];
    return total === undefined ? NOTHING : { total: Number(total) * 1000, avg10: Number(avg10), avg60: Number(avg60), avg300: Number(avg300) };
  };
  return { full: line("full"), some: line("some") };
}
