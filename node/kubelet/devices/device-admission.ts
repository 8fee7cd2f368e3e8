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
import { candidates, type Choice, chosen, DevicesUnavailable, servedContainers, wishesOf } from "./device-choice.ts";
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
  const lent = new Map<string, ReadonlySet<string>>(); // by resource: of init containers that end
  const lends = new Set(servedContainers(pod).filter((served) => served.lends).map(({ name }) => name));
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

  return {
    hints: (container) => hintsOf(wishes(container), (resource) => hadBy(container.name, resource), (resource) => lent.get(resource) ?? new Set()),
    podHints() {
      const limits = podLimits({ ...pod, spec: { ...pod.spec, overhead: {} } });
      const ofPod = new Map([...limits].filter(([name]) => isManaged(name) && !mappings.some(({ resourceName }) => resourceName === name)).map(([name, quantity]) => [name, quantity.number()]));
      return hintsOf(ofPod, (resource) => allocations.ofPod(uid, resource), () => new Set());
    },
    allocate(container, { nodes }) {
      for (const [resource, count] of wishes(container)) {
        const ofInit = new Set(lent.get(resource));
        let ids = hadBy(container.name, resource); // kept after the machine was down as well, where upstream refuses the pod until the plugin, a pod itself, is back: a node without its server gets no other
        if (ids.length === 0) {
          ids = choose({ resource, count, devices: plugins.devices(resource), taken: allocations.taken(resource), lent: ofInit, nodes });
          allocations.add({ podUid: uid, container: container.name, resource, ids, nodes });
        }
        for (const id of ids) if (lends.has(container.name)) ofInit.add(id); else ofInit.delete(id);
        lent.set(resource, ofInit);
      }
    },
    rollBack: () => allocations.restore(before),
  };
}

function choose(choice: Choice): string[] {
  try {
    return chosen(candidates(choice), choice.count, []);
  } catch (error) {
    if (error instanceof DevicesUnavailable) throw new AllocationRefused(error);
    throw error;
  }
}
