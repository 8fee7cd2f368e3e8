/**
 * Gives devices of plugins (device-plugins.ts) to containers: set aside when the pod is admitted (device-admission.ts), chosen and asked for before anything of it
 * starts, kept until the pod is gone (device-allocations.ts).
 *
 * Source: kubernetes v1.36 pkg/kubelet/cm/devicemanager/manager.go
 */
import { join } from "node:path";
import type { Pod, ResourceStatus } from "../../../core/api/gen/core.v1.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import type { Log } from "../../../core/observe/log.ts";
import { keyedTurns } from "../../../core/lifecycle/keyed-turns.ts";
import { AllocationRefused } from "../placement/allocation-refused.ts";
import type { Provider } from "../placement/provider.ts";
import type { ContainerAllocateResponse } from "../plugins/gen/device-plugin.v1beta1.ts";
import type { PluginHandler } from "../plugins/plugin-watcher.ts";
import { type Allocation, readCheckpoint } from "./checkpoint.ts";
import { deviceAdmission } from "./device-admission.ts";
import { deviceAllocations } from "./device-allocations.ts";
import { chosen, type KnownDevice, nearAndFar, servedContainers } from "./device-choice.ts";
import { DEVICE_PLUGINS, devicePlugins } from "./device-plugins.ts";

export interface ContainerDevice { readonly resource: string; readonly ids: readonly string[]; readonly numaNodes: readonly number[] }

export interface DeviceManager extends Provider {
  readonly parts: readonly Runnable[];
  readonly handler: PluginHandler;
  /** For the node's status. Absent from it: gone. */
  counts(): ReadonlyMap<string, { readonly capacity: number; readonly allocatable: number }>;
  /** Asks the plugins for it, once. Throws AllocationRefused. */
  prepare(pod: Pod, signal: AbortSignal): Promise<void>;
  /** What the container is to be started with; the plugins that want it prepare the devices. */
  startOptions(podUid: string, container: string, signal: AbortSignal): Promise<readonly ContainerAllocateResponse[]>;
  devicesOf(podUid: string, container: string): readonly ContainerDevice[];
  all(): readonly ContainerDevice[];
  /** How what the container has is, for its status. */
  healthOf(podUid: string, container: string): ResourceStatus[];
}

interface Deps {
  readonly dataDir: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly onChange: () => void;
  /** The machine's. */
  readonly numaNodes?: (() => readonly number[]) | undefined;
}

export function deviceManager({ dataDir, clock, log, onChange, numaNodes: machineNodes = () => [] }: Deps): DeviceManager {
  const path = join(dataDir, DEVICE_PLUGINS, "kubelet_internal_checkpoint");
  const before = readCheckpoint(path, log);
  const plugins = devicePlugins({ dataDir, clock, log, known: before.resources, onChange() { allocations.save(); onChange(); } });
  const allocations = deviceAllocations({ path, before: before.allocations, plugins });
  const inTurn = keyedTurns();

  function numaNodes(resource: string, ids: readonly string[]): number[] {
    const known = new Map(plugins.devices(resource).map((device): [string, KnownDevice] => [device.id, device]));
    return [...new Set(ids.flatMap((id) => known.get(id)?.numaNodes ?? []))].toSorted((a, b) => a - b);
  }

  /** Asks its plugin for what was set aside, or for what it would rather give. */
  async function allocate(waiting: Allocation, signal: AbortSignal): Promise<void> {
    const plugin = plugins.plugin(waiting.resource);
    if (!plugin) throw new AllocationRefused(new Error(`unknown device plugin ${waiting.resource}`));
    const ids = await preferred(waiting, signal);
    try {
      const { container_responses: responses = [] } = await plugin.call("DevicePlugin/Allocate", { container_requests: [{ devices_ids: [...ids] }] }, { signal });
      if (responses.length === 0) throw new Error(`no containers return in allocation response ${JSON.stringify(responses)}`);
      allocations.replace(waiting, { ...waiting, ids, response: responses[0] });
    } catch (cause) {
      signal.throwIfAborted();
      throw new AllocationRefused(cause as Error);
    }
  }

  /** What the plugin would rather give, among what is free or set aside for this container. */
  async function preferred(waiting: Allocation, signal: AbortSignal): Promise<readonly string[]> {
    const { resource, ids, podUid } = waiting;
    const plugin = plugins.plugin(resource)!;
    if (!plugin.options.get_preferred_allocation_available) return ids;
    const shared = new Set(allocations.now().filter((one) => one !== waiting && one.podUid === podUid && one.resource === resource).flatMap((one) => one.ids));
    if (ids.some((id) => shared.has(id))) return ids; // lent by an init container: as they are
    const others = allocations.taken(resource, waiting);
    const free = plugins.devices(resource).filter(({ id, healthy }) => healthy && !others.has(id));
    const near = nearAndFar(free, waiting.nodes).near.map(({ id }) => id);
    const isNear = ids.length < near.length; // else all that are near are taken, and some others
    const from = isNear ? near : free.map(({ id }) => id);
    const must = isNear ? [] : near;
    const { container_responses: [answer] = [] } = await plugin.call("DevicePlugin/GetPreferredAllocation", { container_requests: [{ available_deviceIDs: from, must_include_deviceIDs: must, allocation_size: ids.length }] }, { signal });
    return chosen({ must, from }, ids.length, answer?.deviceIDs ?? []);
  }

  return {
    parts: plugins.parts,
    handler: plugins.handler,
    counts: () => new Map(plugins.resources().map((resource) => {
      const devices = plugins.devices(resource);
      return [resource, { capacity: devices.length, allocatable: devices.filter(({ healthy }) => healthy).length }];
    })),

    begin: (pod) => deviceAdmission({ plugins, allocations, numaNodes: machineNodes }, pod),

    async prepare(pod, signal) {
      const mine = servedContainers(pod).flatMap(({ name }) => allocations.of(pod.metadata.uid, name));
      for (const waiting of mine.filter(({ response }) => response === undefined)) await inTurn(waiting.resource, () => allocate(waiting, signal));
      if (mine.length > 0) await allocations.written();
    },

    async startOptions(podUid, container, signal) {
      const mine = allocations.of(podUid, container);
      for (const { resource, ids } of mine) {
        const plugin = plugins.plugin(resource);
        if (plugin?.options.pre_start_required) await plugin.call("DevicePlugin/PreStartContainer", { devices_ids: [...ids] }, { signal });
      }
      return mine.flatMap(({ response }) => (response ? [response] : []));
    },

    release: allocations.releasePod,

    devicesOf: (podUid, container) => allocations.of(podUid, container).map(({ resource, ids }) => ({ resource, ids, numaNodes: numaNodes(resource, ids) })),
    all: () => plugins.resources().flatMap((resource) => plugins.devices(resource).filter(({ healthy }) => healthy).map(({ id, numaNodes: nodes }) => ({ resource, ids: [id], numaNodes: nodes }))),
    healthOf: (podUid, container) => allocations.of(podUid, container).map(({ resource, ids }) => {
      const ill = new Set(plugins.devices(resource).filter(({ healthy }) => !healthy).map(({ id }) => id));
      return { name: resource, resources: ids.map((id) => ({ resourceID: id, health: ill.has(id) ? "Unhealthy" : "Healthy" })) };
    }),
  };
}
