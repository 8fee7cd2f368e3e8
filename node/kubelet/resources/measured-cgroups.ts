/** Control groups whose changes are timed. Source: kubernetes v1.36 pkg/kubelet/cm/cgroup_manager_linux.go */
import type { Clock } from "../../../core/lifecycle/clock.ts";
import { DEFAULT_BUCKETS, type Metrics } from "../../../core/observe/metrics.ts";
import type { Cgroups } from "../../os/cgroup.ts";

export function measuredCgroups(cgroups: Cgroups, { metrics, clock }: { readonly metrics: Metrics; readonly clock: Pick<Clock, "uptimeMs"> }): Cgroups {
  const seconds = metrics.histogram("kubelet_cgroup_manager_duration_seconds", "[ALPHA] Duration in seconds for cgroup manager operations. Broken down by method.", DEFAULT_BUCKETS);
  function timed<T>(operation: "create" | "update" | "destroy", act: () => T): T {
    const startMs = clock.uptimeMs();
    try {
      return act();
    } finally {
      seconds.observe((clock.uptimeMs() - startMs) / 1000, { operation_type: operation });
    }
  }
  return {
    ...cgroups,
    ensure: (path, limits) => timed(cgroups.exists(path) ? "update" : "create", () => cgroups.ensure(path, limits)),
    remove: (path) => (cgroups.exists(path) ? timed("destroy", () => cgroups.remove(path)) : cgroups.remove(path)),
  };
}
