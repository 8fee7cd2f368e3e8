/**
 * What the kubelet counts of volumes, by upstream's names: how many there are and should be, by plugin, and how long it took to make them and to take them apart.
 *
 * Source: kubernetes v1.36 pkg/volume/util/metrics.go, pkg/kubelet/volumemanager/metrics/metrics.go
 */
import type { PersistentVolumeSpec, Volume } from "../../../core/api/gen/core.v1.ts";
import type { Metrics } from "../../../core/observe/metrics.ts";

export interface VolumeMetrics {
  /** These volumes of the pod are to be there. */
  wanted(podUid: string, volumes: readonly Volume[]): void;
  /** One was looked at: the first time it is made, and then files of the API are written anew where they have changed. */
  setUp(podUid: string, volume: Volume, result: { readonly plugin: string; readonly seconds: number; readonly failed: boolean }): void;
  /** All of a pod's are gone, or could not be taken away. */
  released(podUid: string, result: { readonly seconds: number; readonly failed: boolean }): void;
}

const SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];
const UNKNOWN = "N/A";

const PLUGINS: Readonly<Record<string, string>> = {
  configMap: "configmap", downwardAPI: "downward-api", emptyDir: "empty-dir", hostPath: "host-path", image: "image", iscsi: "iscsi", local: "local-volume", nfs: "nfs", projected: "projected", secret: "secret",
};
/** Written again at every look. */
const WRITTEN: ReadonlySet<string> = new Set(["configmap", "downward-api", "projected", "secret"].map((name) => `kubernetes.io/${name}`));

/** Undefined: a claim's volume decides. */
export function pluginOf(source: Volume | PersistentVolumeSpec): string | undefined {
  if (source.csi) return `kubernetes.io/csi:${source.csi.driver}`;
  const kind = Object.keys(PLUGINS).find((name) => name in source && (source as unknown as Record<string, unknown>)[name] !== undefined);
  return kind === undefined ? undefined : `kubernetes.io/${PLUGINS[kind]}`;
}

export function volumeMetrics(metrics: Metrics): VolumeMetrics {
  const durations = metrics.histogram("storage_operation_duration_seconds", "[ALPHA] Storage operation duration", SECONDS);
  const wanted = new Map<string, Map<string, string>>(); // by pod's uid and volume's name its plugin
  const there = new Map<string, Map<string, string>>(); // likewise
  metrics.gaugeFrom("volume_manager_total_volumes", "[ALPHA] Number of volumes in Volume Manager", () => [...totals(there, "actual_state_of_world"), ...totals(wanted, "desired_state_of_world")]);
  const observe = (plugin: string, operation: string, { seconds, failed }: { readonly seconds: number; readonly failed: boolean }): void =>
    durations.observe(seconds, { volume_plugin: plugin, operation_name: operation, status: failed ? "fail-unknown" : "success", migrated: "false" });
  return {
    wanted(podUid, volumes) {
      const before = wanted.get(podUid);
      wanted.set(podUid, new Map(volumes.map((volume) => [volume.name, pluginOf(volume) ?? before?.get(volume.name) ?? UNKNOWN])));
    },
    setUp(podUid, { name }, { plugin, ...result }) {
      wanted.get(podUid)?.set(name, plugin);
      const known = there.get(podUid) ?? new Map<string, string>();
      if (!result.failed && known.has(name) && !WRITTEN.has(plugin)) return;
      observe(plugin, "volume_mount", result);
      if (result.failed) return;
      known.set(name, plugin);
      there.set(podUid, known);
    },
    released(podUid, result) {
      for (const plugin of there.get(podUid)?.values() ?? []) observe(plugin, "volume_unmount", result);
      wanted.delete(podUid);
      if (!result.failed) there.delete(podUid);
    },
  };
}

function* totals(volumes: ReadonlyMap<string, ReadonlyMap<string, string>>, state: string): Iterable<readonly [{ readonly plugin_name: string; readonly state: string }, number]> {
  const counts = new Map<string, number>();
  for (const ofPod of volumes.values()) for (const plugin of ofPod.values()) counts.set(plugin, (counts.get(plugin) ?? 0) + 1);
  for (const [plugin, count] of counts) yield [{ plugin_name: plugin, state }, count];
}
