/** Which devices a claim has got, and who uses them. Source: kubernetes v1.36 pkg/apis/resource/validation/validation.go validateResourceClaimStatusUpdate */
import { child, type FieldError, forbidden, invalid, notSupported, required, tooLong, tooMany } from "../../api/meta/field-error.ts";
import type { AllocatedDeviceStatus, AllocationResult, DeviceAllocationConfiguration, NetworkDeviceData, ResourceClaim } from "../../api/gen/resource.v1.ts";
import { byteLength } from "../../api/meta/byte-length.ts";
import { validateCommonConditions } from "../core/checks/conditions.ts";
import { semanticEqual } from "../core/checks/equal.ts";
import { interfaceAddress } from "../core/checks/ip.ts";
import { immutableStruct, isDns1123Label } from "../core/checks/values.ts";
import { validateNodeSelector } from "../core/pod/validation/affinity.ts";
import { bindingConditions } from "./binding-conditions.ts";
import { CONFIG_MAX, type RequestNames, requestNames, requestReference, requestReferences } from "./claim-spec.ts";
import { driverName, listOf, opaqueConfiguration, opaqueObject, poolName, shareId } from "./names.ts";

const CONSUMERS_MAX = 256;
const RESULTS_MAX = 32;
const CONDITIONS_MAX = 8;
const IPS_MAX = 16;
const INTERFACE_BYTES_MAX = 256;
const HARDWARE_ADDRESS_BYTES_MAX = 128;

interface DeviceId { readonly driver: string; readonly pool: string; readonly device: string; readonly shareID?: string | undefined }

export function idOf({ driver, pool, device, shareID }: DeviceId): string { return [driver, pool, device, ...(shareID === undefined ? [] : [shareID])].join("/"); }

/** As upstream's messages show it. */
function idAsInGo({ driver, pool, device, shareID }: AllocatedDeviceStatus): unknown { return { Driver: driver ?? "", Pool: pool ?? "", Device: device ?? "", ShareID: shareID ?? "" }; }

export function* validateClaimStatus(next: Readonly<ResourceClaim>, old: Readonly<ResourceClaim>): Iterable<FieldError> {
  const { allocation, reservedFor = [], devices } = next.status ?? {};
  const before = old.status ?? {};
  yield* listOf("status.reservedFor", reservedFor, {
    max: CONSUMERS_MAX, keyOf: ({ uid }) => uid,
    *check(at, consumer) { for (const name of ["resource", "name", "uid"] as const) if (!consumer[name]) yield required(child(at, name)); },
  });
  const allocated = new Set((allocation?.devices?.results ?? []).map(idOf));
  yield* listOf("status.devices", devices, { keyOf: idOf, shown: idAsInGo, check: (at, device) => validateDeviceStatus(at, device, allocated) });
  if (reservedFor.length > 0 && !allocation) yield forbidden("status.reservedFor", "may not be specified when `allocated` is not set");
  else if (next.metadata.deletionTimestamp && reservedFor.some((consumer) => !(before.reservedFor ?? []).some((other) => semanticEqual(other, consumer))))
    yield forbidden("status.reservedFor", "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set");
  if (allocation && before.allocation) yield* immutableStruct("status.allocation", "resource.v1.AllocationResult", allocation, before.allocation);
  else if (allocation) yield* validateAllocation("status.allocation", allocation, requestNames(next.spec.devices?.requests ?? []));
}

function* validateAllocation(path: string, { devices, nodeSelector }: AllocationResult, names: RequestNames): Iterable<FieldError> {
  const at = child(path, "devices");
  yield* listOf(child(at, "results"), devices?.results, {
    max: RESULTS_MAX,
    *check(where, result) {
      yield* requestReference(child(where, "request"), result.request, names);
      yield* deviceId(where, result);
      yield* bindingConditions(where, result);
      yield* shareId(child(where, "shareID"), result.shareID);
    },
  });
  yield* listOf(child(at, "config"), devices?.config, { max: 2 * CONFIG_MAX, check: (where, config) => validateConfig(where, config, names) });
  if (nodeSelector) yield* validateNodeSelector(child(path, "nodeSelector"), nodeSelector);
}

function* deviceId(path: string, { driver, pool, device }: DeviceId): Iterable<FieldError> {
  yield* driverName(child(path, "driver"), driver);
  yield* poolName(child(path, "pool"), pool);
  yield* isDns1123Label(child(path, "device"), device);
}

function* validateConfig(path: string, { source, requests, opaque }: DeviceAllocationConfiguration, names: RequestNames): Iterable<FieldError> {
  const sources = ["FromClaim", "FromClass"];
  if (!source) yield required(child(path, "source"));
  else if (!sources.includes(source)) yield notSupported(child(path, "source"), source, sources);
  yield* requestReferences(child(path, "requests"), requests, names);
  yield* opaqueConfiguration(path, opaque);
}

function* validateDeviceStatus(path: string, device: AllocatedDeviceStatus, allocated: ReadonlySet<string>): Iterable<FieldError> {
  const conditions = device.conditions ?? [];
  yield* deviceId(path, device);
  yield* shareId(child(path, "shareID"), device.shareID);
  if (!allocated.has(idOf(device))) yield invalid(path, idAsInGo(device), "must be an allocated device in the claim");
  if (conditions.length > CONDITIONS_MAX) yield tooMany(child(path, "conditions"), conditions.length, CONDITIONS_MAX);
  yield* validateCommonConditions(child(path, "conditions"), conditions);
  if (device.data !== undefined) yield* opaqueObject(child(path, "data"), device.data);
  if (device.networkData) yield* validateNetworkData(child(path, "networkData"), device.networkData);
}

function* validateNetworkData(path: string, { interfaceName = "", hardwareAddress = "", ips }: NetworkDeviceData): Iterable<FieldError> {
  if (byteLength(interfaceName) > INTERFACE_BYTES_MAX) yield tooLong(child(path, "interfaceName"), INTERFACE_BYTES_MAX);
  if (byteLength(hardwareAddress) > HARDWARE_ADDRESS_BYTES_MAX) yield tooLong(child(path, "hardwareAddress"), HARDWARE_ADDRESS_BYTES_MAX);
  yield* listOf(child(path, "ips"), ips, {
    max: IPS_MAX, keyOf: (address) => address,
    check: interfaceAddress,
  });
}
