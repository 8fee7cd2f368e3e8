/**
 * Speaks for the node: how its runtime is (runtime-state.ts), its object and status (status-report.ts), its lease (lease.ts); and what it has for pods.
 *
 * Source: kubernetes v1.36 pkg/kubelet/kubelet_node_status.go, pkg/kubelet/kubelet.go
 */
import { statfs } from "node:fs/promises";
import type { Node, NodeStatus, ResourceList } from "../../../core/api/gen/core.v1.ts";
import { ifThere } from "../../../core/lifecycle/if-there.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import type { Image, RuntimeHandlerFeatures } from "../../cri/gen/runtime.v1.ts";
import { processCount } from "../../os/machine.ts";
import type { DeviceCount } from "../devices/device-manager.ts";
import { allocatableOf, type CapacityFacts, type PodsShare, podsShareOf } from "./capacity.ts";
import { declaredFeatures } from "./declared-features.ts";
import { nodeLease } from "./lease.ts";
import { nodeStatusOf } from "./node-status.ts";
import { podCidrTold } from "./pod-cidr.ts";
import type { Pressure } from "./pressure.ts";
import { RuntimeState, type RuntimeStateDeps } from "./runtime-state.ts";
import { StatusReport, type StatusReportDeps } from "./status-report.ts";

type DeviceCounts = ReadonlyMap<string, DeviceCount>;

interface Deps extends RuntimeStateDeps, Omit<StatusReportDeps, "measure" | "lookAtImages" | "lookAtNode" | "statusAfter"> {
  readonly pressures: () => ReadonlySet<Pressure>;
  readonly devices?: (() => DeviceCounts) | undefined;
  readonly volumesInUse?: (() => Promise<readonly string[]>) | undefined;
  /** Of the file system with `path`; absent: the machine is asked. */
  readonly diskBytes?: ((path: string) => Promise<number>) | undefined;
}

export interface NodeAgent {
  readonly parts: readonly Runnable[];
  /** The node as the API server last had it; before that, as we would register it. */
  current(): Pick<Node, "metadata" | "spec">;
  /** For pods: of devices at least those that they have, though nobody tells of them, as after a restart. */
  allocatable(): ResourceList;
  /** What all pods together may use. */
  podsShare(): PodsShare;
  networkProblem(): string | undefined;
  runtimeProblem(): string | undefined;
  /** Look at the status now rather than at the next tick. */
  refresh(): void;
  /** As the runtime calls itself; undefined while it says nothing. */
  runtimeName(): { readonly name?: string | undefined; readonly version?: string | undefined };
  /** What the runtime said last that its handler can do; undefined: it has not said it yet. */
  handlerFeatures(handler: string): RuntimeHandlerFeatures | undefined;
  /** Whether the runtime can keep a process to the groups its pod names; undefined: it has not said it yet. */
  strictGroups(): boolean | undefined;
  /** What the node declares it can do; undefined: the runtime has not said yet what it can. */
  declares(): readonly string[] | undefined;
}

const IMAGES_MS = 60_000;

export function nodeAgent(deps: Deps): NodeAgent {
  const { settings, client, cri, machine, clock, log } = deps;
  let capacity: CapacityFacts = { machine, diskBytes: 0, maxPods: settings.podsPerCore > 0 ? Math.min(settings.maxPods, settings.podsPerCore * machine.cpus) : settings.maxPods, reserved: settings.reserved, thresholds: settings.eviction.thresholds };
  let images: readonly Image[] = [];
  let imagesMs = Number.NEGATIVE_INFINITY;
  const deviceNames = new Set<string>(); // also of those that are gone: they stay at 0
  const runtime = new RuntimeState(deps, () => report.refresh());
  const report = new StatusReport({ ...deps, measure, lookAtImages, lookAtNode: podCidrTold({ cri, log }), statusAfter });

  async function measure(): Promise<void> {
    capacity = { ...capacity, diskBytes: await (deps.diskBytes ?? diskBytes)(settings.dataDir) };
  }

  async function lookAtImages(signal: AbortSignal): Promise<void> {
    if (clock.uptimeMs() - imagesMs < IMAGES_MS || !runtime.isUp) return;
    images = (await cri.call("ImageService/ListImages", {}, { signal })).images ?? [];
    imagesMs = clock.uptimeMs();
  }

  async function statusAfter(before: NodeStatus | undefined): Promise<NodeStatus> {
    return nodeStatusOf({
      settings, machine, capacity, before, problems: runtime.problems(), pressures: deps.pressures(), runtimeVersion: runtime.version, runtimeStatus: runtime.status,
      images, volumesInUse: await deps.volumesInUse?.(), devices: deviceCounts(), nowMs: clock.nowMs(),
    });
  }

  function deviceCounts(): DeviceCounts {
    const counts: DeviceCounts = deps.devices?.() ?? new Map();
    for (const name of counts.keys()) deviceNames.add(name);
    return new Map([...deviceNames].map((name) => [name, counts.get(name) ?? { capacity: 0, allocatable: 0, given: 0 }]));
  }

  return {
    parts: [runtime, report, nodeLease({ client, clock, log, nodeName: settings.nodeName, durationSeconds: settings.leaseSeconds, nodeUid: () => report.uid })],
    current: () => report.current(),
    allocatable: () => ({ ...allocatableOf(capacity), ...Object.fromEntries([...deviceCounts()].map(([resource, { allocatable, given }]) => [resource, String(Math.max(allocatable, given))])) }),
    podsShare: () => podsShareOf({ machine, reserved: settings.enforcesAllocatable ? settings.reserved : {}, pidsMax: processCount().max }),
    networkProblem: () => runtime.networkProblem(),
    runtimeProblem: () => runtime.runtimeProblem(),
    runtimeName: () => ({ name: runtime.version?.runtime_name, version: runtime.version?.runtime_version }),
    handlerFeatures: (handler) => runtime.status?.runtime_handlers?.find(({ name = "" }) => name === handler)?.features,
    declares: () => runtime.status && declaredFeatures(settings.placement.gates, runtime.status),
    strictGroups: () => runtime.status && (runtime.status.features?.supplemental_groups_policy ?? false),
    refresh: () => report.refresh(),
  };
}

async function diskBytes(path: string): Promise<number> {
  const found = await ifThere(statfs(path)); // the data directory is made with the first pod
  return found ? found.blocks * found.bsize : 0;
}
