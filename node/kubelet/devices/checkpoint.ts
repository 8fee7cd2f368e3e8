/** Which container has which devices, on disk: a kubelet that starts anew gives away nothing twice. Under upstream's name, in its form. */
import type { Log } from "../../../core/observe/log.ts";
import { readStateFile } from "../../os/state-file.ts";
import type { ContainerAllocateResponse } from "../plugins/gen/device-plugin.v1beta1.ts";

export interface Allocation {
  readonly podUid: string;
  readonly container: string;
  readonly resource: string;
  readonly ids: readonly string[];
  /** What the plugin answered; absent: it has not been asked yet. */
  readonly response?: ContainerAllocateResponse | undefined;
  /** NUMA nodes they were chosen for. Not kept on disk: it matters until the plugin is asked. */
  readonly nodes?: bigint | undefined;
}

export interface DeviceCheckpoint { readonly allocations: readonly Allocation[]; readonly resources: readonly string[] }

interface Stored {
  readonly Data: {
    readonly PodDeviceEntries: readonly { readonly PodUID: string; readonly ContainerName: string; readonly ResourceName: string; readonly DeviceIDs: readonly string[]; readonly AllocResp?: ContainerAllocateResponse | undefined }[] | null;
    readonly RegisteredDevices: Readonly<Record<string, readonly string[]>> | null;
  };
}

export function readCheckpoint(path: string, log: Log): DeviceCheckpoint {
  const stored = readStateFile<Stored>(path, log);
  if (!stored) return { allocations: [], resources: [] };
  const { Data } = stored;
  return {
    allocations: (Data.PodDeviceEntries ?? []).map(({ PodUID, ContainerName, ResourceName, DeviceIDs, AllocResp }) => ({ podUid: PodUID, container: ContainerName, resource: ResourceName, ids: DeviceIDs, response: AllocResp })),
    resources: Object.keys(Data.RegisteredDevices ?? {}),
  };
}

/** What the file is to hold. */
export function storedCheckpoint({ allocations, devices }: { readonly allocations: readonly Allocation[]; readonly devices: Readonly<Record<string, readonly string[]>> }): object {
  return { Data: { PodDeviceEntries: allocations.map(({ podUid, container, resource, ids, response }) => ({ PodUID: podUid, ContainerName: container, ResourceName: resource, DeviceIDs: ids, ...(response ? { AllocResp: response } : {}) })), RegisteredDevices: devices } } satisfies Stored;
}
