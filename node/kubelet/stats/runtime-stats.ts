/**
 * What pods use, as the runtime tells it: of all at once; one by one where that fails, since containerd 1.6 has nothing to say of any pod as long as one sandbox has lost its cgroup,
 * as those of pods that have ended do, and containerd of none while one's shim does not answer, as one that is hardly started may not; and put together from containers' statistics where the runtime knows of no others.
 *
 * Source: kubernetes v1.36 pkg/kubelet/stats/cri_stats_provider.go
 */
import { type Cri, CriError, type CriErrorCode } from "../../cri/client.ts";
import type { ContainerStats, PodSandboxStats } from "../../cri/gen/runtime.v1.ts";
import type { Cgroups } from "../../os/cgroup.ts";
import { POD_UID } from "../containers/labels.ts";

interface Deps {
  readonly cri: Pick<Cri, "call">;
  readonly cgroups: Pick<Cgroups, "usage">;
  /** Ids of the sandboxes that are running, should they have to be asked about one by one. */
  readonly sandboxes: () => readonly string[];
  /** The control group of the pod with this uid. */
  readonly podGroup: (uid: string) => string | undefined;
}

/** Whoever asks waits some ten seconds, metrics-server for one. */
const ANSWER_MS = 4_000;

export async function runtimeStats({ cri, cgroups, sandboxes, podGroup }: Deps, signal: AbortSignal): Promise<readonly PodSandboxStats[]> {
  try {
    return (await cri.call("RuntimeService/ListPodSandboxStats", {}, { signal, timeoutMs: ANSWER_MS })).stats ?? [];
  } catch (error) {
    if (!(error instanceof CriError) || signal.aborted) throw error;
    if (error.code === "Unimplemented") return ofContainers((await cri.call("RuntimeService/ListContainerStats", {}, { signal })).stats ?? []);
    if (!OF_ONE.has(error.code)) throw error;
    const all = await Promise.all(sandboxes().map(async (id) => await cri.call("RuntimeService/PodSandboxStats", { pod_sandbox_id: id }, { signal, timeoutMs: ANSWER_MS }).catch(unlessGone)));
    return all.flatMap(({ stats }) => stats ?? []);
  }

  function ofContainers(all: readonly ContainerStats[]): PodSandboxStats[] {
    return [...Map.groupBy(all, ({ attributes }) => attributes?.labels?.[POD_UID] ?? "")].flatMap(([uid, containers]): PodSandboxStats[] => {
      const group = podGroup(uid);
      const usage = group === undefined ? undefined : cgroups.usage(group);
      const nanoCores = containers.reduce((sum, { cpu }) => sum + (cpu?.usage_nano_cores?.value ?? 0), 0);
      return uid === "" ? [] : [{
        attributes: { labels: containers[0]?.attributes?.labels },
        linux: {
          containers,
          ...(usage && {
            cpu: { usage_core_nano_seconds: { value: usage.cpuNs }, usage_nano_cores: { value: nanoCores } },
            memory: {
              usage_bytes: { value: usage.memoryBytes }, working_set_bytes: { value: usage.workingSetBytes }, rss_bytes: { value: usage.rssBytes },
              page_faults: { value: usage.pageFaults }, major_page_faults: { value: usage.majorPageFaults },
            },
          }),
        },
      }];
    });
  }
}

/** What may be the fault of one pod. */
const OF_ONE: ReadonlySet<CriErrorCode> = new Set(["Unknown", "Internal", "DeadlineExceeded"]);

function unlessGone(error: unknown): { readonly stats?: PodSandboxStats } {
  if (error instanceof CriError && (error.code === "NotFound" || OF_ONE.has(error.code))) return {};
  throw error;
}
