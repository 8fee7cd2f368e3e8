/**
 * Gives devices of plugins (device-plugins.ts) to containers: set aside when the pod is admitted (device-admission.ts), chosen and asked for before anything of it
 * starts, kept until the pod is gone (device-allocations.ts).
 *
 * Source: kubernetes v1.36 pkg/kubelet/cm/devicemanager/manager.go
 */
import { join } from "node:path";
import type { Pod, ResourceStatus } from "../../../core/api/gen/core.v1.ts";
import { aborted } from "../../../core/lifecycle/aborted.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import type { Log } from "../../../core/observe/log.ts";
import { DEFAULT_BUCKETS, type Metrics } from "../../../core/observe/metrics.ts";
import { keyedTurns } from "../../../core/lifecycle/keyed-turns.ts";
import { AllocationRefused } from "../placement/allocation-refused.ts";
import type { Provider } from "../placement/provider.ts";
import type { ContainerAllocateResponse } from "../plugins/gen/device-plugin.v1beta1.ts";
import type { PluginHandler } from "../plugins/plugin-watcher.ts";
import { type Allocation, readCheckpoint } from "./checkpoint.ts";
import { choose, deviceAdmission } from "./device-admission.ts";
import { deviceAllocations } from "./device-allocations.ts";
import { type Choice, chosen, lentTo, servedContainers } from "./device-choice.ts";
import { DEVICE_PLUGINS, type DevicePlugin, devicePlugins } from "./device-plugins.ts";

export interface ContainerDevice { readonly resource: string; readonly id: string; readonly numaNodes: readonly number[] }

/** Of a resource; `given`: to containers, whether or not their plugin is there. */
export interface DeviceCount { readonly capacity: number; readonly allocatable: number; readonly given: number }

export interface DeviceManager extends Provider {
  readonly parts: readonly Runnable[];
  readonly handler: PluginHandler;
  /** For the node's status. Absent from it: gone. */
  counts(): ReadonlyMap<string, DeviceCount>;
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
  readonly metrics: Metrics;
  readonly onChange: () => void;
  /** The machine's. */
  readonly numaNodes?: (() => readonly number[]) | undefined;
}

/** Upstream's limit for it. */
const PRE_START_MS = 30_000;

