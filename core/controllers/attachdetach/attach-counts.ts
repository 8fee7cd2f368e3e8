/** How many volumes that can be attached are in use on each node, and how many are wanted and attached at all. Source: kubernetes v1.36 pkg/controller/volume/attachdetach/metrics/metrics.go */
import type { Node, PersistentVolume, Pod } from "../../api/gen/core.v1.ts";
import type { VolumeAttachment } from "../../api/gen/storage.v1.ts";
import type { Labels, Metrics } from "../../observe/metrics.ts";
import { counted } from "../volume/volume-counts.ts";
import { attachedDisks } from "./plan-disks.ts";
import type { WantedVolumes } from "./wanted.ts";

interface Known {
  pods(): Iterable<Readonly<Pod>>;
  nodes(): Iterable<Readonly<Node>>;
  attachments(): Iterable<Readonly<VolumeAttachment>>;
  readonly volumes: Pick<WantedVolumes, "boundTo" | "wantedOn" | "disksOn">;
}

type Source = Pick<NonNullable<Pod["spec"]["volumes"]>[number], "csi" | "iscsi" | "fc"> | Pick<PersistentVolume["spec"], "csi" | "iscsi" | "fc">;

/** As upstream's plug-ins are called; undefined: it is no kind that is attached. */
function pluginOf({ csi, iscsi, fc }: Source): string | undefined {
  return csi ? `kubernetes.io/csi:${csi.driver}` : iscsi ? "kubernetes.io/iscsi" : fc ? "kubernetes.io/fc" : undefined;
}

export function attachCounts(metrics: Metrics, { pods, nodes, attachments, volumes }: Known): void {
  metrics.gaugeFrom("storage_count_attachable_volumes_in_use", "[ALPHA] Measure number of volumes in use", () => counted(inUse(), (labels) => labels));
  metrics.gaugeFrom("attachdetach_controller_total_volumes", "[ALPHA] Number of volumes in A/D Controller", () => counted([...desired(), ...actual()], (labels) => labels));

  function* inUse(): Generator<Labels> {
    for (const pod of pods()) {
      const { nodeName: node, volumes: own = [] } = pod.spec;
      if (!node) continue;
      for (const source of [...own, ...volumes.boundTo(pod).map(({ spec }) => spec)]) {
        const volume_plugin = pluginOf(source);
        if (volume_plugin !== undefined) yield { node, volume_plugin };
      }
    }
  }

  function* desired(): Generator<Labels> {
    for (const { metadata: { name } } of nodes()) {
      for (const { volume } of volumes.wantedOn(name)) yield { plugin_name: pluginOf(volume.spec)!, state: "desired_state_of_world" };
      for (const _ of volumes.disksOn(name)) yield { plugin_name: "kubernetes.io/iscsi", state: "desired_state_of_world" };
    }
  }

  function* actual(): Generator<Labels> {
    for (const { spec, status } of attachments()) if (status?.attached) yield { plugin_name: `kubernetes.io/csi:${spec.attacher}`, state: "actual_state_of_world" };
    for (const node of nodes()) for (const _ of attachedDisks(node)) yield { plugin_name: "kubernetes.io/iscsi", state: "actual_state_of_world" };
  }
}
