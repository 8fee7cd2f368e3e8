/**
 * Where a pod's volumes fill what storage there is the least, or the most, as the shape has it: volumes that are there already, or else the room drivers tell of. With StorageCapacityScoring alone.
 *
 * Source: kubernetes v1.36 pkg/scheduler/framework/plugins/volumebinding/{scorer,volume_binding}.go
 */
import { parseQuantity } from "../../api/meta/quantity.ts";
import type { LiveNode } from "../node-info.ts";
import type { Score } from "../plugin.ts";
import { classOf, type Storage } from "../storage.ts";
import { sizeOf } from "../volume-choice.ts";
import { planVolumes, podClaims, type PodVolumes, podVolumes, roomFor } from "../volume-plan.ts";
import { onShape } from "./resources.ts";

interface Use { requested: number; capacity: number }

/** `shape`: points, utilization 0…100 ascending, score 0…10; straight lines between them. */
export function volumeBindingScore(shape: Parameters<typeof onShape>[0]): Score {
  return {
    name: "VolumeBinding",
    weight: 1,
    prepare({ pod }, { storage }) {
      if (podClaims(pod).length === 0) return undefined;
      const volumes = podVolumes(pod, storage);
      if ("refused" in volumes || volumes.waiting.length === 0) return undefined;
      return {
        score(node) {
          const uses = [...usesOn(node, volumes, storage).values()];
          const sum = uses.reduce((total, { requested, capacity }) => total + onShape(shape, capacity === 0 || requested > capacity ? 100 : Math.trunc((requested * 100) / capacity)), 0);
          return uses.length === 0 ? 0 : Math.round(sum / uses.length);
        },
      };
    },
  };
}

/** By class of storage. */
function usesOn({ node }: LiveNode, volumes: PodVolumes, storage: Storage): Map<string, Use> {
  const uses = new Map<string, Use>(), plan = planVolumes(volumes, node, storage);
  if ("reasons" in plan) return uses;
  const of = (name: string): Use => {
    const known = uses.get(name) ?? { requested: 0, capacity: 0 };
    uses.set(name, known);
    return known;
  };
  for (const { claim, volume } of plan.bind) {
    const use = of(volume.spec.storageClassName ?? "");
    use.requested += bytes(sizeOf(claim));
    use.capacity += bytes(volume.spec.capacity?.["storage"]);
  }
  if (plan.bind.length > 0) return uses;
  for (const claim of plan.provision) {
    const room = roomFor(claim, node, storage);
    if (room === undefined || room === "none") continue;
    const use = of(classOf(claim));
    use.capacity = bytes(room.capacity ?? undefined); // all of a class have the same room
    use.requested += bytes(sizeOf(claim));
  }
  return uses;
}

function bytes(quantity = "0"): number { return Number(parseQuantity(quantity).value()); }