export function deviceManager({ dataDir, clock, log, metrics, onChange, numaNodes: machineNodes = () => [] }: Deps): DeviceManager {
  const path = join(dataDir, DEVICE_PLUGINS, "kubelet_internal_checkpoint");
  const before = readCheckpoint(path, log);
  const plugins = devicePlugins({ dataDir, clock, log, metrics, known: before.resources, onChange() { allocations.save(); onChange(); } });
  const allocations = deviceAllocations({ path, before: before.allocations, plugins });
  const inTurn = keyedTurns();
  const took = metrics.histogram("kubelet_device_plugin_alloc_duration_seconds", "[ALPHA] Duration in seconds to serve a device plugin Allocation request. Broken down by resource name.", DEFAULT_BUCKETS);

  function numaNodes(resource: string, id: string): readonly number[] {
    return plugins.device(resource, id)?.numaNodes ?? [];
  }

  /** Asks its plugin for what was set aside, or for what it would rather give. */
  async function allocate(pod: Pod, waiting: Allocation, signal: AbortSignal): Promise<void> {
    const plugin = plugins.plugin(waiting.resource);
    if (!plugin) throw new AllocationRefused(new Error(`unknown Device Plugin ${waiting.resource}`));
    const mine = { ...waiting, ids: await preferred(pod, waiting, signal) };
    allocations.replace(waiting, mine); // nobody else is given them while the plugin makes them ready
    if (mine.ids.some((id) => !waiting.ids.includes(id))) chooseAgain(pod, mine);
    const beganMs = clock.uptimeMs();
    try {
      const { container_responses: responses = [] } = await plugin.call("DevicePlugin/Allocate", { container_requests: [{ devices_ids: [...mine.ids] }] }, { signal }).finally(() => took.observe((clock.uptimeMs() - beganMs) / 1000, { resource_name: mine.resource }));
      if (responses.length === 0) throw new Error(`no containers return in allocation response ${JSON.stringify(responses)}`);
      allocations.replace(mine, { ...mine, response: responses[0] });
    } catch (cause) {
      signal.throwIfAborted();
      throw new AllocationRefused(cause as Error);
    }
  }

  /** What the plugin would rather give, among what is free or set aside for this container and those after it. */
  async function preferred(pod: Pod, waiting: Allocation, signal: AbortSignal): Promise<readonly string[]> {
    const { resource, ids } = waiting;
    const plugin = plugins.plugin(resource)!;
    if (!plugin.options.get_preferred_allocation_available) return ids;
    const { must, from } = choose(choiceFor(pod, waiting));
    if (must.length === ids.length) return must;
    const { container_responses: [answer] = [] } = await plugin.call("DevicePlugin/GetPreferredAllocation", { container_requests: [{
      available_deviceIDs: [...must, ...from].toSorted(), must_include_deviceIDs: [...must], allocation_size: ids.length,
    }] }, { signal }).catch((cause: Error) => {
      signal.throwIfAborted();
      throw new AllocationRefused(new Error(`device plugin GetPreferredAllocation rpc failed with err: ${cause.message}`, { cause }));
    });
    return chosen({ must, from }, ids.length, answer?.deviceIDs ?? []);
  }

  /** For one whose plugin was not asked yet, as if nothing were set aside for it and those of its pod that are served after it. */
  function choiceFor(pod: Pod, { podUid, container, resource, ids, nodes }: Allocation): Choice {
    const served = servedContainers(pod).map(({ name }) => name);
    const isOpen = (one: Allocation): boolean => one.podUid === podUid && one.response === undefined && served.indexOf(one.container) >= served.indexOf(container);
    const lent = lentTo(pod, container, (name) => allocations.of(podUid, name, resource).flatMap((one) => one.ids));
    return { resource, count: ids.length, devices: plugins.devices(resource), taken: allocations.taken(resource, isOpen), lent, nodes };
  }

  /** An init container has others now than were set aside for it: those after it share these. */
  function chooseAgain(pod: Pod, { podUid, container, resource }: Allocation): void {
    const served = servedContainers(pod).map(({ name }) => name);
    const after = served.slice(served.indexOf(container) + 1);
    for (const one of after.flatMap((name) => allocations.of(podUid, name, resource))) if (one.response === undefined) allocations.replace(one, { ...one, ids: chosen(choose(choiceFor(pod, one)), one.ids.length, []) });
  }

  async function preStart(plugin: DevicePlugin, ids: readonly string[], signal: AbortSignal): Promise<void> {
    try {
      await plugin.call("DevicePlugin/PreStartContainer", { devices_ids: [...ids] }, { signal, timeoutMs: PRE_START_MS });
    } catch (cause) {
      throw new Error(`device plugin PreStartContainer rpc failed with err: ${(cause as Error).message}`, { cause });
    }
  }

  /** What was told last is on disk when we end. */
  const lastWrite: Runnable = {
    name: "device-allocations",
    async run(signal, ready) {
      ready();
      await aborted(signal);
      await allocations.written().catch((error: unknown) => log.warn("which container has which devices was not written", { error }));
    },
  };

  return {
    parts: [...plugins.parts, lastWrite],
    handler: plugins.handler,
    counts: () => new Map(plugins.resources().map((resource) => {
      const devices = plugins.devices(resource);
      return [resource, { capacity: devices.length, allocatable: devices.filter(({ healthy }) => healthy).length, given: allocations.taken(resource).size }];
    })),

    begin: (pod) => deviceAdmission({ plugins, allocations, numaNodes: machineNodes }, pod),

    async prepare(pod, signal) {
      const waiting = (name: string, resource?: string): Allocation[] => allocations.of(pod.metadata.uid, name, resource).filter(({ response }) => response === undefined);
      for (const { name } of servedContainers(pod)) {
        for (const { resource } of waiting(name)) await inTurn(resource, async () => { for (const one of waiting(name, resource)) await allocate(pod, one, signal); });
      }
      if (servedContainers(pod).some(({ name }) => allocations.of(pod.metadata.uid, name).length > 0)) await allocations.written();
    },

    async startOptions(podUid, container, signal) {
      const mine = allocations.of(podUid, container);
      for (const { resource, ids } of mine) {
        if (!plugins.wantsPreStart(resource)) continue;
        const plugin = plugins.plugin(resource);
        if (!plugin) throw new Error(`endpoint not found in cache for a registered resource: ${resource}`); // it comes back, and is asked then
        await preStart(plugin, ids, signal);
      }
      return mine.flatMap(({ response }) => (response ? [response] : []));
    },

    release: allocations.releasePod,
    retain: allocations.retain,

    devicesOf: (podUid, container) => allocations.of(podUid, container).flatMap(({ resource, ids }) => ids.map((id) => ({ resource, id, numaNodes: numaNodes(resource, id) }))),
    all: () => plugins.resources().flatMap((resource) => plugins.devices(resource).filter(({ healthy }) => healthy).map(({ id, numaNodes: nodes }) => ({ resource, id, numaNodes: nodes }))),
    healthOf: (podUid, container) => allocations.of(podUid, container).map(({ resource, ids }) => ({
      name: resource, resources: ids.map((id) => ({ resourceID: id, health: plugins.device(resource, id)?.healthy === false ? "Unhealthy" : "Healthy" })),
    })),
  };
}
