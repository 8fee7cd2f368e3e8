/**
 * Which claims are prepared for which pods, on disk, as upstream writes it: whoever takes a node over from a stock kubelet, or gives it back, leaves no claim prepared for good.
 *
 * Upstream notes only what devices there are, not whether a driver has told of all. Here a driver that has told of none has an empty list, and one that was only asked has null.
 *
 * Source: kubernetes v1.36 pkg/kubelet/cm/dra/state/{checkpoint,state}.go
 */
import { crc32 } from "node:zlib";
import { CorruptStateError, parseStateFile } from "../../os/state-file.ts";
import type { PreparedClaim, PreparedDevice } from "./claim-plan.ts";

interface Device { readonly PoolName: string; readonly DeviceName: string; readonly ShareID: string | null; readonly RequestNames: readonly string[] | null; readonly CDIDeviceIDs: readonly string[] | null }
interface Claim {
  readonly ClaimUID: string;
  readonly ClaimName: string;
  readonly Namespace: string;
  readonly PodUIDs: Readonly<Record<string, object>> | null;
  readonly DriverState: Readonly<Record<string, { readonly Devices: readonly Device[] | null }>> | null;
}
/** `Data`: JSON, too. */
interface Stored { readonly Data?: string; readonly Checksum?: number; /** As earlier versions of ours wrote them. */ readonly claims?: readonly PreparedClaim[] }

const TYPE = { kind: "DRACheckpoint", apiVersion: "checkpoint.dra.kubelet.k8s.io/v1" };

/** What the file is to hold. */
export function storedClaims(claims: Iterable<PreparedClaim>): object {
  const Data = JSON.stringify({ ...TYPE, ClaimInfoStateList: [...claims].map(storedClaim) });
  return { Data, Checksum: crc32(Data) } satisfies Stored;
}

function storedClaim({ uid, name, namespace, pods, drivers, devices }: PreparedClaim): Claim {
  const of = (driver: string): readonly Device[] | null => devices?.filter((device) => device.driver === driver).map(({ pool, device, shareId, requests, cdiIds }) => ({
    PoolName: pool, DeviceName: device, ShareID: shareId ?? null, RequestNames: requests, CDIDeviceIDs: cdiIds,
  })) ?? null;
  return { ClaimUID: uid, ClaimName: name, Namespace: namespace, PodUIDs: Object.fromEntries(pods.map((pod) => [pod, {}])), DriverState: Object.fromEntries(drivers.map((driver) => [driver, { Devices: of(driver) }])) };
}

/** Undefined: there is none. Throws CorruptStateError, or a TypeError where something is missing. */
export function readClaims(path: string): readonly PreparedClaim[] | undefined {
  const stored = parseStateFile<Stored>(path);
  if (!stored) return undefined;
  const { Data, Checksum, claims: old } = stored;
  const claims = old ?? (Data === undefined ? undefined : listed(path, Data, Checksum).map(claimOf));
  if (!claims?.every(isWhole)) throw new CorruptStateError(`${path} is corrupted: a claim is not whole`);
  return claims;
}

function listed(path: string, data: string, checksum: number | undefined): readonly Claim[] {
  const actual = crc32(data);
  if (actual !== checksum) throw new CorruptStateError(`${path} is corrupted: checkpoint is corrupted: actualCS ${checksum}, expectedCS ${actual}`);
  return (JSON.parse(data) as { readonly ClaimInfoStateList: readonly Claim[] | null }).ClaimInfoStateList ?? [];
}

function claimOf({ ClaimUID: uid, ClaimName: name, Namespace: namespace, PodUIDs, DriverState }: Claim): PreparedClaim {
  const told = Object.entries(DriverState ?? {});
  const claim = { namespace, name, uid, drivers: told.map(([driver]) => driver), pods: Object.keys(PodUIDs ?? {}) };
  if (told.some(([, { Devices }]) => Devices === null)) return claim; // asked again: drivers are used to that
  const devices = told.flatMap(([driver, { Devices }]) => Devices!.map(({ PoolName, DeviceName, ShareID, RequestNames, CDIDeviceIDs }): PreparedDevice => (
    { driver, pool: PoolName, device: DeviceName, requests: RequestNames ?? [], cdiIds: CDIDeviceIDs ?? [], ...(ShareID ? { shareId: ShareID } : {}) })));
  return { ...claim, devices };
}

/** In all that is asked of it without looking first. */
function isWhole({ namespace, name, uid, drivers, pods, devices }: PreparedClaim): boolean {
  return [namespace, name, uid].every((text) => typeof text === "string") && Array.isArray(drivers) && Array.isArray(pods) && (devices === undefined || Array.isArray(devices));
}
