/**
 * What others' plugins give the pods of this node: volumes of CSI drivers, devices, and what drivers of claims prepare; and, since devices have places, processors and memory beside them.
 * On Linux alone: elsewhere there are none.
 */
import { join } from "node:path";
import type { Client } from "../../../core/client/client.ts";
import type { EventRecorder } from "../../../core/client/events.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Random } from "../../../core/lifecycle/random.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { Metrics } from "../../../core/observe/metrics.ts";
import type { Cri } from "../../cri/client.ts";
import { bootId } from "../../os/boot-id.ts";
import type { MachineInfo } from "../../os/machine.ts";
import type { Mounts } from "../../os/mount.ts";
import { type ClaimManager, claimManager } from "../claims/claim-manager.ts";
import { csiAllocatable } from "../csi/allocatable.ts";
import { csiNodeWriter } from "../csi/csi-node.ts";
import { type CsiVolumes, csiVolumes } from "../csi/csi-volumes.ts";
import { driverCallMeter } from "../csi/driver-calls.ts";
import { type CsiDrivers, csiDrivers } from "../csi/drivers.ts";
import { type DeviceManager, deviceManager } from "../devices/device-manager.ts";
import { podResourcesApi } from "../devices/pod-resources-api.ts";
import { reservationOf } from "../node/capacity.ts";
import { type Placement, placement, unplaced } from "../placement/placement.ts";
import type { PodWorker } from "../pod-worker.ts";
import type { KubeletSettings } from "../settings.ts";
import { type ClaimExpander, claimExpander } from "../volumes/expand-claim.ts";
import type { TokenSource } from "../volumes/service-account-token.ts";
import { pluginWatcher } from "./plugin-watcher.ts";

interface Deps {
  readonly settings: KubeletSettings;
  readonly machine: MachineInfo;
  readonly client: Client;
  readonly cri: Cri;
  readonly mounts: Mounts;
  readonly tokens: TokenSource;
  readonly events: EventRecorder;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Ends what is done for volumes between the calls of their pods. */
  readonly signal: AbortSignal;
  /** A path below the kubelet's directory as plugins know it. */
  readonly known: (path: string) => string;
  readonly workers: () => Iterable<PodWorker>;
  /** A CSI driver has registered: volumes that wait for it may be there. */
  readonly onDriver: () => void;
  /** A driver of claims has. */
  readonly onClaimDriver: () => void;
  /** What the Node's status tells of plugins has changed: devices, attached volumes. */
  readonly onNode: () => void;
  /** How devices are has. */
  readonly onHealth: () => void;
}

export interface NodePlugins {
  readonly drivers: CsiDrivers;
  readonly csi: CsiVolumes | undefined;
  readonly devices: DeviceManager | undefined;
  readonly claims: ClaimManager | undefined;
  readonly expander: ClaimExpander;
  readonly placement: Placement;
  readonly parts: readonly Runnable[];
}

export function nodePlugins({ settings, machine, client, cri, mounts, tokens, events, metrics, clock, random, log, signal, known, workers, onDriver, onClaimDriver, onNode, onHealth }: Deps): NodePlugins {
  const { dataDir, nodeName } = settings;
  const csiNode = csiNodeWriter({ client, clock, log, nodeName });
  const drivers = csiDrivers({ node: csiNode, clock, log, metered: driverCallMeter(metrics, clock), onRegistered: onDriver });
  const expander = claimExpander({ client, events, clock, log, nodeName });
  if (machine.os !== "linux") return { drivers, csi: undefined, devices: undefined, claims: undefined, expander, placement: unplaced(), parts: [] };

  const devices = deviceManager({
    dataDir, clock, log, metrics, numaNodes: () => places.numaNodes,
    onChange() {
      onNode();
      onHealth();
    },
  });
  const claims = claimManager({ dataDir, nodeName, client, clock, log, events, metrics, onRegistered: onClaimDriver, onHealth });
  const csi = csiVolumes({ dataDir, nodeName, client, drivers, mounts, tokens, expander, events, clock, log, signal, known, onInUse: onNode });
  const places: Placement = placement({
    dataDir, boot: bootId(), settings: settings.placement, reservation: reservationOf({ machine, diskBytes: 0, maxPods: 0, reserved: settings.reserved, thresholds: settings.eviction.thresholds }), memoryBytes: machine.memoryBytes,
    devices, cri, runtimes: () => [...workers()].map(({ runtime }) => runtime), metrics, clock, log,
  });
  const tellsEnded = settings.placement.gates["KubeletPodResourcesListUseActivePods"] === false;
  const told = podResourcesApi({
    dataDir, clock, log, metrics, devicesOf: devices.devicesOf, allDevices: devices.all, cpuIds: places.assignableCpus, exclusiveCpus: places.exclusiveCpus, memoryOf: places.memoryOf, allocatableMemory: places.allocatableMemory,
    pods: () => [...workers()].filter(({ stage, isGone }) => stage === "running" || stage === "terminating" || (tellsEnded && !isGone)).map(({ pod }) => pod),
    allPods: () => [...workers()].filter(({ isGone }) => !isGone).map(({ pod }) => pod),
    claimsOf: (pod, container) => claims.devicesOf(pod, container).map(({ claim, devices: list }) => ({
      claim_name: claim.name, claim_namespace: claim.namespace,
      claim_resources: list.map(({ driver, pool, device, cdiIds, shareId }) => ({ driver_name: driver, pool_name: pool, device_name: device, cdi_devices: cdiIds.map((name) => ({ name })), ...(shareId ? { share_id: shareId } : {}) })),
    })),
  });
  const allocatable = csiAllocatable({ client, drivers, clock, random, log, onChange: (object) => csi.reconsider(object) });
  const watcher = pluginWatcher({ directory: join(dataDir, "plugins_registry"), handlers: [drivers.handler, devices.handler, claims.handler], clock, log, metrics });
  return { drivers, csi, devices, claims, expander, placement: places, parts: [csiNode, allocatable, claims, ...devices.parts, watcher, told, ...places.parts] };
}
