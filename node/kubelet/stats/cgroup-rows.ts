/** The control groups of this node that /metrics/cadvisor tells about, and whose they are. */
import { readFile } from "node:fs/promises";
import { posix } from "node:path";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import type { Cgroups } from "../../os/cgroup.ts";
import type { PodCgroups } from "../resources/pod-cgroups.ts";
import type { RuntimePod } from "../runtime-pod.ts";
import type { Row } from "./cadvisor.ts";
import { diskFigures } from "./disk-figures.ts";
import { interfacesOf } from "./network-figures.ts";
import { openFilesLimit, processFigures } from "./process-figures.ts";

interface Deps {
  readonly cgroups: Cgroups;
  readonly podCgroups: Pick<PodCgroups, "pathOf" | "roots">;
  readonly pods: () => Iterable<{ readonly pod: Pod; readonly runtime: RuntimePod }>;
}

/** Runtimes do not say from which image a sandbox is. */
const SANDBOX_IMAGE = "pause";

export function cgroupRows({ cgroups, podCgroups, pods }: Deps): Row[] {
  return [{ path: "/", interfaces: interfacesOf(process.pid) }, ...podCgroups.roots.map((path) => ({ path })), ...[...pods()].flatMap(podRows)];

  function podRows({ pod, runtime }: { readonly pod: Pod; readonly runtime: RuntimePod }): Row[] {
    const path = podCgroups.pathOf(pod);
    const whose = { pod: pod.metadata.name, namespace: pod.metadata.namespace! };
    const below = cgroups.children(path);
    // The runtime calls a container's group by its id, alone or with what its cgroup driver puts around it.
    const of = (id: string): string | undefined => { const name = below.find((one) => one.includes(id)); return name === undefined ? undefined : posix.join(path, name); };
    const rows: Row[] = [{ path, ...whose, startedAtMs: Date.parse(pod.status?.startTime ?? "") || 0 }];
    for (const { id, ready, createdAtMs, hostNetwork } of runtime.sandboxes) {
      const group = of(id);
      if (!ready || group === undefined) continue;
      const pid = Number(cgroups.text(group, "memory", "cgroup.procs")?.split("\n")[0]);
      rows.push({ path: group, name: id, image: SANDBOX_IMAGE, ...whose, startedAtMs: createdAtMs, ...(hostNetwork || !pid ? {} : { interfaces: interfacesOf(pid) }) });
    }
    for (const { id, name, state, startedAtMs, image } of runtime.containers) {
      const group = of(id);
      if (state === "running" && group !== undefined) rows.push({ path: group, name: id, image, container: name, ...whose, startedAtMs });
    }
    return rows;
  }
}

/** With what takes a look at each process, and at the machine's disks. */
export async function withProcesses(cgroups: Cgroups, row: Row): Promise<Row> {
  const processes = await processFigures(cgroups, row.path);
  const first = cgroups.text(row.path, "cpu", "cgroup.procs")?.split("\n")[0];
  if (row.path !== "/") return { ...row, processes, ...(row.name === undefined || !first ? {} : { openFilesLimit: openFilesLimit(await readFile(`/proc/${first}/limits`, "utf8").catch(() => "")) }) };
  const [mountinfo, diskstats, limits] = await Promise.all(["/proc/self/mountinfo", "/proc/diskstats", "/proc/1/limits"].map((path) => readFile(path, "utf8").catch(() => "")));
  return { ...row, processes, openFilesLimit: openFilesLimit(limits!), disks: await diskFigures({ mountinfo: mountinfo!, diskstats: diskstats! }) };
}
