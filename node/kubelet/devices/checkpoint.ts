/**
 * Which container has which devices, on disk: a kubelet that starts anew gives away nothing twice. Under upstream's name and in its form: agents that measure devices read it,
 * and so does the kubelet that a node is given back to.
 *
 * Source: kubernetes v1.36 pkg/kubelet/cm/devicemanager/checkpoint/checkpoint.go
 */
import type { Log } from "../../../core/observe/log.ts";
import { decode, encode } from "../../cri/codec.ts";
import { type Message, serviceMethods } from "../../cri/facts.ts";
import { parseStateFile, readStateFile } from "../../os/state-file.ts";
import { byNumber, checksumOf, dumpList, dumpMap, verifyChecksum } from "../go-dump.ts";
import text from "../plugins/device-plugin-facts.txt" with { type: "text" };
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
  /** As the disk had it, until the plugin says again where they are. */
  readonly byNode?: IdsByNode | undefined;
}

export interface DeviceCheckpoint { readonly allocations: readonly Allocation[]; readonly resources: readonly string[] }

/** By NUMA node; "-1": of those that lie nowhere in particular. */
type IdsByNode = Readonly<Record<string, readonly string[]>>;

const NOWHERE = "-1";

interface Entry { readonly PodUID: string; readonly ContainerName: string; readonly ResourceName: string; readonly DeviceIDs: IdsByNode; /** Protocol Buffers, base64. */ readonly AllocResp: string | null }
/** As earlier versions of ours wrote them, without a checksum. */
type OldEntry = Omit<Entry, "DeviceIDs" | "AllocResp"> & { readonly DeviceIDs: readonly string[]; readonly AllocResp?: ContainerAllocateResponse | undefined };

interface Data<E> { readonly PodDeviceEntries: readonly E[] | null; readonly RegisteredDevices: Readonly<Record<string, readonly string[]>> | null }
interface Stored<E> { readonly Data: Data<E>; readonly Checksum?: number | undefined }

export function readCheckpoint(path: string, log: Log): DeviceCheckpoint {
  return readStateFile(path, log, (from) => {
    const data = readData(from);
    return { allocations: (data?.PodDeviceEntries ?? []).map((entry) => (isOld(entry) ? ofOld(entry) : ofEntry(entry))), resources: Object.keys(data?.RegisteredDevices ?? {}) };
  }) ?? { allocations: [], resources: [] };
}

function readData(path: string): Data<Entry | OldEntry> | undefined {
  const { Data: data, Checksum } = parseStateFile<Stored<Entry | OldEntry>>(path) ?? {};
  if (data && Checksum !== undefined) verifyChecksum(Checksum, dump(data as Data<Entry>));
  return data;
}

function isOld(entry: Entry | OldEntry): entry is OldEntry { return Array.isArray(entry.DeviceIDs); }

function ofOld({ PodUID, ContainerName, ResourceName, DeviceIDs, AllocResp }: OldEntry): Allocation {
  return { podUid: PodUID, container: ContainerName, resource: ResourceName, ids: DeviceIDs, response: AllocResp };
}

function ofEntry({ PodUID, ContainerName, ResourceName, DeviceIDs, AllocResp }: Entry): Allocation {
  const response = AllocResp === null ? undefined : (decode(responseFacts(), Buffer.from(AllocResp, "base64")) as ContainerAllocateResponse);
  return { podUid: PodUID, container: ContainerName, resource: ResourceName, ids: [...new Set(Object.values(DeviceIDs).flat())], response, byNode: DeviceIDs };
}

export interface KnownDevice { readonly id: string; readonly healthy: boolean; readonly numaNodes: readonly number[] }

/** What the file is to hold. */
export function storedCheckpoint({ allocations, devices }: { readonly allocations: readonly Allocation[]; readonly devices: ReadonlyMap<string, readonly KnownDevice[]> }): object {
  const entries = allocations.map((one): Entry => ({
    PodUID: one.podUid, ContainerName: one.container, ResourceName: one.resource, DeviceIDs: byNode(one, devices.get(one.resource) ?? []),
    AllocResp: one.response ? encode(responseFacts(), one.response).toString("base64") : null,
  }));
  const data: Data<Entry> = { PodDeviceEntries: entries.length > 0 ? entries : null, RegisteredDevices: Object.fromEntries([...devices].map(([resource, known]) => [resource, known.flatMap(({ id, healthy }) => (healthy ? [id] : []))])) };
  return { Data: data, Checksum: checksumOf(dump(data)) } satisfies Stored<Entry>;
}

function byNode({ ids, byNode: before }: Allocation, devices: readonly KnownDevice[]): IdsByNode {
  const known = new Map(devices.map(({ id, numaNodes }) => [id, numaNodes]));
  if (before && !ids.some((id) => known.has(id))) return before;
  const placed: Record<string, string[]> = {};
  for (const id of ids) for (const node of known.get(id)?.length ? known.get(id)! : [NOWHERE]) (placed[node] ??= []).push(id);
  return placed;
}

function dump({ PodDeviceEntries: entries, RegisteredDevices: registered }: Data<Entry>): string {
  const shown = entries === null ? "<nil>" : dumpList(entries.map(dumpEntry));
  return `(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)${shown} RegisteredDevices:(map[string][]string)${registered === null ? "<nil>" : dumpMap(registered, dumpList)}}`;
}

function dumpEntry({ PodUID, ContainerName, ResourceName, DeviceIDs, AllocResp }: Entry): string {
  const answer = AllocResp === null ? "<nil>" : dumpList(Buffer.from(AllocResp, "base64"));
  return `{PodUID:(string)${PodUID} ContainerName:(string)${ContainerName} ResourceName:(string)${ResourceName} DeviceIDs:(checkpoint.DevicesPerNUMA)${dumpMap(DeviceIDs, dumpList, byNumber)} AllocResp:([]uint8)${answer}}`;
}

/** Of what a plugin answers for one container. */
function responseFacts(): Message {
  const type = serviceMethods(text, "v1beta1").get("DevicePlugin/Allocate")!.response.byNumber.get(1)!.type;
  if (type.kind !== "message") throw new Error("an answer of a device plugin is no message");
  return type.message;
}
