// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
import type { Condition } from "./meta.v1.ts";
export interface DeviceTaint {
  key: string;
  value?: string | undefined;
  effect: DeviceTaintEffect;
  timeAdded?: string | undefined;
}
export type DeviceTaintEffect = "NoExecute" | "NoSchedule" | "None";
export interface DeviceTaintRule {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: DeviceTaintRuleSpec;
  status?: DeviceTaintRuleStatus | undefined;
}
export interface DeviceTaintRuleSpec {
  deviceSelector?: DeviceTaintSelector | undefined;
  taint?: DeviceTaint | undefined;
}
export interface DeviceTaintRuleStatus {
  conditions?: Condition[] | undefined;
}
export interface DeviceTaintSelector {
  driver?: string | undefined;
  pool?: string | undefined;
  device?: string | undefined;
}
export interface PoolStatus {
  driver?: string | undefined;
  poolName?: string | undefined;
  generation: number;
  resourceSliceCount?: number | undefined;
  totalDevices?: number | undefined;
  allocatedDevices?: number | undefined;
  availableDevices?: number | undefined;
  unavailableDevices?: number | undefined;
  nodeName?: string | undefined;
  validationError?: string | undefined;
}
export interface ResourcePoolStatusRequest {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: ResourcePoolStatusRequestSpec;
  status?: ResourcePoolStatusRequestStatus | undefined;
}
export interface ResourcePoolStatusRequestSpec {
  driver: string;
  poolName?: string | undefined;
  limit?: number | undefined;
}
export interface ResourcePoolStatusRequestStatus {
  poolCount?: number | undefined;
  pools?: PoolStatus[] | undefined;
  conditions?: Condition[] | undefined;
}
