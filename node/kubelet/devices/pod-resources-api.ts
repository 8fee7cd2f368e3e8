/**
 * The PodResources API on pod-resources/kubelet.sock: which pod has which devices and claims, for agents that measure them.
 *
 * Source: kubernetes v1.36 pkg/kubelet/apis/podresources, staging/src/k8s.io/kubelet/pkg/apis/podresources/v1
 */
import { join } from "node:path";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import type { Log } from "../../../core/observe/log.ts";
import { serviceMethods } from "../../cri/facts.ts";
import { RpcFailure, rpcServer } from "../../cri/rpc-server.ts";
import type { Block } from "../placement/memory-policy.ts";
import type { ContainerDevices, ContainerMemory, DynamicResource, Methods, PodResources } from "../plugins/gen/pod-resources.v1.ts";
import text from "../plugins/pod-resources-facts.txt" with { type: "text" };
import { isSidecar } from "../pod-spec.ts";
import type { ContainerDevice } from "./device-manager.ts";

interface Deps {
  readonly dataDir: string;
  readonly log: Log;
  /** Those that run or will. */
  readonly pods: () => Iterable<Pod>;
  readonly devicesOf: (podUid: string, container: string) => readonly ContainerDevice[];
  readonly claimsOf: (pod: Pod, container: string) => readonly DynamicResource[];
  readonly allDevices: () => readonly ContainerDevice[];
  /** All processors that may be given to one container alone. */
  readonly cpuIds: () => readonly number[];
  readonly exclusiveCpus: (podUid: string, container: string) => readonly number[];
  readonly memoryOf: (podUid: string, container: string) => readonly Block[];
  readonly allocatableMemory: () => readonly Block[];
}

export function podResourcesApi({ dataDir, log, pods, devicesOf, claimsOf, allDevices, cpuIds, exclusiveCpus, memoryOf, allocatableMemory }: Deps): Runnable {
  function resourcesOf(pod: Pod): PodResources {
    const { name, namespace = "", uid } = pod.metadata;
    const containers = [...(pod.spec.initContainers ?? []).filter(isSidecar), ...pod.spec.containers];
    return { name, namespace, containers: containers.map((container) => ({ name: container.name, devices: devicesOf(uid, container.name).map(toProto), cpu_ids: [...exclusiveCpus(uid, container.name)], memory: memoryOf(uid, container.name).map(memoryToProto), dynamic_resources: [...claimsOf(pod, container.name)] })) };
  }

  return rpcServer<Methods>({
    name: "pod-resources", socket: join(dataDir, "pod-resources", "kubelet.sock"), methods: serviceMethods(text, "v1"), log,
    calls: {
      "PodResourcesLister/List": () => ({ pod_resources: [...pods()].map(resourcesOf) }),
      "PodResourcesLister/Get"({ pod_name = "", pod_namespace = "" }) {
        const pod = [...pods()].find(({ metadata }) => metadata.name === pod_name && metadata.namespace === pod_namespace);
        if (!pod) throw new RpcFailure("Unknown", `pod ${pod_name} in namespace ${pod_namespace} not found`);
        return { pod_resources: resourcesOf(pod) };
      },
      "PodResourcesLister/GetAllocatableResources": () => ({ devices: allDevices().map(toProto), cpu_ids: [...cpuIds()], memory: allocatableMemory().map(memoryToProto) }),
    },
  });
}

function memoryToProto({ type, size, numaAffinity }: Block): ContainerMemory {
  return { memory_type: type, size, ...(numaAffinity.length > 0 ? { topology: { nodes: numaAffinity.map((ID) => ({ ID })) } } : {}) };
}

function toProto({ resource, ids, numaNodes }: ContainerDevice): ContainerDevices {
  return { resource_name: resource, device_ids: [...ids], ...(numaNodes.length > 0 ? { topology: { nodes: numaNodes.map((ID) => ({ ID })) } } : {}) };
}
