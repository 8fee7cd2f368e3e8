/**
 * The PodResources API on pod-resources/kubelet.sock: which pod has which devices and claims, for agents that measure them. Older ones ask for v1alpha1, which tells of devices only.
 *
 * Source: kubernetes v1.36 pkg/kubelet/apis/podresources, staging/src/k8s.io/kubelet/pkg/apis/podresources/v1
 */
import { join } from "node:path";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import { tokenBucket } from "../../../core/lifecycle/token-bucket.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { Metrics } from "../../../core/observe/metrics.ts";
import { serviceMethods } from "../../cri/facts.ts";
import { RpcFailure, rpcServer } from "../../cri/rpc-server.ts";
import type { Block } from "../placement/memory-policy.ts";
import type { ContainerDevices, ContainerMemory, DynamicResource, Methods, PodResources } from "../plugins/gen/pod-resources.v1.ts";
import text from "../plugins/pod-resources-facts.txt" with { type: "text" };
import { isSidecar } from "../pod-spec.ts";
import type { ContainerDevice } from "./device-manager.ts";

interface Deps {
  readonly dataDir: string;
  readonly clock: Pick<Clock, "uptimeMs">;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Those that run or will, and those that are ending. */
  readonly pods: () => Iterable<Pod>;
  /** And those that have ended: who asks for one by its name is told of it. */
  readonly allPods: () => Iterable<Pod>;
  readonly devicesOf: (podUid: string, container: string) => readonly ContainerDevice[];
  readonly claimsOf: (pod: Pod, container: string) => readonly DynamicResource[];
  readonly allDevices: () => readonly ContainerDevice[];
  /** All processors that may be given to one container alone. */
  readonly cpuIds: () => readonly number[];
  readonly exclusiveCpus: (podUid: string, container: string) => readonly number[];
  readonly memoryOf: (podUid: string, container: string) => readonly Block[];
  readonly allocatableMemory: () => readonly Block[];
}

/** Who asks in a loop is told to wait. Source: kubernetes v1.36 pkg/kubelet/apis/podresources/constants.go */
const LIMIT = { perSecond: 100, burst: 10 };

const ENDPOINT = "kubelet_pod_resources_endpoint";
const BY_VERSION = "Broken down by server api version.";

export function podResourcesApi({ dataDir, clock, log, metrics, pods, allPods, devicesOf, claimsOf, allDevices, cpuIds, exclusiveCpus, memoryOf, allocatableMemory }: Deps): Runnable {
  const counter = (name: string, help: string) => metrics.counter(`${ENDPOINT}_${name}`, `[ALPHA] ${help} ${BY_VERSION}`);
  const asked = counter("requests_total", "Cumulative number of requests to the PodResource endpoint.");
  const listed = counter("requests_list", "Number of requests to the PodResource List endpoint.");
  const got = counter("requests_get", "Number of requests to the PodResource Get endpoint.");
  const gotAllocatable = counter("requests_get_allocatable", "Number of requests to the PodResource GetAllocatableResources endpoint.");
  const notGot = counter("errors_get", "Number of requests to the PodResource Get endpoint which returned error.");
  const v1 = { server_api_version: "v1" };

  function resourcesOf(pod: Pod): PodResources {
    const { name, namespace = "", uid } = pod.metadata;
    const containers = [...(pod.spec.initContainers ?? []).filter(isSidecar), ...pod.spec.containers];
    return {
      name, namespace,
      containers: containers.map((container) => ({
        name: container.name, devices: devicesOf(uid, container.name).flatMap(toProto), cpu_ids: [...exclusiveCpus(uid, container.name)],
        memory: memoryOf(uid, container.name).map(memoryToProto), dynamic_resources: [...claimsOf(pod, container.name)],
      })),
    };
  }

  function deviceUsersOf({ metadata: { name, namespace = "", uid }, spec }: Pod): PodResources {
    const withoutPlace = ({ resource_name, device_ids }: ContainerDevices): ContainerDevices => ({ resource_name, device_ids });
    return { name, namespace, containers: spec.containers.map((container) => ({ name: container.name, devices: devicesOf(uid, container.name).flatMap(toProto).map(withoutPlace) })) };
  }

  return rpcServer<Methods>({
    name: "pod-resources", socket: join(dataDir, "pod-resources", "kubelet.sock"), methods: serviceMethods(text, "v1"), log, allow: tokenBucket({ ...LIMIT, clock }),
    calls: {
      "PodResourcesLister/List"() {
        asked.inc(v1);
        listed.inc(v1);
        return { pod_resources: [...pods()].map(resourcesOf) };
      },
      "PodResourcesLister/Get"({ pod_name = "", pod_namespace = "" }) {
        asked.inc(v1);
        got.inc(v1);
        const pod = [...allPods()].find(({ metadata }) => metadata.name === pod_name && metadata.namespace === pod_namespace);
        if (!pod) {
          notGot.inc(v1);
          throw new RpcFailure("Unknown", `pod ${pod_name} in namespace ${pod_namespace} not found`);
        }
        return { pod_resources: resourcesOf(pod) };
      },
      "PodResourcesLister/GetAllocatableResources"() {
        asked.inc(v1);
        gotAllocatable.inc(v1);
        return { devices: allDevices().flatMap(toProto), cpu_ids: [...cpuIds()], memory: allocatableMemory().map(memoryToProto) };
      },
    },
    older: {
      methods: serviceMethods(text, "v1alpha1"),
      calls: {
        "PodResourcesLister/List"() {
          asked.inc({ server_api_version: "v1alpha1" });
          return { pod_resources: [...allPods()].map(deviceUsersOf) }; // ended or not
        },
      },
    },
  });
}

function memoryToProto({ type, size, numaAffinity }: Block): ContainerMemory {
  return { memory_type: type, size, ...(numaAffinity.length > 0 ? { topology: { nodes: numaAffinity.map((ID) => ({ ID })) } } : {}) };
}

/** Once for each node that it lies on. */
function toProto({ resource, id, numaNodes }: ContainerDevice): ContainerDevices[] {
  const one = { resource_name: resource, device_ids: [id] };
  return numaNodes.length === 0 ? [one] : numaNodes.map((ID) => ({ ...one, topology: { nodes: [{ ID }] } }));
}
