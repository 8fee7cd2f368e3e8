/**
 * A pod's devices, set aside when it is admitted: container by container, so that what an init container that ends has had may serve those after it.
 *
 * Source: kubernetes v1.36 pkg/kubelet/cm/devicemanager/manager.go (devicesToAllocate), topology_hints.go
 */
import type { Container, EphemeralContainer, Pod } from "../../../core/api/gen/core.v1.ts";
import { AllocationRefused } from "../placement/allocation-refused.ts";
import type { Hints } from "../placement/hints.ts";
import type { PodAdmission } from "../placement/provider.ts";
import { podLimits } from "../resources/pod-resources.ts";
import type { DeviceAllocations } from "./device-allocations.ts";
import { candidates, type Choice, chosen, DevicesUnavailable, lentTo, wishesOf } from "./device-choice.ts";
import { deviceHints } from "./device-hints.ts";
import type { DevicePlugins } from "./device-plugins.ts";

interface Deps {
  readonly plugins: Pick<DevicePlugins, "resources" | "devices">;
  readonly allocations: DeviceAllocations;
  /** The machine's. */
  readonly numaNodes: () => readonly number[];
}

export function deviceAdmission({ plugins, allocations, numaNodes }: Deps, pod: Pod): PodAdmission {
  const { uid } = pod.metadata;
  const before = allocations.now();
  const isManaged = (resource: string): boolean => plugins.resources().includes(resource);
  const mappings = pod.status?.extendedResourceClaimStatus?.requestMappings ?? [];
  /** Not what devices of a claim stand for. */
  const wishes = (container: Container | EphemeralContainer): ReadonlyMap<string, number> => wishesOf(container, (resource) => isManaged(resource) && !mappings.some(({ containerName, resourceName }) => containerName === container.name && resourceName === resource));

  function hintsOf(counts: ReadonlyMap<string, number>, had: (resource: string) => readonly string[], reusable: (resource: string) => ReadonlySet<string>): Hints {
    return new Map([...counts].map(([resource, count]) => {
      const devices = plugins.devices(resource);
      const taken = allocations.taken(resource);
      const available = new Set(devices.filter(({ id, healthy }) => healthy && !taken.has(id)).map(({ id }) => id));
      return [resource, deviceHints({ count, devices, had: new Set(had(resource)), available, reusable: reusable(resource), numaNodes: numaNodes() })];
    }));
  }

  const hadBy = (container: string, resource: string): string[] => allocations.of(uid, container, resource).flatMap(({ ids }) => ids);
  const lent = (container: string, resource: string): ReadonlySet<string> => lentTo(pod, container, (name) => hadBy(name, resource));

  return {
    hints: (container) => hintsOf(wishes(container), (resource) => hadBy(container.name, resource), (resource) => lent(container.name, resource)),
    podHints() {
      const limits = podLimits({ ...pod, spec: { ...pod.spec, overhead: {} } });
      const ofPod = new Map([...limits].filter(([name]) => isManaged(name) && !mappings.some(({ resourceName }) => resourceName === name)).map(([name, quantity]) => [name, quantity.number()]));
      return hintsOf(ofPod, (resource) => allocations.ofPod(uid, resource), () => new Set());
    },
    allocate(container, { nodes }) {
      for (const [resource, count] of wishes(container)) {
        if (hadBy(container.name, resource).length > 0) continue; // kept after the machine was down as well, where upstream refuses the pod until the plugin, a pod itself, is back: a node without its server gets no other
        const choice = { resource, count, devices: plugins.devices(resource), taken: allocations.taken(resource), lent: lent(container.name, resource), nodes };
        allocations.add({ podUid: uid, container: container.name, resource, ids: chosen(choose(choice), count, []), nodes });
      }
    },
    rollBack: () => allocations.restore(before),
  };
}

/** Throws AllocationRefused. */
export function choose(choice: Choice): ReturnType<typeof candidates> {
  try {
    return candidates(choice);
  } catch (error) {
    if (error instanceof DevicesUnavailable) throw new AllocationRefused(error);
    throw error;
  }
}
