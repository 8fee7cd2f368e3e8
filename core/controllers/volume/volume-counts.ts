/** How many volumes and claims there are, bound and not. Source: kubernetes v1.36 pkg/controller/volume/persistentvolume/metrics/metrics.go */
import type { PersistentVolume, PersistentVolumeClaim } from "../../api/gen/core.v1.ts";
import { annotationsOf, namespaceOf } from "../../api/meta/object-meta.ts";
import type { Labels, Metrics } from "../../observe/metrics.ts";

interface Known {
  volumes(): Iterable<Readonly<PersistentVolume>>;
  claims(): Iterable<Readonly<PersistentVolumeClaim>>;
}

/** As upstream's plug-ins are called. */
const PLUGINS = { csi: "kubernetes.io/csi", hostPath: "kubernetes.io/host-path", local: "kubernetes.io/local-volume", nfs: "kubernetes.io/nfs", iscsi: "kubernetes.io/iscsi", fc: "kubernetes.io/fc" } as const;
const CLASS = "volume.beta.kubernetes.io/storage-class";

export function volumeCounts(metrics: Metrics, known: Known): void {
  const gauge = <T>(name: string, help: string, all: () => Iterable<T>, labelsOf: (one: T) => Labels | undefined): void => metrics.gaugeFrom(`pv_collector_${name}`, `[ALPHA] Gauge measuring ${help}`, () => counted(all(), labelsOf));
  gauge("total_pv_count", "total number of persistent volumes", known.volumes, ({ spec }) => ({ plugin_name: pluginOf(spec), volume_mode: spec.volumeMode ?? "Filesystem" }));
  for (const [name, bound] of [["bound", true], ["unbound", false]] as const) {
    gauge(`${name}_pv_count`, `number of persistent volume currently ${name}`, known.volumes, ({ spec, status }) => ((status?.phase === "Bound") === bound ? { storage_class: spec.storageClassName ?? "" } : undefined));
    gauge(`${name}_pvc_count`, `number of persistent volume claim currently ${name}`, known.claims, (claim) =>
      ((claim.status?.phase === "Bound") === bound ? {
        namespace: namespaceOf(claim), storage_class: annotationsOf(claim)[CLASS] ?? claim.spec.storageClassName ?? "",
        volume_attributes_class: claim.spec.volumeAttributesClassName ?? "",
      } : undefined));
  }
}

function pluginOf(spec: PersistentVolume["spec"]): string {
  const [kind, name] = Object.entries(PLUGINS).find(([one]) => spec[one as keyof typeof PLUGINS]) ?? [];
  return kind === "csi" ? `${name}:${spec.csi!.driver}` : name ?? "N/A";
}

/** How many there are of each set of labels. */
export function counted<T>(all: Iterable<T>, labelsOf: (one: T) => Labels | undefined): Iterable<readonly [Labels, number]> {
  const counts = new Map<string, { labels: Labels; count: number }>();
  for (const one of all) {
    const labels = labelsOf(one);
    if (labels === undefined) continue;
    const key = JSON.stringify(labels);
    const known = counts.get(key);
    if (known) known.count++;
    else counts.set(key, { labels, count: 1 });
  }
  return [...counts.values()].map(({ labels, count }) => [labels, count] as const);
}
