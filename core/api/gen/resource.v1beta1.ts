// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
import type { NodeSelector } from "./core.v1.ts";
import type { Condition } from "./meta.v1.ts";
export interface AllocatedDeviceStatus {
  driver: string;
  pool: string;
  device: string;
  shareID?: string | undefined;
  conditions: Condition[];
  data?: unknown | undefined;
  networkData?: NetworkDeviceData | undefined;
}
export type AllocationConfigSource = "FromClaim" | "FromClass";
export interface AllocationResult {
  devices?: DeviceAllocationResult | undefined;
  nodeSelector?: NodeSelector | undefined;
  allocationTimestamp?: string | undefined;
}
export interface BasicDevice {
  attributes?: Record<string, DeviceAttribute> | undefined;
  capacity?: Record<string, DeviceCapacity> | undefined;
  consumesCounters?: DeviceCounterConsumption[] | undefined;
  nodeName?: string | undefined;
  nodeSelector?: NodeSelector | undefined;
  allNodes?: boolean | undefined;
  taints?: DeviceTaint[] | undefined;
  bindsToNode?: boolean | undefined;
  bindingConditions?: string[] | undefined;
  bindingFailureConditions?: string[] | undefined;
  allowMultipleAllocations?: boolean | undefined;
  nodeAllocatableResourceMappings?: Record<string, NodeAllocatableResourceMapping> | undefined;
}
export interface CELDeviceSelector {
  expression: string;
}
export interface CapacityRequestPolicy {
  default?: string | undefined;
  validValues?: string[] | undefined;
  validRange?: CapacityRequestPolicyRange | undefined;
}
export interface CapacityRequestPolicyRange {
  min?: string | undefined;
  max?: string | undefined;
  step?: string | undefined;
}
export interface CapacityRequirements {
  requests?: Record<string, string> | undefined;
}
export interface Counter {
  value: string;
}
export interface CounterSet {
  name: string;
  counters?: Record<string, Counter> | undefined;
}
export interface Device {
  name: string;
  basic?: BasicDevice | undefined;
}
export interface DeviceAllocationConfiguration extends DeviceConfiguration {
  source: AllocationConfigSource;
  requests?: string[] | undefined;
}
export type DeviceAllocationMode = string;
export interface DeviceAllocationResult {
  results?: DeviceRequestAllocationResult[] | undefined;
  config?: DeviceAllocationConfiguration[] | undefined;
}
export interface DeviceAttribute {
  int?: number | undefined;
  bool?: boolean | undefined;
  string?: string | undefined;
  version?: string | undefined;
  ints?: number[] | undefined;
  bools?: boolean[] | undefined;
  strings?: string[] | undefined;
  versions?: string[] | undefined;
}
export interface DeviceCapacity {
  value: string;
  requestPolicy?: CapacityRequestPolicy | undefined;
}
export interface DeviceClaim {
  requests?: DeviceRequest[] | undefined;
  constraints?: DeviceConstraint[] | undefined;
  config?: DeviceClaimConfiguration[] | undefined;
}
export interface DeviceClaimConfiguration extends DeviceConfiguration {
  requests?: string[] | undefined;
}
export interface DeviceClass {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: DeviceClassSpec;
}
export interface DeviceClassConfiguration extends DeviceConfiguration {}
export interface DeviceClassSpec {
  selectors?: DeviceSelector[] | undefined;
  config?: DeviceClassConfiguration[] | undefined;
  extendedResourceName?: string | undefined;
}
export interface DeviceConfiguration {
  opaque?: OpaqueDeviceConfiguration | undefined;
}
export interface DeviceConstraint {
  requests?: string[] | undefined;
  matchAttribute?: FullyQualifiedName | undefined;
  distinctAttribute?: FullyQualifiedName | undefined;
}
export interface DeviceCounterConsumption {
  counterSet: string;
  counters?: Record<string, Counter> | undefined;
}
export interface DeviceRequest {
  name: string;
  deviceClassName?: string | undefined;
  selectors?: DeviceSelector[] | undefined;
  allocationMode?: DeviceAllocationMode | undefined;
  count?: number | undefined;
  adminAccess?: boolean | undefined;
  firstAvailable?: DeviceSubRequest[] | undefined;
  tolerations?: DeviceToleration[] | undefined;
  capacity?: CapacityRequirements | undefined;
}
export interface DeviceRequestAllocationResult {
  request: string;
  driver: string;
  pool: string;
  device: string;
  adminAccess?: boolean | undefined;
  tolerations?: DeviceToleration[] | undefined;
  bindingConditions?: string[] | undefined;
  bindingFailureConditions?: string[] | undefined;
  shareID?: string | undefined;
  consumedCapacity?: Record<string, string> | undefined;
}
export interface DeviceSelector {
  cel?: CELDeviceSelector | undefined;
}
export interface DeviceSubRequest {
  name: string;
  deviceClassName: string;
  selectors?: DeviceSelector[] | undefined;
  allocationMode?: DeviceAllocationMode | undefined;
  count?: number | undefined;
  tolerations?: DeviceToleration[] | undefined;
  capacity?: CapacityRequirements | undefined;
}
export interface DeviceTaint {
  key: string;
  value?: string | undefined;
  effect: DeviceTaintEffect;
  timeAdded?: string | undefined;
}
export type DeviceTaintEffect = "NoExecute" | "NoSchedule" | "None";
export interface DeviceToleration {
  key?: string | undefined;
  operator?: DeviceTolerationOperator | undefined;
  value?: string | undefined;
  effect?: DeviceTaintEffect | undefined;
  tolerationSeconds?: number | undefined;
}
export type DeviceTolerationOperator = "Equal" | "Exists";
export type FullyQualifiedName = string;
export interface NetworkDeviceData {
  interfaceName?: string | undefined;
  ips?: string[] | undefined;
  hardwareAddress?: string | undefined;
}
export interface NodeAllocatableResourceMapping {
  capacityKey?: QualifiedName | undefined;
  allocationMultiplier?: string | undefined;
}
export interface OpaqueDeviceConfiguration {
  driver: string;
  parameters: unknown;
}
export type QualifiedName = string;
export interface ResourceClaim {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: ResourceClaimSpec;
  status?: ResourceClaimStatus | undefined;
}
export interface ResourceClaimConsumerReference {
  apiGroup?: string | undefined;
  resource: string;
  name: string;
  uid: string;
}
export interface ResourceClaimSpec {
  devices?: DeviceClaim | undefined;
}
export interface ResourceClaimStatus {
  allocation?: AllocationResult | undefined;
  reservedFor?: ResourceClaimConsumerReference[] | undefined;
  devices?: AllocatedDeviceStatus[] | undefined;
}
export interface ResourceClaimTemplate {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: ResourceClaimTemplateSpec;
}
export interface ResourceClaimTemplateSpec {
  metadata?: Partial<ObjectMeta> | undefined;
  spec: ResourceClaimSpec;
}
export interface ResourcePool {
  name: string;
  generation: number;
  resourceSliceCount: number;
}
export interface ResourceSlice {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: ResourceSliceSpec;
}
export interface ResourceSliceSpec {
  driver: string;
  pool: ResourcePool;
  nodeName?: string | undefined;
  nodeSelector?: NodeSelector | undefined;
  allNodes?: boolean | undefined;
  devices?: Device[] | undefined;
  perDeviceNodeSelection?: boolean | undefined;
  sharedCounters?: CounterSet[] | undefined;
}
